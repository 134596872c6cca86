//! Where the signs of a line stand that are not in its strings, found for 64 bytes at once; and the row's members, by
//! going from sign to sign. So a line that follows no plan is read without looking for the end of each of its keys.
//!
//! What is checked on the way is all that the grammar asks for, so that a line which is gone through is JSON; one in which
//! anything is unusual (a blank that stands before a sign, a control character, nothing at the end) is left to
//! [`super::grammar`], which never errs on what it is.

use super::grammar::{Kind, Span, ask, blanks, escape, last_block, line_end, peek};
use super::kernel::{BLOCK, Kernel, Marks, STRETCH, Stretch};

/// The rest of a longer line is not indexed: it would take four bytes a sign.
const LENGTH_MAX: usize = 1 << 20;

/// The signs of a line from some place on.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Where they stand, counted from that place. What was there before is behind them.
    places: Vec<u32>,
    count: usize,
    /// Whether there are backslashes, or anything but ASCII.
    unusual: bool,
    /// Whether there are blanks between signs.
    spaced: bool,
    /// Whether there is anything else than digits outside of strings.
    words: bool,
}

/// To whom members are shown. A closure could not be told to become part of what is compiled for a certain CPU.
pub(super) trait Visit {
    /// The places of a key (without quotes) and of its value. The value's kind is Text for a string that may be plain when
    /// the line has anything but plain text. False: no more is wanted.
    fn member(&mut self, key: (usize, usize), value: Span) -> bool;
}

/// Nobody: only whether it is JSON.
impl Visit for () {
    #[inline(always)]
    fn member(&mut self, _: (usize, usize), _: Span) -> bool {
        true
    }
}

/// What a stretch leaves for the next.
#[derive(Clone, Copy, Default)]
struct Carry {
    /// All bits are set within a string.
    within: u64,
    /// A string ended with the last byte.
    closed: u64,
    /// The last byte is a sign, or a blank after one.
    sign: u64,
}

impl Index {
    /// Looks through a line from a place between two values on, or from its begin. Gives where the next line begins;
    /// `None` when something is unusual.
    #[inline(always)]
    pub(super) fn fill(
        &mut self,
        kernel: impl Kernel,
        bytes: &[u8],
        start: usize,
    ) -> Option<usize> {
        self.count = 0;
        self.unusual = false;
        let mut carry = Carry::default();
        // What was met so far, and what must not be.
        let (mut wide, mut spaced, mut words, mut wrong) = (0, 0, 0, 0);
        // Where the last escape ends.
        let mut escaped = start;
        let mut at = start;
        while at - start < LENGTH_MAX {
            let mut marks = match bytes.get(at..).and_then(<[u8]>::first_chunk) {
                Some(stretch) => kernel.marks(stretch),
                None => kernel.marks(&last_stretch(bytes, at)),
            };
            if marks.backslashes != 0 || escaped > at {
                escaped = unescape(&mut marks, bytes, at, escaped)?;
                self.unusual = true;
            }
            let within = within(marks.quotes) ^ carry.within;
            // Tabs and the like are rare, but for the line's end.
            let mut line = u64::MAX;
            let mut end = None;
            if marks.controls != 0 {
                let (tabs, place) = controls(marks.controls & !within, bytes, at)?;
                marks.blanks |= tabs;
                if let Some(place) = place {
                    line = (1 << place) - 1;
                    end = Some(at + place as usize);
                }
                wrong |= marks.controls & within & line;
            }
            let outside = !within & line;
            let signs = marks.signs & outside;
            let blank = marks.blanks & outside;
            let closed = marks.quotes & outside;
            // After a string comes a sign; a blank, and a string, comes after a sign or a blank.
            let opened = marks.quotes & within & line;
            wrong |= (closed << 1 | carry.closed) & !signs & line;
            wrong |= (blank | opened) & !((signs | blank) << 1 | carry.sign);
            spaced |= blank;
            words |= outside & !(signs | blank | closed | marks.digits);
            wide |= marks.wide & line;
            self.push(at - start, signs);
            if let Some(end) = end {
                if wrong != 0 {
                    return None;
                }
                (self.spaced, self.words) = (spaced != 0, words != 0);
                if wide != 0 {
                    std::str::from_utf8(&bytes[start..end]).ok()?;
                    self.unusual = true;
                }
                return Some((end + 1).min(bytes.len()));
            }
            carry = Carry {
                within: 0_u64.wrapping_sub(within >> 63),
                closed: closed >> 63,
                sign: (signs | blank) >> 63,
            };
            at += STRETCH;
        }
        None
    }

    /// Whether there is nothing but ASCII without escapes.
    pub(super) fn is_plain(&self) -> bool {
        !self.unusual
    }

    #[inline(always)]
    fn push(&mut self, from: usize, signs: u64) {
        let places = match self.places.get_mut(self.count..) {
            Some(places) if places.len() >= STRETCH => places,
            _ => {
                self.places.resize(self.places.len() * 2 + STRETCH * 2, 0);
                &mut self.places[self.count..]
            }
        };
        let Some(places) = places.first_chunk_mut::<STRETCH>() else {
            return;
        };
        // The length is bounded.
        let from = from as u32;
        let count = signs.count_ones() as usize;
        let mut signs = signs;
        // Mostly there are a few, and some written for nothing cost less than a branch that cannot be foretold.
        for place in &mut places[..8] {
            *place = from + signs.trailing_zeros();
            signs &= signs.wrapping_sub(1);
        }
        for place in &mut places[8..] {
            if signs == 0 {
                break;
            }
            *place = from + signs.trailing_zeros();
            signs &= signs - 1;
        }
        self.count += count;
    }

