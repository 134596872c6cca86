//! Receive windows that follow the bandwidth-delay product (RFC 9113 §5.2, §6.9.2).
//!
//! While request bodies are read, a PING measures how many of their bytes are read in a round trip. If that is half a window, the
//! window becomes four times as much, and those of all streams with it. A handler that reads nothing, or less, never makes it grow.
//!
//! The window of the connection is larger by its initial size, so that a body which is not read leaves that to the others. What it
//! grows by is taken from the budget that HTTP/3 uses as well.

use std::{
    sync::{Arc, atomic::Ordering},
    task::Context,
};

use bytes::Bytes;
use h2::server;
use lastbyte_quic::flow::WindowShare;
use tokio::io::{AsyncRead, AsyncWrite};

use super::liveness::Liveness;
use crate::tcp::in_flight::Connection;

/// The initial window of a stream, in bytes.
pub(super) const STREAM_WINDOW: u32 = 256 << 10;
/// The initial window of the connection.
pub(super) const CONNECTION_WINDOW: u32 = 1 << 20;

/// The windows of a connection.
pub(super) struct Windows {
    requests: Arc<Connection>,
    /// The window of a stream.
    size: u32,
    maximum: u32,
    /// Bytes read when the last measurement started or ended.
    read: u64,
    is_measuring: bool,
    share: WindowShare,
}

impl Windows {
    pub(super) fn new(requests: &Arc<Connection>) -> Self {
        let shared = &requests.shared;
        let maximum = shared.upload_window.load(Ordering::Relaxed);
        Self {
            requests: Arc::clone(requests),
            size: STREAM_WINDOW.min(maximum),
            maximum,
            read: 0,
            is_measuring: false,
            share: WindowShare::new(shared.window_budget.clone()),
        }
    }

    /// The initial window of a stream.
    pub(super) const fn initial(&self) -> u32 {
        self.size
    }

    /// To be called whenever the connection has made progress.
    pub(super) fn follow<S>(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut server::Connection<S, Bytes>,
        liveness: &mut Liveness,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.size >= self.maximum {
            return;
        }
        let read = self.requests.body_read.get();
        if self.is_measuring {
            if !liveness.is_answered(context) {
                return;
            }
            self.is_measuring = false;
            let in_round_trip = u32::try_from(read - self.read).unwrap_or(u32::MAX);
            if in_round_trip >= self.size / 2 {
                let wanted = in_round_trip.saturating_mul(4).min(self.maximum);
                self.grow(wanted, connection);
            }
            self.read = read;
        }
        if read - self.read >= u64::from(self.size / 4) && liveness.ask(context) {
            self.is_measuring = true;
            self.read = read;
        }
    }

    fn grow<S>(&mut self, wanted: u32, connection: &mut server::Connection<S, Bytes>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let taken = self.share.take(u64::from(wanted.saturating_sub(self.size)));
        let size = self.size + u32::try_from(taken).unwrap_or_default();
        // Not while the client has yet to acknowledge the previous SETTINGS (§6.5.3).
        if taken == 0 || connection.set_initial_window_size(size).is_err() {
            self.share.give_back(taken);
            return;
        }
        connection.set_target_window_size(size + CONNECTION_WINDOW);
        self.size = size;
    }
}
