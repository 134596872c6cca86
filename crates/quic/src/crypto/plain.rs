//! Packet protection and handshakes without cryptography, for simulators: the same sizes, the same round trips, and one
//! seed gives the same bytes.
//!
//! Owns keys whose tag is a checksum ([`PacketKey`]) and their generations; in `handshake` a handshake with the messages of
//! TLS 1.3. **Never use it on a network**: payloads are readable, and anyone can compute tags.
//!
//! Decisions:
//!
//! - *The tag depends on key, packet number, header and payload*, so that a packet that was changed, sealed with other
//!   keys or given another number is not opened, as with an AEAD (RFC 9001 §5.3). A change within one word of 8 bytes is
//!   always detected: each step of the checksum is a bijection of its state. A simulator whose links change no bytes can
//!   leave header and payload out ([`Limits::tags_bytes`]), which is most of the cost.
//! - *The mask is zero*: headers are not protected, and packets can be read in a trace.
//! - *Keys follow from both hellos*, so that two ends have the same ones only if they have seen the same handshake.

use lastbyte_wire::{
    ConnectionId, Side,
    packet::{PacketNumber, PacketType, Version},
};

use super::{
    DirectionalKeys, HeaderKey, Keys, PacketKey as AnyPacketKey, TAG_LEN, key_update::NextKeys,
};

mod config;
mod handshake;
mod hash;
mod messages;
#[cfg(test)]
mod tests;

pub use config::{PlainClient, PlainServer, Resumption};
use hash::{Checksum, mix};
pub use messages::Sizes;

/// Usage limits of keys (RFC 9001 §6.6), and the coverage of their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets that may be sealed with a key. Default: 2^23, as for AES-GCM.
    pub confidentiality: u64,
    /// Packets of a connection that may fail authentication. Default: 2^52, as for AES-GCM.
    pub integrity: u64,
    /// Whether a tag depends on header and payload, not on key and packet number alone. Default: yes. Initial packets:
    /// always.
    pub tags_bytes: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            confidentiality: 1 << 23,
            integrity: 1 << 52,
            tags_bytes: true,
        }
    }
}

/// A key whose tag is a checksum.
#[derive(Clone, Copy, Debug)]
pub struct PacketKey {
    secret: u64,
    limits: Limits,
}

impl PacketKey {
    /// The checksum of a packet.
    #[inline]
    pub(super) fn tag(&self, number: PacketNumber, header: &[u8], payload: &[u8]) -> [u8; TAG_LEN] {
        if !self.limits.tags_bytes {
            return u128::from(mix(self.secret, number.get())).to_be_bytes();
        }
        let mut checksum = Checksum::new(self.secret, number.get());
        checksum.add(header);
        checksum.add(payload);
        checksum.finish()
    }

    pub(super) const fn confidentiality_limit(&self) -> u64 {
        self.limits.confidentiality
    }

    pub(super) const fn integrity_limit(&self) -> u64 {
        self.limits.integrity
    }
}

/// From what all keys of a level are derived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret {
    value: u64,
    limits: Limits,
}

impl Secret {
    pub(super) const fn new(value: u64, limits: Limits) -> Self {
        Self { value, limits }
    }

    /// The secret of Initial packets.
    fn initial(version: Version, destination: &ConnectionId) -> Self {
        let mut checksum = Checksum::new(0, u64::from(version.number().get()));
        checksum.add(destination.as_slice());
        Self::new(checksum.word(), Limits::default())
    }

    /// The key with which `sender` seals.
    fn packet_key(self, level: PacketType, sender: Side, generation: u64) -> PacketKey {
        let level = match level {
            PacketType::Initial => 1,
            PacketType::ZeroRtt => 2,
            PacketType::Handshake => 3,
            PacketType::OneRtt => 4,
        };
        let sender = match sender {
            Side::Client => 1,
            Side::Server => 2,
        };
        PacketKey {
            secret: mix(mix(self.value, level << 8 | sender), generation),
            limits: self.limits,
        }
    }

    pub(super) fn directional(self, level: PacketType, sender: Side) -> DirectionalKeys {
        DirectionalKeys {
            packet: AnyPacketKey::plain(self.packet_key(level, sender, 0)),
            header: HeaderKey::PLAIN,
        }
    }

    pub(super) fn keys(self, level: PacketType, side: Side) -> Keys {
        Keys {
            seal: self.directional(level, side),
            open: self.directional(level, side.peer()),
        }
    }
}

/// The keys of an Initial packet (RFC 9001 §5.2).
pub fn initial_keys(side: Side, version: Version, destination: &ConnectionId) -> Keys {
    Secret::initial(version, destination).keys(PacketType::Initial, side)
}

/// Derives the 1-RTT keys of each next generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyUpdates {
    pub(super) secret: Secret,
    pub(super) side: Side,
    pub(super) generation: u64,
}

impl KeyUpdates {
    pub(super) fn next(&mut self) -> NextKeys {
        self.generation += 1;
        let key = |sender| {
            let key = self
                .secret
                .packet_key(PacketType::OneRtt, sender, self.generation);
            AnyPacketKey::plain(key)
        };
        NextKeys {
            seal: key(self.side),
            open: key(self.side.peer()),
        }
    }
}
