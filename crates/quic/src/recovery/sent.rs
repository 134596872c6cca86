//! The packets sent in one packet number space, ascending by number.
//!
//! The cost of an acknowledgment is proportional to what is newly acknowledged, however much is in flight: a run of
//! completed packets records where it starts, so a range that repeats an earlier one is skipped. Packets declared lost
//! are kept for a while, to be recognized if they are acknowledged after all. Receipts of frames are in a second ring,
//! so packets with many frames need no allocation.
//!
//! # Bounds
//!
//! The peer decides what it acknowledges, so acknowledgments must not determine how many packets are kept. Packets in flight are bounded by
//! the congestion window; of all others (acknowledged ones between packets in flight, lost ones, non-ack-eliciting
//! packets, probes of other paths) at most [`SentPackets::SURPLUS_MAX`] are kept. Beyond that, acknowledged packets are
//! dropped, then the oldest of the rest. Numbers of dropped packets are missing from the ring: a later acknowledgment
//! of them has no effect.

use core::ops::Range;
use std::collections::{VecDeque, vec_deque};

use lastbyte_congestion::{Packet, Receipt as SendReceipt, Time};
use lastbyte_wire::frame::AckRanges;

use super::LossDecision;
use crate::{ack::Ecn, receipt::Receipt, space::SpaceState};

/// A packet to be added by [`SentPackets::push`].
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// When it was sent.
    pub sent_at: Time,
    /// Its size, in bytes of UDP payload.
    pub bytes: u16,
    /// Whether it is ack-eliciting (RFC 9002 §2).
    pub is_ack_eliciting: bool,
    /// Whether it counts as in flight (RFC 9002 §2).
    pub is_in_flight: bool,
    /// Whether it is an MTU probe, whose loss is not a congestion signal (RFC 9000 §14.4).
    pub is_mtu_probe: bool,
    /// Whether it was sent on another path than the one in use, so that it says nothing about that (RFC 9000 §9.4).
    pub is_off_path: bool,
    /// The ECN mark it was sent with.
    pub ecn: Ecn,
    /// The congestion controller's receipt.
    pub controller: SendReceipt,
}

impl SentPacket {
    /// The congestion controller's view of the packet.
    pub fn as_congestion(&self) -> Packet {
        Packet {
            bytes: u64::from(self.bytes),
            sent_at: self.sent_at,
            receipt: self.controller,
        }
    }
}

/// The state of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Outstanding.
    Outstanding,
    /// Declared lost, and remembered in case it is acknowledged.
    Lost,
    /// Acknowledged.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u64,
    packet: SentPacket,
    fate: Fate,
    /// Whether it was in flight when it was sent; it counts as such while it is outstanding, on any path.
    counts_in_flight: bool,
    /// Whether an acknowledged packet between this one and the slot before it has been dropped.
    follows_acked: bool,
    /// Start of the run of completed packets that ends here.
    run_start: u64,
    /// Its receipts are `receipts..receipts + receipt_count` of all receipts ever stored.
    receipts: u64,
    receipt_count: u16,
}

impl Slot {
    fn receipts_end(&self) -> u64 {
        self.receipts + u64::from(self.receipt_count)
    }
}

/// A skipped number: a peer that acknowledges it is misbehaving (RFC 9000 §21.4).
#[derive(Clone, Copy, Debug)]
struct Skipped {
    number: u64,
    at: Time,
}

/// The packets sent in one space.
#[derive(Clone, Debug)]
pub struct SentPackets {
    /// The number of the next packet.
    next: u64,
    slots: VecDeque<Slot>,
    skipped: VecDeque<Skipped>,
    /// Index at which the last lookup among them ended.
    skipped_at: usize,
    /// Ranges of the ACK frame before, descending, behind those of the frame that is being processed: everything in them is
    /// acknowledged. At most [`SentPackets::RANGES_MAX`].
    ranges: VecDeque<(u64, u64)>,
    /// Number of ranges of the frame before that are left.
    ranges_before: usize,
    /// The smallest number of the first range of the frame before.
    rest_from: Option<u64>,
    /// Its other ranges, as they were encoded: at most a datagram.
    rest: Vec<u8>,
    /// Number of receipts before the first one kept.
    receipts_base: u64,
    receipts: VecDeque<Receipt>,
    largest_acked: Option<u64>,
    /// No packet below is outstanding.
    oldest_outstanding: u64,
    /// Outstanding packets that count as in flight.
    in_flight: usize,
    ack_eliciting_outstanding: u64,
}

