//! The keys of the next generation, and where they come from (RFC 9001 §6.1).

use std::fmt;

use lastbyte_wire::packet::Version;
use rustls::quic;

use crate::crypto::{PacketKey, kdf_hook, plain};

/// The keys of the generation to come.
#[derive(Debug)]
pub struct NextKeys {
    /// For what is sent.
    pub seal: PacketKey,
    /// For what is received.
    pub open: PacketKey,
}

/// Where the keys of each next generation come from.
pub struct KeyUpdates(Source);

enum Source {
    /// With whose labels they are derived, if not with those of the version that rustls knows.
    Tls(Box<quic::Secrets>, Option<Version>),
    Plain(plain::KeyUpdates),
}

impl KeyUpdates {
    pub(in crate::crypto) fn tls(secrets: quic::Secrets, labels: Option<Version>) -> Self {
        Self(Source::Tls(Box::new(secrets), labels))
    }

    pub(in crate::crypto) const fn plain(updates: plain::KeyUpdates) -> Self {
        Self(Source::Plain(updates))
    }

    /// The keys of one generation more.
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
