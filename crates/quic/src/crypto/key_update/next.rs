//! The keys of the next generation, and their derivation (RFC 9001 §6.1).

use std::fmt;

use lastbyte_wire::packet::Version;
use rustls::quic;

use crate::crypto::{PacketKey, kdf_hook, plain};

/// The keys of the next generation.
#[derive(Debug)]
pub struct NextKeys {
    /// For sending.
    pub seal: PacketKey,
    /// For receiving.
    pub open: PacketKey,
}

/// Derives the keys of each next generation.
pub struct KeyUpdates(Source);

enum Source {
    /// Which version's labels are used, if not those of the version known to rustls.
    Tls(Box<quic::Secrets>, Option<Version>),
    Plain(Box<plain::KeyUpdates>),
}

impl KeyUpdates {
    pub(in crate::crypto) fn tls(secrets: quic::Secrets, labels: Option<Version>) -> Self {
        Self(Source::Tls(Box::new(secrets), labels))
    }

    pub(in crate::crypto) fn plain(updates: plain::KeyUpdates) -> Self {
        Self(Source::Plain(Box::new(updates)))
    }

    /// The keys of the following generation.
    pub(super) fn next(&mut self) -> NextKeys {
        match &mut self.0 {
            Source::Tls(secrets, labels) => {
                let keys = kdf_hook::with_labels(*labels, || secrets.next_packet_keys());
                NextKeys {
                    seal: keys.local.into(),
                    open: keys.remote.into(),
                }
            }
            Source::Plain(updates) => updates.next(),
        }
    }
}

impl fmt::Debug for KeyUpdates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyUpdates(..)")
    }
}
