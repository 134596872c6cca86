//! The deadlines of all connections.
//!
//! Decision: a binary heap that stores the position of each connection, so that changing a deadline, which happens with
//! each packet, costs a few steps and no memory, and a distant deadline costs nothing until it is due. A timer wheel
//! would be O(1), but has to be advanced, and rounds.

use lastbyte_congestion::Time;

#[cfg(test)]
mod tests;

/// Deadlines by a small number, the slot of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// The earliest first; each no earlier than its parent.
    heap: Vec<(Time, u32)>,
    /// The position of each in the heap; [`ABSENT`] for none.
    places: Vec<u32>,
}

impl Timers {
    /// The earliest deadline.
    pub(super) fn next(&self) -> Option<Time> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// The connection with the earliest deadline, if that is due.
    pub(super) fn due(&self, now: Time) -> Option<u32> {
        let (at, index) = self.heap.first()?;
        (*at <= now).then_some(*index)
    }

    pub(super) const fn len(&self) -> usize {
        self.heap.len()
    }

    /// Sets or removes the deadline.
    pub(super) fn set(&mut self, index: u32, deadline: Option<Time>) {
        let place = self.place(index);
        match (place, deadline) {
            (None, None) => {}
            (None, Some(at)) => self.add(index, at),
            (Some(place), Some(at)) => {
                if let Some(entry) = self.heap.get_mut(place)
                    && entry.0 != at
                {
                    entry.0 = at;
                    self.settle(place);
                }
            }
            (Some(place), None) => self.remove(place),
        }
    }

    fn place(&self, index: u32) -> Option<usize> {
        let place = *self.places.get(index as usize)?;
        (place != ABSENT).then_some(place as usize)
    }

    fn add(&mut self, index: u32, at: Time) {
        let needed = index as usize + 1;
        if self.places.len() < needed {
            self.places.resize(needed, ABSENT);
        }
        self.heap.push((at, index));
        let place = self.heap.len() - 1;
        self.note(place);
        self.settle(place);
    }

    fn remove(&mut self, place: usize) {
        let (_, index) = self.heap.swap_remove(place);
        if let Some(place) = self.places.get_mut(index as usize) {
            *place = ABSENT;
        }
        if place < self.heap.len() {
            self.note(place);
            self.settle(place);
        }
    }

    /// Moves an entry up or down to its position.
    fn settle(&mut self, mut place: usize) {
        while place > 0 && self.is_before(place, (place - 1) / 2) {
            let parent = (place - 1) / 2;
            self.swap(place, parent);
            place = parent;
        }
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let child = if self.is_before(right, left) {
                right
            } else {
                left
            };
            if !self.is_before(child, place) {
                return;
            }
            self.swap(child, place);
            place = child;
        }
    }

    /// Whether the entry at `a` is due before the one at `b`. Of two with the same deadline, the lower slot is first,
    /// so that one seed gives one order.
    fn is_before(&self, a: usize, b: usize) -> bool {
        match (self.heap.get(a), self.heap.get(b)) {
            (Some(a), Some(b)) => a < b,
            _ => false,
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.note(a);
        self.note(b);
    }

    fn note(&mut self, place: usize) {
        if let Some((_, index)) = self.heap.get(place)
            && let Some(noted) = self.places.get_mut(*index as usize)
        {
            *noted = place as u32;
        }
    }
}

const ABSENT: u32 = u32::MAX;
