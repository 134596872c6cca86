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

/// The state of a packet number space that can be shared while the space is not in use.
pub(crate) trait SpaceState: Clone + 'static {
    /// The state of a space that is not in use: before its first packet, and after its keys were discarded.
    fn unused() -> &'static Self;
}

/// The state of each space. That of the Initial and Handshake spaces takes memory only while the space is in use, which
/// is the first part of a connection's life.
#[derive(Clone, Debug)]
pub(crate) struct SpaceStates<T> {
    initial: Option<Box<T>>,
    handshake: Option<Box<T>>,
    application: T,
}

impl<T: SpaceState> SpaceStates<T> {
    pub(crate) const fn new(application: T) -> Self {
        Self {
            initial: None,
            handshake: None,
            application,
        }
    }

    pub(crate) fn get(&self, space: Space) -> &T {
        let early = match space {
            Space::Initial => &self.initial,
            Space::Handshake => &self.handshake,
            Space::Application => return &self.application,
        };
        early.as_deref().unwrap_or_else(|| T::unused())
    }

    /// Puts the space in use.
    pub(crate) fn get_mut(&mut self, space: Space) -> &mut T {
        let early = match space {
            Space::Initial => &mut self.initial,
            Space::Handshake => &mut self.handshake,
            Space::Application => return &mut self.application,
        };
        early.get_or_insert_with(|| Box::new(T::unused().clone()))
    }

    /// The spaces in use, in the order of the handshake.
    pub(crate) fn in_use_mut(&mut self) -> impl Iterator<Item = (Space, &mut T)> {
        let initial = self.initial.as_deref_mut();
        let handshake = self.handshake.as_deref_mut();
        let early = initial.map(|state| (Space::Initial, state));
        let early = early.into_iter();
        let early = early.chain(handshake.map(|state| (Space::Handshake, state)));
        early.chain([(Space::Application, &mut self.application)])
    }

    /// The keys of the Initial or Handshake space were discarded: its state is freed.
    pub(crate) fn discard(&mut self, space: Space) {
        match space {
            Space::Initial => self.initial = None,
            Space::Handshake => self.handshake = None,
            Space::Application => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SpaceState for u64 {
        fn unused() -> &'static Self {
            &7
        }
    }

    #[test]
    fn early_spaces_take_memory_while_they_are_in_use() {
        let mut states = SpaceStates::new(9);
        assert_eq!(Space::ALL.map(|space| *states.get(space)), [7, 7, 9]);
        assert_eq!(states.in_use_mut().count(), 1);
        for (value, space) in (1..).zip(Space::ALL) {
            *states.get_mut(space) += value;
        }
        assert_eq!(Space::ALL.map(|space| *states.get(space)), [8, 9, 12]);
        let in_use: Vec<_> = states.in_use_mut().map(|(space, _)| space).collect();
        assert_eq!(in_use, Space::ALL);
        for space in Space::ALL {
            states.discard(space);
        }
        assert_eq!(Space::ALL.map(|space| *states.get(space)), [7, 7, 12]);
        assert!(states.initial.is_none() && states.handshake.is_none());
    }
}
