//! The stream scheduler (RFC 9000 §2.3, RFC 9218 §10).
//!
//! Owns the order of the streams that have something to send, and nothing else of them. Lower urgency always goes
//! first. Within an urgency:
//!
//! 1. what needs no connection credit goes first, in order of stream IDs: retransmissions and ends of streams. They are
//!    bounded by what was lost, so they cannot starve others, and do not wait behind an endless stream;
//! 2. non-incremental streams are sent one after the other, in order of stream IDs;
//! 3. incremental streams take turns, a frame each;
//! 4. if both kinds are waiting, they alternate, so that neither starves (RFC 9218 leaves this open).
//!
//! The queues are ordered sets: O(log n) to change, O(1) to check for waiting streams.

use std::collections::BTreeSet;

use lastbyte_wire::StreamId;

#[cfg(test)]
mod tests;

/// The priority of a stream (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    level: u8,
    incremental: bool,
}

impl Priority {
    /// Above all urgencies available to applications: for streams on which others depend, such as the control and QPACK
    /// streams of HTTP/3.
    pub const CRITICAL: Self = Self {
        level: 0,
        incremental: false,
    };
    /// The lowest priority.
    pub const URGENCY_MAX: u8 = 7;
    /// The default (RFC 9218 §4.1).
    pub const URGENCY_DEFAULT: u8 = 3;

    /// `urgency` is 0 (first) to 7 (last); larger values count as 7. Incremental streams share bandwidth, others are
    /// sent one by one.
    #[must_use]
    pub const fn new(urgency: u8, incremental: bool) -> Self {
        let urgency = if urgency > Self::URGENCY_MAX {
            Self::URGENCY_MAX
        } else {
            urgency
        };
        Self {
            level: urgency + 1,
            incremental,
        }
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::new(Self::URGENCY_DEFAULT, false)
    }
}

/// The pending data of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Data that needs no connection credit: retransmissions, or an end without data.
    Unmetered,
    /// New data within the stream's own limit.
    Fresh,
}

/// The position of a stream in the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    priority: Priority,
    class: Class,
    /// The turn of an incremental stream, otherwise 0.
    turn: u64,
}

impl Place {
    /// The pending data of the stream.
    pub(super) fn class(self) -> Class {
        self.class
    }
}

#[derive(Debug, Default)]
struct Level {
    unmetered: BTreeSet<StreamId>,
    sequential: BTreeSet<StreamId>,
    incremental: BTreeSet<(u64, StreamId)>,
    is_turn_of_incremental: bool,
}

impl Level {
    /// The stream that sends next on this level.
    fn next(&self, has_credit: bool) -> Option<StreamId> {
        if let Some(id) = self.unmetered.first() {
            return Some(*id);
        }
        if !has_credit {
            return None;
        }
        let sequential = self.sequential.first().copied();
        let incremental = || self.incremental.first().map(|(_, id)| *id);
        if self.is_turn_of_incremental {
            incremental().or(sequential)
        } else {
            sequential.or_else(incremental)
        }
    }

    fn is_empty(&self) -> bool {
        self.unmetered.is_empty() && self.sequential.is_empty() && self.incremental.is_empty()
    }
}

/// The queues. Public because the order is the same over HTTP/2.
#[derive(Debug, Default)]
pub struct Scheduler {
    /// The levels used so far.
    levels: [Option<Box<Level>>; Priority::URGENCY_MAX as usize + 2],
    /// Bit n is set if there is a stream on level n.
    occupied: u16,
    unmetered: usize,
    fresh: usize,
    next_turn: u64,
}

impl Scheduler {
    pub(super) const fn has_unmetered(&self) -> bool {
        self.unmetered > 0
    }

    pub(super) const fn has_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// Frees the levels without streams.
    pub(super) fn release_memory(&mut self) {
        for (number, level) in self.levels.iter_mut().enumerate() {
            if self.occupied & (1 << number) == 0 {
                *level = None;
            }
        }
    }

    /// The stream that sends next; if there is no connection credit, among those that need none.
    pub fn next(&self, has_credit: bool) -> Option<StreamId> {
        let mut occupied = self.occupied;
        while let Some(Some(level)) = self.levels.get(occupied.trailing_zeros() as usize) {
            if let Some(id) = level.next(has_credit) {
                return Some(id);
            }
            occupied &= occupied - 1;
        }
        None
    }

    /// The streams with new data, in the order of their turns, except that those of each kind of an urgency come together.
    pub fn fresh(&self) -> impl Iterator<Item = StreamId> {
        self.levels.iter().flatten().flat_map(|level| {
            let incremental = || level.incremental.iter().map(|(_, id)| *id);
            let (first, last) = if level.is_turn_of_incremental {
                (Some(incremental()), None)
            } else {
                (None, Some(incremental()))
            };
            let sequential = level.sequential.iter().copied();
            let first = first.into_iter().flatten();
            first.chain(sequential).chain(last.into_iter().flatten())
        })
    }

    /// Moves a stream to its queue, or out of all. `at` is its present position.
    pub fn place(
        &mut self,
        id: StreamId,
        at: &mut Option<Place>,
        wanted: Option<(Priority, Class)>,
    ) {
        let is_there = match (&*at, &wanted) {
            (Some(at), Some((priority, class))) => at.priority == *priority && at.class == *class,
            (None, None) => true,
            _ => false,
        };
        if is_there {
            return;
        }
        if let Some(place) = at.take() {
            self.remove(id, place);
        }
        if let Some((priority, class)) = wanted {
            let place = Place {
                priority,
                class,
                turn: self.next_turn,
            };
            *at = Some(place);
            self.insert(id, place);
        }
    }

    /// The stream sent new data: others have their turn.
    pub fn on_sent(&mut self, id: StreamId, at: &mut Option<Place>) {
        let Some(place) = at.filter(|place| place.class == Class::Fresh) else {
            return;
        };
        let Some(Some(level)) = self.levels.get_mut(usize::from(place.priority.level)) else {
            return;
        };
        level.is_turn_of_incremental = !place.priority.incremental;
        if place.priority.incremental && level.incremental.len() > 1 {
            self.remove(id, place);
            let place = Place {
                turn: self.next_turn,
                ..place
            };
            *at = Some(place);
            self.insert(id, place);
        }
    }

    fn insert(&mut self, id: StreamId, place: Place) {
        let Some(level) = self.levels.get_mut(usize::from(place.priority.level)) else {
            return;
        };
        let level = level.get_or_insert_default();
        self.occupied |= 1 << place.priority.level;
        match place.class {
            Class::Unmetered => {
                level.unmetered.insert(id);
                self.unmetered += 1;
                return;
            }
            Class::Fresh if place.priority.incremental => {
                level.incremental.insert((place.turn, id));
                self.next_turn += 1;
            }
            Class::Fresh => {
                level.sequential.insert(id);
            }
        }
        self.fresh += 1;
    }

    fn remove(&mut self, id: StreamId, place: Place) {
        let Some(Some(level)) = self.levels.get_mut(usize::from(place.priority.level)) else {
            return;
        };
        let was_there = match place.class {
            Class::Unmetered => level.unmetered.remove(&id),
            Class::Fresh if place.priority.incremental => {
                level.incremental.remove(&(place.turn, id))
            }
            Class::Fresh => level.sequential.remove(&id),
        };
        debug_assert!(was_there, "a stream is where its place says");
        if level.is_empty() {
            self.occupied &= !(1 << place.priority.level);
        }
        match place.class {
            Class::Unmetered => self.unmetered -= 1,
            Class::Fresh => self.fresh -= 1,
        }
    }
}
