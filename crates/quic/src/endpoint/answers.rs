//! Datagrams that belong to no connection, ready to be sent.
//!
//! Owns a bounded queue of them, whose memory is allocated once.

use std::collections::VecDeque;

use crate::{
    ack::Ecn,
    connection::{NetworkPath, Transmit},
};

/// Pending datagrams.
pub(super) struct Answers {
    waiting: VecDeque<Answer>,
    limit: usize,
}

struct Answer {
    path: NetworkPath,
    len: usize,
    bytes: [u8; Answers::LEN_MAX],
}

impl Answers {
    /// A Version Negotiation packet with two IDs of 255 bytes is the longest.
    pub(super) const LEN_MAX: usize = 640;

    pub(super) fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            limit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// Queues a datagram to the sender of a packet. `write` returns its length. False if there is no room, or nothing
    /// was written.
    pub(super) fn push(
        &mut self,
        path: &NetworkPath,
        write: impl FnOnce(&mut [u8; Self::LEN_MAX]) -> Option<usize>,
    ) -> bool {
        if self.is_full() {
            return false;
        }
        let mut bytes = [0; Self::LEN_MAX];
        let Some(len) = write(&mut bytes) else {
            return false;
        };
        let path = *path;
        self.waiting.push_back(Answer { path, len, bytes });
        true
    }

    /// The next one. One that does not fit into the buffer is dropped.
    pub(super) fn pop(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        loop {
            let answer = self.waiting.pop_front()?;
            let target = buffer.get_mut(..answer.len);
            if let (Some(target), Some(bytes)) = (target, answer.bytes.get(..answer.len)) {
                target.copy_from_slice(bytes);
                return Some(Transmit {
                    path: answer.path,
                    ecn: Ecn::NotEct,
                    len: answer.len,
                    segment_len: answer.len,
                });
            }
        }
    }
}
