//! The packets sent in one packet number space, in a ring by packet number.
//!
//! Acknowledging costs as much as is newly acknowledged, however much is in flight: a run of packets that are done knows
//! where it begins, so a range that repeats what was said before is stepped over. Packets declared lost stay for a while,
//! to be recognised if they are acknowledged after all. Receipts of frames lie in a second ring, so a packet of any
//! number of frames costs no allocation.

use std::collections::VecDeque;

use lastbyte_congestion::{Packet, Receipt as SendReceipt, Time};

use crate::{ack::EcnCodepoint, receipt::Receipt};

/// A packet on its way, as it is told to [`SentPackets::push`].
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// When it left.
    pub sent_at: Time,
    /// Its size, in bytes of UDP payload.
    pub bytes: u16,
    /// Whether it elicits an acknowledgment (RFC 9002 §2).
    pub is_ack_eliciting: bool,
    /// Whether it counts in flight (RFC 9002 §2).
    pub is_in_flight: bool,
    /// Whether it probes the path for a larger datagram size: then its loss is no congestion (RFC 9000 §14.4).
    pub is_mtu_probe: bool,
    /// Whether it went by another path than the one in use: then it says nothing of that (RFC 9000 §9.4).
    pub is_off_path: bool,
    /// The mark it was sent with.
    pub ecn: EcnCodepoint,
    /// What the congestion controller wants to know again.
    pub controller: SendReceipt,
}

impl SentPacket {
    /// As the congestion controller knows it.
    #[must_use]
    pub fn as_congestion(&self) -> Packet {
        Packet {
            bytes: u64::from(self.bytes),
            sent_at: self.sent_at,
            receipt: self.controller,
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// On its way.
    Outstanding,
    /// Declared lost, and remembered in case it was not.
    Lost,
    /// Acknowledged, or never sent: a number that was skipped.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    packet: SentPacket,
    fate: Fate,
    /// The number was never sent; acknowledging it is a lie (RFC 9000 §21.4).
    is_skipped: bool,
    /// Where the run of done packets that ends here begins.
    run_start: u64,
    /// Its receipts are `receipts..receipts + receipt_count` of all ever made.
    receipts: u64,
    receipt_count: u16,
}

/// On the way down through the numbers of a range.
enum Step {
    /// This one is news.
    News,
    /// It is not, nor are those of its run; the one below the run is next.
    GoOnAt(u64),
    /// Nor is any left.
    End,
}

/// The packets sent in one space.
#[derive(Clone, Debug)]
pub struct SentPackets {
    /// The number of the first slot.
    base: u64,
    slots: VecDeque<Slot>,
    /// How many receipts came before the first one kept.
    receipts_base: u64,
    receipts: VecDeque<Receipt>,
    largest_acked: Option<u64>,
    /// No packet below is outstanding.
    oldest_outstanding: u64,
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
    /// What was sent.
    pub packet: SentPacket,
    /// Whether it had been declared lost.
    pub was_lost: bool,
}

impl SentPackets {
    /// No packet sent yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            base: 0,
            slots: VecDeque::new(),
            receipts_base: 0,
            receipts: VecDeque::new(),
            largest_acked: None,
            oldest_outstanding: 0,
            ack_eliciting_outstanding: 0,
        }
    }

    /// The number of the next packet.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// The largest number the peer acknowledged.
    #[must_use]
    pub const fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Whether any packet that elicits an acknowledgment is outstanding.
    #[must_use]
    pub const fn has_ack_eliciting(&self) -> bool {
        self.ack_eliciting_outstanding > 0
    }

