//! Uploads of unknown length, such as standard input: a thread reads a few pieces ahead.

use std::{
    io::{self, Read},
    thread,
};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::mailbox::Sender;

/// The size of a piece in bytes.
const PIECE_LEN: usize = 64 << 10;
/// The most pieces that are queued.
const PIECES_MAX: usize = 4;

/// Starts a thread that reads until the end, an error, or until the receiver is dropped. `readable` receives an event after
/// each piece and at the end.
#[expect(
    clippy::disallowed_methods,
    reason = "a read may block forever, and its thread may then be abandoned"
)]
pub(crate) fn read(
    mut reader: Box<dyn Read + Send>,
    readable: Sender<()>,
) -> mpsc::Receiver<io::Result<Bytes>> {
    let (pieces, receiver) = mpsc::channel(PIECES_MAX);
    thread::spawn(move || {
        loop {
            let mut piece = vec![0; PIECE_LEN];
            let read = match reader.read(&mut piece) {
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(len) => {
                    piece.truncate(len);
                    Ok(Bytes::from(piece))
                }
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if pieces.blocking_send(read).is_err() {
                return;
            }
            readable.post(());
            if is_last {
                break;
            }
        }
        // The end is reported too.
        drop(pieces);
        readable.post(());
    });
    receiver
}
