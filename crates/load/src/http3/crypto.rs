//! The TLS configurations of a thread.

use std::sync::Arc;

use lastbyte_client::{RunError, Tls};
use lastbyte_quic::crypto::ClientCrypto;
use rustls::client::Resumption;

use crate::{mix::Handshake, sessions::Sessions, thread_state::ThreadState};

/// The TLS configuration of each handshake.
pub(super) struct Crypto {
    pub(super) full: Arc<dyn ClientCrypto>,
    pub(super) resumed: Arc<dyn ClientCrypto>,
    pub(super) zero_rtt: Arc<dyn ClientCrypto>,
}

impl Crypto {
    pub(super) fn new(state: &ThreadState, tls: &Tls) -> Result<Self, RunError> {
        let sessions = Sessions::new(state.share.own_connections());
        let resumption = |handshake| {
            if state.settings.is_resuming() {
                sessions.resumption(handshake)
            } else {
                Resumption::disabled()
            }
        };
        Ok(Self {
            full: tls.quic(resumption(Handshake::Full), false)?,
            resumed: tls.quic(resumption(Handshake::Resumed), false)?,
            zero_rtt: tls.quic(resumption(Handshake::ZeroRtt), true)?,
        })
    }

    pub(super) fn of(&self, handshake: Handshake) -> Arc<dyn ClientCrypto> {
        Arc::clone(match handshake {
            Handshake::Full => &self.full,
            Handshake::Resumed => &self.resumed,
            Handshake::ZeroRtt => &self.zero_rtt,
        })
    }
}
