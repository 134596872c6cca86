//! Packet number spaces (RFC 9000 §12.3).

use lastbyte_wire::packet::PacketType;

/// A packet number space, with its own packet numbers, keys, acknowledgments and CRYPTO data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// For Initial packets.
    Initial,
    /// For Handshake packets.
    Handshake,
    /// For 0-RTT and 1-RTT packets: the application data space.
    Application,
}

impl Space {
    /// All spaces, in the order of the handshake.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];

    /// 0, 1 or 2.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The space that packets of this type belong to.
    #[must_use]
    pub const fn of(packet_type: PacketType) -> Self {
        match packet_type {
            PacketType::Initial => Self::Initial,
            PacketType::Handshake => Self::Handshake,
            PacketType::ZeroRtt | PacketType::OneRtt => Self::Application,
        }
    }
}

/// One value for each space.
#[derive(Clone, Debug, Default)]
pub struct PerSpace<T> {
    initial: T,
    handshake: T,
    application: T,
}

impl<T> PerSpace<T> {
    /// A value for each.
    pub const fn new(initial: T, handshake: T, application: T) -> Self {
        Self {
            initial,
            handshake,
            application,
        }
    }

    /// The value for a space.
    #[must_use]
    pub const fn get(&self, space: Space) -> &T {
        match space {
            Space::Initial => &self.initial,
            Space::Handshake => &self.handshake,
            Space::Application => &self.application,
        }
    }

    /// The value for a space, mutable.
    pub const fn get_mut(&mut self, space: Space) -> &mut T {
        match space {
            Space::Initial => &mut self.initial,
            Space::Handshake => &mut self.handshake,
            Space::Application => &mut self.application,
        }
    }
}