    /// How many slots there are: packets outstanding, and what is kept between and behind them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// A packet with the next number was sent, with the receipts of its frames.
    pub fn push(&mut self, packet: SentPacket, receipts: impl IntoIterator<Item = Receipt>) {
        let start = self.receipts_base + self.receipts.len() as u64;
        // One or two: cheaper one by one than as a batch.
        for receipt in receipts {
            self.receipts.push_back(receipt);
        }
        let count = self.receipts_base + self.receipts.len() as u64 - start;
        self.ack_eliciting_outstanding += u64::from(packet.is_ack_eliciting);
        self.slots.push_back(Slot {
            packet,
            fate: Fate::Outstanding,
            is_skipped: false,
            run_start: 0,
            receipts: start,
            receipt_count: u16::try_from(count).unwrap_or(u16::MAX),
        });
    }

    /// Skips the next number, so that a peer that acknowledges what it has not received gives itself away
    /// (RFC 9000 §21.4).
    pub fn skip(&mut self, now: Time) {
        let number = self.next_number();
        self.slots.push_back(Slot {
            packet: SentPacket {
                sent_at: now,
                bytes: 0,
                is_ack_eliciting: false,
                is_in_flight: false,
                is_mtu_probe: false,
                is_off_path: false,
                ecn: EcnCodepoint::NotEct,
                controller: SendReceipt::default(),
            },
            fate: Fate::Done,
            is_skipped: true,
            run_start: number,
            receipts: self.receipts_base + self.receipts.len() as u64,
            receipt_count: 0,
        });
        self.join_run(number);
    }

    /// Acknowledges `first..=last`. `newly` is told of each packet that was not acknowledged before, ascending within a
    /// run, with its receipts.
    ///
    /// # Errors
    ///
    /// A number of the range was never sent. Whatever was told before stands; the connection is to be closed anyway.
    pub fn acknowledge(
        &mut self,
        first: u64,
        last: u64,
        newly: &mut impl FnMut(&NewlyAcked, &mut dyn Iterator<Item = Receipt>),
    ) -> Result<(), AckedUnsent> {
        if last >= self.next_number() {
            return Err(AckedUnsent { number: last });
        }
        self.largest_acked = self.largest_acked.max(Some(last));
        let first = first.max(self.base);
        let mut upper = last;
        while upper >= first {
            match self.step_over_done(first, upper)? {
                Step::News => {}
                Step::GoOnAt(below) => {
                    upper = below;
                    continue;
                }
                Step::End => break,
            }
            let mut lower = upper;
            while lower > first && self.fate(lower - 1) != Fate::Done {
                lower -= 1;
            }
            for number in lower..=upper {
                self.acknowledge_one(number, newly);
            }
            let Some(next) = lower.checked_sub(1) else {
                break;
            };
            upper = next;
        }
        self.trim();
        Ok(())
    }

    /// Looks at `number` on the way down to `first`.
    fn step_over_done(&self, first: u64, number: u64) -> Result<Step, AckedUnsent> {
        let Some(slot) = self.slot(number).filter(|slot| slot.fate == Fate::Done) else {
            return Ok(Step::News);
        };
        // A skipped number is a run of its own: see `join_run`.
        if slot.is_skipped {
            return Err(AckedUnsent { number });
        }
        let below = slot.run_start.max(self.base).checked_sub(1);
        Ok(below
            .filter(|below| *below >= first)
            .map_or(Step::End, Step::GoOnAt))
    }

    fn acknowledge_one(
        &mut self,
        number: u64,
        newly: &mut impl FnMut(&NewlyAcked, &mut dyn Iterator<Item = Receipt>),
    ) {
        let Some(slot) = self.slot_mut(number) else {
            return;
        };
        let acked = NewlyAcked {
            number,
            packet: slot.packet,
            was_lost: slot.fate == Fate::Lost,
        };
        slot.fate = Fate::Done;
        let (start, count) = (slot.receipts, slot.receipt_count);
        self.ack_eliciting_outstanding = self
            .ack_eliciting_outstanding
            .saturating_sub(u64::from(acked.packet.is_ack_eliciting && !acked.was_lost));
        newly(&acked, &mut self.receipts_of(start, count));
        self.join_run(number);
    }