/// The peer acknowledged a packet that was never sent, which closes the connection (RFC 9000 §13.1, §21.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckedUnsent {
    /// Its number.
    pub number: u64,
}

/// A packet that an ACK frame newly acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct NewlyAcked {
    /// Its number.
    pub number: u64,
    /// The packet.
    pub packet: SentPacket,
    /// Whether it had been declared lost.
    pub was_lost: bool,
}

impl SentPackets {
    /// Maximum number of packets kept besides those in flight.
    pub const SURPLUS_MAX: usize = 1000;
    /// Packets kept besides those in flight after the oldest were dropped.
    const SURPLUS_KEPT: usize = 750;
    /// Maximum number of skipped numbers remembered.
    const SKIPPED_MAX: usize = 256;
    /// Maximum number of ranges of an ACK frame remembered.
    const RANGES_MAX: usize = 256;
    /// At this many packets only probes and acknowledgments are sent: 27 MB, or 314 MB in flight with datagrams of 1200
    /// bytes.
    pub const FULL: usize = 1 << 18;
    /// At this many packets, which probes alone do not reach, the connection is closed.
    pub const LIMIT: usize = Self::FULL + 4096;

    /// No packet sent yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            next: 0,
            slots: VecDeque::new(),
            skipped: VecDeque::new(),
            skipped_at: 0,
            ranges: VecDeque::new(),
            ranges_before: 0,
            rest_from: None,
            rest: Vec::new(),
            receipts_base: 0,
            receipts: VecDeque::new(),
            largest_acked: None,
            oldest_outstanding: 0,
            in_flight: 0,
            ack_eliciting_outstanding: 0,
        }
    }

    /// The number of the next packet.
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// The largest number the peer acknowledged.
    pub const fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Whether any ack-eliciting packet is outstanding.
    pub const fn has_ack_eliciting(&self) -> bool {
        self.ack_eliciting_outstanding > 0
    }

    /// Number of packets kept: at most [`SentPackets::SURPLUS_MAX`] besides those in flight.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Number of outstanding packets that count as in flight, on the path in use or, since the last change of path, on the
    /// previous one.
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The outstanding packets, ascending by number.
    pub fn outstanding(&self) -> impl Iterator<Item = &SentPacket> {
        let slots = self.slots.iter();
        slots
            .filter(|slot| slot.fate == Fate::Outstanding)
            .map(|slot| &slot.packet)
    }

    /// A packet with the next number was sent, with the receipts of its frames. Returns how many outstanding packets
    /// were dropped to make room.
    pub fn push(&mut self, packet: SentPacket, receipts: impl IntoIterator<Item = Receipt>) -> u64 {
        let start = self.receipts_base + self.receipts.len() as u64;
        // One or two: cheaper individually than as a batch.
        for receipt in receipts {
            self.receipts.push_back(receipt);
        }
        let count = self.receipts_base + self.receipts.len() as u64 - start;
        self.ack_eliciting_outstanding += u64::from(packet.is_ack_eliciting);
        self.in_flight += usize::from(packet.is_in_flight);
        self.slots.push_back(Slot {
            number: self.next,
            packet,
            fate: Fate::Outstanding,
            counts_in_flight: packet.is_in_flight,
            follows_acked: false,
            run_start: 0,
            receipts: start,
            receipt_count: u16::try_from(count).unwrap_or(u16::MAX),
        });
        self.next += 1;
        self.drop_surplus()
    }

    /// Skips the next number, so that a peer that acknowledges what it has not received is detected (RFC 9000 §21.4).
    pub fn skip(&mut self, now: Time) {
        self.skipped.push_back(Skipped {
            number: self.next,
            at: now,
        });
        if self.skipped.len() > Self::SKIPPED_MAX {
            self.skipped.pop_front();
        }
        self.next += 1;
    }

    /// An ACK frame follows: its ranges are passed to [`SentPackets::acknowledge_next`], in descending order.
    pub fn start_frame(&mut self) {
        self.ranges.drain(..self.ranges_before);
        self.ranges_before = self.ranges.len();
    }

    /// Acknowledges the next range of an ACK frame, as [`SentPackets::acknowledge`] does. Most ranges but the first are part
    /// of a range of the frame before, and are skipped.
    ///
    /// # Errors
    ///
    /// As [`SentPackets::acknowledge`].
    pub fn acknowledge_next(
        &mut self,
        first: u64,
        last: u64,
        newly: &mut impl FnMut(&NewlyAcked),
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<bool, AckedUnsent> {
        // Ranges above this one contain none that follows either.
        while self.range_before().is_some_and(|(known, _)| known > last) {
            self.ranges.pop_front();
            self.ranges_before -= 1;
        }
        let is_repeated = self
            .range_before()
            .is_some_and(|(known_first, known_last)| known_first <= first && last <= known_last);
        let is_new = !is_repeated && self.acknowledge(first, last, newly, receipts)?;
        if self.ranges.len() - self.ranges_before < Self::RANGES_MAX {
            self.ranges.push_back((first, last));
        }
        Ok(is_new)
    }

    /// Whether the encoded ranges that follow the one that starts at this number are those that followed it in the frame before,
    /// or the first of them. Then none contains a packet that is newly acknowledged, and they need not be passed on: nearly always,
    /// only the first range of a frame grows, or is new.
    pub fn is_rest_known(&mut self, first: u64, rest: &[u8]) -> bool {
        if rest.is_empty() || self.rest_from != Some(first) || !self.rest.starts_with(rest) {
            return false;
        }
        while self.range_before().is_some_and(|(known, _)| known >= first) {
            self.ranges.pop_front();
            self.ranges_before -= 1;
        }
        // The others follow those of this frame.
        self.ranges.rotate_left(self.ranges_before);
        self.ranges.truncate(Self::RANGES_MAX);
        self.ranges_before = 0;
        true
    }

    /// The ACK frame is over. These are its ranges.
    pub fn end_frame(&mut self, mut ranges: AckRanges<'_>) {
        self.rest_from = ranges.next().map(|range| range.start().get());
        self.rest.clear();
        self.rest.extend_from_slice(ranges.encoded());
    }

    /// The next range of the frame before.
    #[inline]
    fn range_before(&self) -> Option<(u64, u64)> {
        let ranges = self.ranges.front().copied();
        ranges.filter(|_| self.ranges_before > 0)
    }

    /// Acknowledges `first..=last`. `newly` is called for each packet that was not acknowledged before, ascending
    /// within a run; `receipts` is called with the receipts of a run after its packets, with those of consecutive
    /// stream data joined. Returns whether anything was newly acknowledged.
    ///
    /// # Errors
    ///
    /// Returns [`AckedUnsent`] if a number of the range was never sent. Then nothing of the range is acknowledged.
    pub fn acknowledge(
        &mut self,
        first: u64,
        last: u64,
        newly: &mut impl FnMut(&NewlyAcked),
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<bool, AckedUnsent> {
        if last >= self.next {
            return Err(AckedUnsent { number: last });
        }
        self.skipped_at = self.first_skipped_from(first);
        if let Some(skipped) = self.skipped.get(self.skipped_at)
            && skipped.number <= last
        {
            return Err(AckedUnsent {
                number: skipped.number,
            });
        }
        self.largest_acked = self.largest_acked.max(Some(last));
        // A range that was reported before, as are most ranges of an ACK frame but the first.
        let Some(oldest) = self.slots.front().map(|slot| slot.number) else {
            return Ok(false);
        };
        let mut end = self.index_from(last + 1);
        // All of it is completed, or has been dropped.
        let is_known = |newest: &Slot| {
            newest.number < first
                || (newest.fate == Fate::Done && newest.run_start <= first.max(oldest))
        };
        let newest = end.checked_sub(1).and_then(|index| self.slots.get(index));
        if newest.is_none_or(is_known) {
            return Ok(false);
        }
        let start = self.index_from(first);
        let (mut is_new, mut above) = (false, None);
        while end > start {
            if let Some(run_start) = self.run_start(end - 1) {
                // The range joins the runs that it contains, so that ranges which repeat it take fewer steps.
                let above = above.replace(end - 1);
                if let Some(slot) = above.and_then(|above| self.slots.get_mut(above)) {
                    slot.run_start = run_start;
                }
                end = self.index_from(run_start).min(end - 1);
                continue;
            }
            is_new = true;
            let mut lower = end - 1;
            while lower > start && self.run_start(lower - 1).is_none() {
                lower -= 1;
            }
            self.acknowledge_run(lower..end, newly);
            self.receipts_of_run(lower..end, receipts);
            end = lower;
        }
        if is_new {
            self.trim(Time::ZERO);
        }
        Ok(is_new)
    }

    /// The index of the first skipped number from `first` on. The ranges of an ACK frame come in descending order, usually
    /// with one skipped number between two of them: so it is the last, or the one before the index found last.
    fn first_skipped_from(&self, first: u64) -> usize {
        let number = |index: usize| self.skipped.get(index).map(|one| one.number);
        let ends_before = |index: usize| index.checked_sub(1).and_then(number) < Some(first);
        let (len, before) = (self.skipped.len(), self.skipped_at.saturating_sub(1));
        if ends_before(len) {
            len
        } else if ends_before(before) && number(before) >= Some(first) {
            before
        } else {
            self.skipped.partition_point(|one| one.number < first)
        }
    }

    /// The start of the run of completed packets that ends at this index, if the packet there is completed.
    fn run_start(&self, index: usize) -> Option<u64> {
        self.slots
            .get(index)
            .filter(|slot| slot.fate == Fate::Done)
            .map(|slot| slot.run_start)
    }

    /// Acknowledges the packets at these indices, none of which is completed.
    fn acknowledge_run(&mut self, run: Range<usize>, newly: &mut impl FnMut(&NewlyAcked)) {
        let run_before = run
            .start
            .checked_sub(1)
            .and_then(|before| self.run_start(before));
        let mut run_start = run_before;
        for slot in self.slots.range_mut(run) {
            let acked = NewlyAcked {
                number: slot.number,
                packet: slot.packet,
                was_lost: slot.fate == Fate::Lost,
            };
            slot.fate = Fate::Done;
            slot.run_start = *run_start.get_or_insert(slot.number);
            if !acked.was_lost {
                self.in_flight -= usize::from(slot.counts_in_flight);
                self.ack_eliciting_outstanding -= u64::from(acked.packet.is_ack_eliciting);
            }
            newly(&acked);
        }
    }

    /// Returns the receipts of the packets at these indices, joined where they are consecutive data of one stream, so
    /// that acknowledging many packets of a stream takes one lookup.
    fn receipts_of_run(&self, run: Range<usize>, each: &mut impl FnMut(Receipt)) {
        let slots = run.end.checked_sub(1).and_then(|last| {
            let (first, last) = (self.slots.get(run.start)?, self.slots.get(last)?);
            Some((first.receipts, last.receipts_end()))
        });
        let Some((start, end)) = slots else {
            return;
        };
        let mut pending: Option<Receipt> = None;
        for receipt in self.receipts_in(start..end) {
            match pending.and_then(|before| before.joined(receipt)) {
                Some(joined) => pending = Some(joined),
                None => {
                    if let Some(before) = pending.replace(*receipt) {
                        each(before);
                    }
                }
            }
        }
        if let Some(last) = pending {
            each(last);
        }
    }

    /// Returns the receipts of the oldest outstanding ack-eliciting packets, of at most `count` packets. They stay
    /// outstanding.
    pub fn oldest(&self, count: usize, each: &mut impl FnMut(Receipt)) {
        let first = self.index_from(self.oldest_outstanding);
        let outstanding = self.slots.iter().skip(first).filter(|slot| {
            let packet = &slot.packet;
            slot.fate == Fate::Outstanding
                && packet.is_ack_eliciting
                && !packet.is_off_path
                && !packet.is_mtu_probe
        });
        for slot in outstanding.take(count) {
            self.receipts_in(slot.receipts..slot.receipts_end())
                .copied()
                .for_each(&mut *each);
        }
    }

    /// Decides on the outstanding packets below the largest acknowledged, from the oldest up to the first that is not
    /// lost yet. `lost` is called for each lost packet, ascending, with its receipts. Returns when the first remaining
    /// packet will be lost, if there is one.
    pub fn declare_lost(
        &mut self,
        mut decide: impl FnMut(u64, &SentPacket) -> LossDecision,
        lost: &mut impl FnMut(u64, &SentPacket, LossDecision, &mut dyn Iterator<Item = Receipt>),
    ) -> Option<Time> {
        let largest_acked = self.largest_acked?;
        let mut index = self.index_from(self.oldest_outstanding);
        while let Some(slot) = self
            .slots
            .get(index)
            .filter(|slot| slot.number < largest_acked)
        {
            if slot.fate == Fate::Outstanding {
                let decision = decide(slot.number, &slot.packet);
                if let LossDecision::Until(at) = decision {
                    self.oldest_outstanding = slot.number;
                    return Some(at);
                }
                self.lose(index, &mut |number, packet, receipts| {
                    lost(number, packet, decision, receipts);
                });
            }
            index += 1;
        }
        self.oldest_outstanding = self.oldest_outstanding.max(largest_acked);
        None
    }

    /// The outstanding packet at this index is lost.
    fn lose(
        &mut self,
        index: usize,
        lost: &mut impl FnMut(u64, &SentPacket, &mut dyn Iterator<Item = Receipt>),
    ) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        slot.fate = Fate::Lost;
        let (number, packet) = (slot.number, slot.packet);
        let receipts = slot.receipts..slot.receipts_end();
        self.in_flight -= usize::from(slot.counts_in_flight);
        self.ack_eliciting_outstanding -= u64::from(packet.is_ack_eliciting);
        lost(number, &packet, &mut self.receipts_in(receipts).copied());
    }

    /// The span of sending times of ack-eliciting packets lost in one run, up to `newest`, with none acknowledged
    /// between them, all sent after `since`: the input of persistent congestion (RFC 9002 §7.6.2). MTU probes are no
    /// sign of congestion (RFC 9000 §14.4), nor are packets of another path: they neither end the run nor count in it.
    pub fn lost_run(&self, newest: u64, since: Time) -> Option<(Time, Time)> {
        let mut span: Option<(Time, Time)> = None;
        let end = self.index_from(newest.saturating_add(1));
        for slot in self.slots.iter().take(end).rev() {
            if slot.fate != Fate::Lost || slot.packet.sent_at <= since {
                break;
            }
            let packet = &slot.packet;
            if packet.is_ack_eliciting && !packet.is_mtu_probe && !packet.is_off_path {
                let latest = span.map_or(packet.sent_at, |(_, latest)| latest);
                span = Some((packet.sent_at, latest));
            }
            if slot.follows_acked {
                break;
            }
        }
        span
    }

    /// Whether a packet sent after `from` and before `upto` is known to be acknowledged.
    pub fn has_acked_between(&self, from: Time, upto: Time) -> bool {
        let first = self
            .slots
            .partition_point(|slot| slot.packet.sent_at <= from);
        let after = self.slots.iter().skip(first);
        after
            .take_while(|slot| slot.packet.sent_at < upto)
            .any(|slot| slot.fate == Fate::Done || slot.follows_acked)
    }

    /// Gives up all outstanding packets: they count as lost, but not as congestion. `given_up` is called for each
    /// packet, with its receipts.
    pub fn give_up(
        &mut self,
        given_up: &mut impl FnMut(&SentPacket, &mut dyn Iterator<Item = Receipt>),
    ) {
        self.lose_outstanding(|_| true, given_up);
        self.oldest_outstanding = self.next;
    }

    fn lose_outstanding(
        &mut self,
        is_lost: impl Fn(&Slot) -> bool,
        lost: &mut impl FnMut(&SentPacket, &mut dyn Iterator<Item = Receipt>),
    ) {
        for index in self.index_from(self.oldest_outstanding)..self.slots.len() {
            let slot = self.slots.get(index);
            if slot.is_some_and(|slot| slot.fate == Fate::Outstanding && is_lost(slot)) {
                self.lose(index, &mut |_, packet, receipts| lost(packet, receipts));
                if let Some(slot) = self.slots.get_mut(index) {
                    slot.packet.is_in_flight = false;
                }
            }
        }
    }

    /// The connection uses another path from now on: outstanding packets are no longer in flight, and do not affect the
    /// new path (RFC 9000 §9.4). Their acknowledgments still count for their frames. Outstanding packets of the path
    /// before are given up, so that a peer that migrates repeatedly and acknowledges nothing cannot accumulate packets.
    pub fn leave_path(
        &mut self,
        given_up: &mut impl FnMut(&SentPacket, &mut dyn Iterator<Item = Receipt>),
    ) {
        self.lose_outstanding(
            |slot| slot.counts_in_flight && slot.packet.is_off_path,
            given_up,
        );
        for slot in &mut self.slots {
            let packet = &mut slot.packet;
            packet.is_in_flight = false;
            packet.is_mtu_probe = false;
            packet.is_off_path = true;
            packet.ecn = Ecn::NotEct;
        }
    }

    /// Drops packets declared lost, and skipped numbers, from before `before`: they are not expected to be acknowledged
    /// any more. Returns how many outstanding packets were dropped.
    pub fn expire(&mut self, before: Time) -> u64 {
        self.trim(before);
        while let Some(skipped) = self.skipped.front()
            && skipped.at < before
            && self
                .slots
                .front()
                .is_none_or(|slot| slot.number > skipped.number)
        {
            self.skipped.pop_front();
        }
        self.drop_surplus()
    }

    /// Drops completed packets at the front, and lost ones sent before `before`.
    fn trim(&mut self, before: Time) {
        let is_over = |slot: &Slot| match slot.fate {
            Fate::Outstanding => false,
            Fate::Lost => slot.packet.sent_at < before,
            Fate::Done => true,
        };
        let over = self.slots.iter().take_while(|slot| is_over(slot)).count();
        let last = over.checked_sub(1).and_then(|last| self.slots.get(last));
        let Some(receipts_end) = last.map(Slot::receipts_end) else {
            return;
        };
        let receipts = self.receipts_in(self.receipts_base..receipts_end).len();
        self.slots.drain(..over);
        self.receipts.drain(..receipts);
        self.receipts_base += receipts as u64;
    }

    /// Enforces the bound described in the module's header. Returns how many outstanding packets were dropped.
    fn drop_surplus(&mut self) -> u64 {
        let surplus = self.slots.len() - self.in_flight;
        if surplus <= Self::SURPLUS_MAX {
            return 0;
        }
        // Where the acknowledged packets end: most of those in flight are behind it.
        let acked_end = self
            .largest_acked
            .map_or(0, |largest| self.index_from(largest + 1));
        let done = |slot: &&Slot| slot.fate == Fate::Done;
        let done = self.slots.range(..acked_end).filter(done).count();
        let excess = (surplus - done).saturating_sub(Self::SURPLUS_KEPT);
        let is_droppable = |slot: &Slot| match slot.fate {
            Fate::Outstanding => !slot.counts_in_flight,
            Fate::Lost => true,
            Fate::Done => false,
        };
        // Where the oldest of these end.
        let slots = self.slots.iter().enumerate();
        let droppable = slots.filter(|(_, slot)| is_droppable(slot)).take(excess);
        let dropped_end = droppable.last().map_or(0, |(index, _)| index + 1);
        // Behind that, only acknowledged packets are dropped.
        let end = acked_end.max(dropped_end);
        let mut forgotten = 0;
        // What is kept of the slots before `end` moves up to it, and their receipts as well.
        let mut kept_from = end;
        let mut receipts_from = self.receipts_before(end);
        for index in (0..end).rev() {
            let Some(slot) = self.slots.get(index) else {
                continue;
            };
            if slot.fate == Fate::Done {
                if let Some(next) = self.slots.get_mut(kept_from) {
                    next.follows_acked = true;
                }
            } else if index < dropped_end && is_droppable(slot) {
                let is_outstanding = slot.fate == Fate::Outstanding;
                forgotten += u64::from(is_outstanding);
                self.ack_eliciting_outstanding -=
                    u64::from(is_outstanding && slot.packet.is_ack_eliciting);
            } else {
                let mut slot = *slot;
                let first = self.receipts_before(index);
                for receipt in (first..first + usize::from(slot.receipt_count)).rev() {
                    receipts_from -= 1;
                    self.receipts.swap(receipt, receipts_from);
                }
                slot.receipts = self.receipts_base + receipts_from as u64;
                kept_from -= 1;
                if let Some(place) = self.slots.get_mut(kept_from) {
                    *place = slot;
                }
            }
        }
        self.slots.drain(..kept_from);
        self.receipts.drain(..receipts_from);
        self.receipts_base += receipts_from as u64;
        forgotten
    }

    /// Frees memory that is not in use.
    pub fn release_memory(&mut self) {
        self.slots.shrink_to_fit();
        self.skipped.shrink_to_fit();
        self.ranges = VecDeque::new();
        self.ranges_before = 0;
        self.rest = Vec::new();
        self.rest_from = None;
        self.receipts.shrink_to_fit();
    }

    /// Number of receipts kept of the slots before this one.
    fn receipts_before(&self, index: usize) -> usize {
        self.slots.get(index).map_or(self.receipts.len(), |slot| {
            usize::try_from(slot.receipts - self.receipts_base).unwrap_or(usize::MAX)
        })
    }

    fn receipts_in(&self, range: Range<u64>) -> vec_deque::Iter<'_, Receipt> {
        let kept = self.receipts.len();
        let index = |of: u64| {
            let index = of.saturating_sub(self.receipts_base);
            usize::try_from(index).map_or(kept, |index| index.min(kept))
        };
        self.receipts.range(index(range.start)..index(range.end))
    }

    /// The index of the first packet with this or a larger number. Numbers are missing where one was skipped or a
    /// packet dropped, so the search covers as many slots as numbers are missing: usually one.
    fn index_from(&self, number: u64) -> usize {
        let (Some(first), Some(last)) = (self.slots.front(), self.slots.back()) else {
            return 0;
        };
        let len = self.slots.len();
        let distance = number.saturating_sub(first.number);
        let distance = usize::try_from(distance).unwrap_or(usize::MAX);
        let span = usize::try_from(last.number - first.number).unwrap_or(usize::MAX);
        let missing = span.saturating_add(1) - len;
        let (mut low, mut high) = (distance.saturating_sub(missing).min(len), distance.min(len));
        while low < high {
            let middle = low.midpoint(high);
            let is_below = |slot: &Slot| slot.number < number;
            if self.slots.get(middle).is_some_and(is_below) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl SpaceState for SentPackets {
    fn unused() -> &'static Self {
        static UNUSED: SentPackets = SentPackets::new();
        &UNUSED
    }
}

impl Default for SentPackets {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