    /// Shows each member to `visit`, from the place on that was indexed. False when the rest of the line is no JSON, or
    /// unusual, or `visit` wants no more: what was shown does not count then.
    #[inline(always)]
    pub(super) fn members(
        &self,
        kernel: impl Kernel,
        bytes: &[u8],
        start: usize,
        first: bool,
        visit: &mut impl Visit,
    ) -> bool {
        self.walk(kernel, bytes, start, first, visit).is_some()
    }

    #[inline(always)]
    fn walk(
        &self,
        kernel: impl Kernel,
        bytes: &[u8],
        start: usize,
        first: bool,
        visit: &mut impl Visit,
    ) -> Option<()> {
        let text = if self.unusual {
            Kind::Text
        } else {
            Kind::Plain
        };
        let (spaced, words) = (self.spaced, self.words);
        let mut places = self.places.get(..self.count)?;
        let mut at = start + *places.first()? as usize;
        if at != start {
            return None;
        }
        let mut expected = if first { b'{' } else { b',' };
        loop {
            let sign = peek(bytes, at);
            if sign != expected {
                // The last.
                let last = sign == b'}' && expected == b',' && places.len() == 1;
                return (last && line_end(bytes, at + 1).is_some()).then_some(());
            }
            expected = b',';
            let [_, colon, end, ..] = places else {
                return None;
            };
            let (colon, end) = (start + *colon as usize, start + *end as usize);
            // A string that begins here ends before the next sign, right before it: that is known of all strings.
            let quote = after(bytes, at, spaced);
            let from = after(bytes, colon, spaced);
            if peek(bytes, quote) != b'"' || peek(bytes, colon) != b':' {
                return None;
            }
            let key = (quote + 1, colon - 1);
            let value = |kind| Span {
                start: from,
                end,
                kind,
            };
            let span = match peek(bytes, from) {
                b'"' => value(text),
                b'0' if !words && from + 1 == end => value(Kind::Digits),
                // What is neither a sign nor a blank is a digit.
                b'1'..=b'9' if !words => value(Kind::Digits),
                b'{' | b'[' => {
                    let span = kernel.value(bytes, from)?;
                    let inner = places.iter();
                    let inner = inner.take_while(|place| start + (**place as usize) < span.end);
                    places = &places[inner.count()..];
                    at = start + *places.first()? as usize;
                    if at != blanks(bytes, span.end) || !visit.member(key, span) {
                        return None;
                    }
                    continue;
                }
                _ => {
                    let count = ask(bytes, from, |block| kernel.first_non_digit(block));
                    // A zero stands alone, or not first.
                    let zeros = usize::from(bytes[from] == b'0') * count;
                    if count > 0 && count < BLOCK && zeros < 2 && from + count == end {
                        value(Kind::Digits)
                    } else {
                        let span = kernel.value(bytes, from)?;
                        if span.end != end {
                            return None;
                        }
                        span
                    }
                }
            };
            if !visit.member(key, span) {
                return None;
            }
            places = &places[2..];
            at = end;
        }
    }
}

/// What follows a sign.
#[inline(always)]
fn after(bytes: &[u8], sign: usize, spaced: bool) -> usize {
    if spaced {
        blanks(bytes, sign + 1)
    } else {
        sign + 1
    }
}

/// Sets the bits from each quote that begins a string to before the one that ends it.
#[inline(always)]
fn within(mut quotes: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        quotes ^= quotes << shift;
    }
    quotes
}

/// Tabs and carriage returns, and the line's end, of control characters that do not stand in a string.
#[inline(always)]
fn controls(mut controls: u64, bytes: &[u8], at: usize) -> Option<(u64, Option<u32>)> {
    let mut tabs = 0;
    while controls != 0 {
        let place = controls.trailing_zeros();
        match bytes.get(at + place as usize) {
            Some(b'\n') | None => return Some((tabs, Some(place))),
            Some(b'\t' | b'\r') => tabs |= 1 << place,
            Some(_) => return None,
        }
        controls &= controls - 1;
    }
    Some((tabs, None))
}

/// Takes away quotes that are escaped; where the last escape ends. `None` when one is none. Those outside of strings go
/// unnoticed: no value begins with one, and nothing but a sign stands after a value.
#[cold]
#[inline(never)]
fn unescape(marks: &mut Marks, bytes: &[u8], at: usize, mut escaped: usize) -> Option<usize> {
    let mut backslashes = marks.backslashes;
    let mut from = 0;
    loop {
        let escape_bits = below(escaped.saturating_sub(at)) & !below(from);
        marks.quotes &= !escape_bits;
        backslashes &= !escape_bits;
        if backslashes == 0 {
            return Some(escaped);
        }
        from = backslashes.trailing_zeros() as usize;
        escaped = escape(bytes, at + from + 1)?;
    }
}

/// So many of the lowest bits.
fn below(count: usize) -> u64 {
    1_u64
        .checked_shl(count as u32)
        .map_or(u64::MAX, |bit| bit - 1)
}

#[cold]
#[inline(never)]
fn last_stretch(bytes: &[u8], at: usize) -> Stretch {
    let mut stretch = [0; STRETCH];
    let (low, high) = stretch.split_at_mut(BLOCK);
    low.copy_from_slice(&last_block(bytes, at));
    high.copy_from_slice(&last_block(bytes, at + BLOCK));
    stretch
}

#[cfg(test)]
mod tests;