    /// Tells the receipts of the oldest packets outstanding that elicit acknowledgments, of so many at most. They stay
    /// outstanding.
    pub fn oldest(&self, count: usize, each: &mut impl FnMut(Receipt)) {
        let first = self.oldest_outstanding.saturating_sub(self.base) as usize;
        let outstanding = self.slots.iter().skip(first).filter(|slot| {
            let packet = &slot.packet;
            slot.fate == Fate::Outstanding
                && packet.is_ack_eliciting
                && !packet.is_off_path
                && !packet.is_mtu_probe
        });
        for slot in outstanding.take(count) {
            self.receipts_of(slot.receipts, slot.receipt_count)
                .for_each(&mut *each);
        }
    }

    /// Lets a packet that is done know where its run begins. Skipped numbers stay apart, so that no range steps over
    /// them.
    fn join_run(&mut self, number: u64) {
        let run_before = number
            .checked_sub(1)
            .and_then(|before| self.slot(before))
            .filter(|before| before.fate == Fate::Done && !before.is_skipped)
            .map(|before| before.run_start);
        if let Some(slot) = self.slot_mut(number) {
            slot.run_start = run_before.filter(|_| !slot.is_skipped).unwrap_or(number);
        }
    }

    /// Declares lost what `is_lost` says so of, among the packets outstanding up to the largest acknowledged. `lost` is
    /// told of each, ascending, with its receipts.
    pub fn declare_lost(
        &mut self,
        mut is_lost: impl FnMut(u64, &SentPacket) -> bool,
        lost: &mut impl FnMut(u64, &SentPacket, &mut dyn Iterator<Item = Receipt>),
    ) {
        let Some(largest_acked) = self.largest_acked else {
            return;
        };
        let mut oldest = None;
        for number in self.oldest_outstanding.max(self.base)..largest_acked {
            let Some(slot) = self
                .slot_mut(number)
                .filter(|slot| slot.fate == Fate::Outstanding)
            else {
                continue;
            };
            let packet = slot.packet;
            if !is_lost(number, &packet) {
                oldest.get_or_insert(number);
                continue;
            }
            slot.fate = Fate::Lost;
            let (start, count) = (slot.receipts, slot.receipt_count);
            self.ack_eliciting_outstanding = self
                .ack_eliciting_outstanding
                .saturating_sub(u64::from(packet.is_ack_eliciting));
            lost(number, &packet, &mut self.receipts_of(start, count));
        }
        self.oldest_outstanding = oldest.unwrap_or(largest_acked);
    }

    /// The span of sending times of the ack-eliciting packets that were lost in one run, up to `newest`, with none
    /// acknowledged between, and all sent after `since`: persistent congestion is judged by it (RFC 9002 §7.6.2).
    #[must_use]
    pub fn lost_run(&self, newest: u64, since: Time) -> Option<(Time, Time)> {
        let mut span: Option<(Time, Time)> = None;
        let mut number = newest;
        while let Some(slot) = self.slot(number) {
            let is_in_run = slot.fate == Fate::Lost || slot.is_skipped;
            if !is_in_run || slot.packet.sent_at <= since {
                break;
            }
            if slot.packet.is_ack_eliciting {
                let latest = span.map_or(slot.packet.sent_at, |(_, latest)| latest);
                span = Some((slot.packet.sent_at, latest));
            }
            let Some(below) = number.checked_sub(1) else {
                break;
            };
            number = below;
        }
        span
    }

    /// Whether a packet sent after `from` and before `upto` is known to have been acknowledged.
    #[must_use]
    pub fn has_acked_between(&self, from: Time, upto: Time) -> bool {
        self.slots.iter().any(|slot| {
            slot.fate == Fate::Done
                && !slot.is_skipped
                && slot.packet.sent_at > from
                && slot.packet.sent_at < upto
        })
    }

