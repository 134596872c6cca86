//! What is sent as it is read, such as standard input: a thread that reads, a few pieces ahead of who sends.

use std::{
    io::{self, Read},
    sync::Arc,
    thread,
};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::mailbox::{Event, Mailbox};

/// How much is read at a time.
const PIECE_LEN: usize = 64 << 10;
/// How many pieces wait to be sent.
const PIECES_MAX: usize = 4;

/// Reads, until there is no more, or nobody wants it any more.
#[expect(
    clippy::disallowed_methods,
    reason = "what is read may never come, and a thread that waits for it may be left behind"
)]
pub(crate) fn read(
    mut reader: Box<dyn Read + Send>,
    mailbox: Arc<Mailbox>,
) -> mpsc::Receiver<io::Result<Bytes>> {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
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
            if sender.blocking_send(read).is_err() {
                return;
            }
            mailbox.post(Event::Readable);
            if is_last {
                break;
            }
        }
        // That there is no more is news, too.
        drop(sender);
        mailbox.post(Event::Readable);
    });
    receiver
}