    /// Takes all that is outstanding out of flight without a verdict: the keys are gone (RFC 9002 §6.4). `discarded` is
    /// told of each packet.
    pub fn discard(&mut self, discarded: &mut impl FnMut(&SentPacket)) {
        for slot in self
            .slots
            .iter()
            .filter(|slot| slot.fate == Fate::Outstanding)
        {
            discarded(&slot.packet);
        }
        self.base = self.next_number();
        self.receipts_base += self.receipts.len() as u64;
        self.slots = VecDeque::new();
        self.receipts = VecDeque::new();
        self.ack_eliciting_outstanding = 0;
        self.oldest_outstanding = self.base;
    }

    /// Gives up all that is outstanding: it counts as lost, but not as congestion. `given_up` is told of each packet, with
    /// its receipts.
    pub fn give_up(
        &mut self,
        given_up: &mut impl FnMut(&SentPacket, &mut dyn Iterator<Item = Receipt>),
    ) {
        for number in self.oldest_outstanding.max(self.base)..self.next_number() {
            let Some(slot) = self
                .slot_mut(number)
                .filter(|slot| slot.fate == Fate::Outstanding)
            else {
                continue;
            };
            let packet = slot.packet;
            slot.fate = Fate::Lost;
            slot.packet.is_in_flight = false;
            let (start, count) = (slot.receipts, slot.receipt_count);
            given_up(&packet, &mut self.receipts_of(start, count));
        }
        self.ack_eliciting_outstanding = 0;
        self.oldest_outstanding = self.next_number();
    }

    /// The connection goes by another path from now on: what is outstanding is in flight no more, and tells nothing of
    /// the path in use (RFC 9000 §9.4). Whether it arrived is still of interest.
    pub fn leave_path(&mut self) {
        for slot in &mut self.slots {
            let packet = &mut slot.packet;
            packet.is_in_flight = false;
            packet.is_mtu_probe = false;
            packet.is_off_path = true;
            packet.ecn = EcnCodepoint::NotEct;
        }
    }

    /// Forgets packets declared lost that were sent before `before`: nobody will acknowledge them now.
    pub fn expire(&mut self, before: Time) {
        while self.is_front_done()
            || self
                .slots
                .front()
                .is_some_and(|slot| slot.fate == Fate::Lost && slot.packet.sent_at < before)
        {
            self.pop_front();
        }
    }

    /// Drops what is done at the front.
    fn trim(&mut self) {
        while self.is_front_done() {
            self.pop_front();
        }
    }

    /// A skipped number is kept until its successor was acknowledged: only then has the peer had the chance to lie.
    fn is_front_done(&self) -> bool {
        let is_done = |slot: &Slot| slot.fate == Fate::Done;
        match self.slots.front() {
            Some(slot) if slot.is_skipped => self.slots.get(1).is_some_and(is_done),
            front => front.is_some_and(is_done),
        }
    }

    fn pop_front(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            self.base += 1;
            let upto = slot.receipts + u64::from(slot.receipt_count);
            while self.receipts_base < upto && self.receipts.pop_front().is_some() {
                self.receipts_base += 1;
            }
        }
    }

    fn receipts_of(&self, start: u64, count: u16) -> impl Iterator<Item = Receipt> + '_ {
        let kept = self.receipts.len();
        let from = usize::try_from(start.saturating_sub(self.receipts_base)).unwrap_or(usize::MAX);
        let from = from.min(kept);
        let to = from.saturating_add(usize::from(count)).min(kept);
        self.receipts.range(from..to).copied()
    }

    fn fate(&self, number: u64) -> Fate {
        self.slot(number).map_or(Fate::Done, |slot| slot.fate)
    }

    fn slot(&self, number: u64) -> Option<&Slot> {
        self.slots
            .get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    fn slot_mut(&mut self, number: u64) -> Option<&mut Slot> {
        self.slots
            .get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }
}

impl Default for SentPackets {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
