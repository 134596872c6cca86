//! The shape of a row: literal bytes with values between them. A plan is learned from one line. All values that the query
//! does not read start as constants, and become variables when another value occurs. Constant values are part of the
//! literal around them, so that a row is compared in a few long runs.
//!
//! A line follows a plan if every byte equals that of a literal or belongs to a value that was scanned completely. So a line
//! that follows a plan is JSON with exactly these keys, and its end needs no search.

use super::grammar::{self, Kind, Member, Span, last_block};
use super::kernel::{BLOCK, Block, Kernel, STRETCH, Stretch};
use crate::parse::{Keys, Parser, Projection};
use crate::value::Value;
use std::hint::black_box;

/// No plan is learned from longer lines, in bytes.
const LENGTH_MAX: usize = 64 * 1024;

/// A key with its value.
#[derive(Debug)]
struct Atom {
    /// In the model: what stands before the value since the last, and the value.
    lead: (usize, usize),
    key: (usize, usize),
    value: Span,
    /// The kind of the value; `None` while it has always been the same.
    variable: Option<Kind>,
    /// Where the value is wanted.
    slot: Option<usize>,
}

/// A run of literal bytes, and the value after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// End of the literal in the pool; it starts at the end of the one before.
    end: usize,
    value: Expected,
    /// Where the value is noted.
    slot: usize,
    /// The value's, or the number of atoms after the last literal.
    atom: usize,
}

/// The value expected after a literal.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Digits,
    Plain,
    Any,
    /// Nothing: the line's end was part of the literal.
    End,
}

/// The slot of values that are not wanted.
const NOWHERE: usize = usize::MAX;

/// The shape of a row: its literal bytes, with variable values between them.
#[derive(Debug)]
pub struct Plan {
    /// The line it was learned from.
    model: Vec<u8>,
    atoms: Vec<Atom>,
    steps: Vec<Step>,
    /// All literals, followed by a block of zeros.
    pool: Vec<u8>,
    /// For each atom, and for the end: the step in whose literal its lead stands, and where in the pool.
    leads: Vec<(usize, usize)>,
    /// All values are wanted: those of variables are noted by their atom.
    whole: bool,
    /// Whether the model is printed unchanged.
    canonical: bool,
    /// Values have been made variable since the steps were made.
    stale: bool,
    /// Lines that used it since the last plan was discarded.
    pub(super) uses: u64,
}

/// The result of following a plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Followed {
    /// To its end, which is the offset of the next line; and whether all variables were digits or plain text.
    End(usize, bool),
    /// To this atom, whose lead begins at this place.
    To(usize, usize),
}

impl Plan {
    /// Learns a plan from a line's members; `slot` returns the slot of a key's value, if it is wanted.
    pub(super) fn learn(
        bytes: &[u8],
        members: &[Member],
        end: usize,
        whole: bool,
        slot: impl Fn(&[u8]) -> Option<usize>,
    ) -> Option<Plan> {
        let start = members.first()?.start;
        // The last line of an input may lack its end.
        if end - start > LENGTH_MAX || bytes.get(end - 1) != Some(&b'\n') {
            return None;
        }
        let mut atoms = Vec::with_capacity(members.len());
        for member in members {
            let slot = slot(&bytes[member.key.0..member.key.1]);
            let Span {
                start: at,
                end,
                kind,
            } = member.value;
            let value = Span {
                start: at - start,
                end: end - start,
                kind,
            };
            atoms.push(Atom {
                lead: (member.start - start, value.start),
                key: (member.key.0 - start, member.key.1 - start),
                value,
                variable: slot.map(|_| kind),
                slot,
            });
        }
        let mut plan = Plan {
            model: bytes[start..end].to_vec(),
            atoms,
            steps: Vec::new(),
            pool: Vec::new(),
            leads: Vec::new(),
            whole,
            canonical: canonical(&bytes[start..end]),
            stale: true,
            uses: 0,
        };
        plan.refresh();
        Some(plan)
    }

    /// Rebuilds the steps after values have become variables.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.steps.clear();
        self.pool.clear();
        self.leads.clear();
        for (at, atom) in self.atoms.iter().enumerate() {
            self.leads.push((self.steps.len(), self.pool.len()));
            self.pool
                .extend_from_slice(&self.model[atom.lead.0..atom.lead.1]);
            if let Some(kind) = atom.variable {
                self.steps.push(Step {
                    end: self.pool.len(),
                    value: match kind {
                        Kind::Digits => Expected::Digits,
                        Kind::Plain => Expected::Plain,
                        _ => Expected::Any,
                    },
                    slot: if self.whole {
                        at
                    } else {
                        atom.slot.unwrap_or(NOWHERE)
                    },
                    atom: at,
                });
            } else {
                self.pool
                    .extend_from_slice(&self.model[atom.value.start..atom.value.end]);
            }
        }
        self.leads.push((self.steps.len(), self.pool.len()));
        let tail = self.atoms.last().map_or(0, |atom| atom.value.end);
        self.pool.extend_from_slice(&self.model[tail..]);
        self.steps.push(Step {
            end: self.pool.len(),
            value: Expected::End,
            slot: NOWHERE,
            atom: self.atoms.len(),
        });
        self.pool.extend_from_slice(&[0; STRETCH]);
    }

    /// Whether a row that follows it, with Digits and plain text for its variables, is printed unchanged.
    pub(super) fn is_canonical(&self) -> bool {
        self.canonical
    }

    /// The keys as in the model, without their quotes.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.atoms.iter().map(|atom| {
            let (start, end) = atom.key;
            &self.model[start..end]
        })
    }

    /// The model, and where an atom's value stands in it.
    pub fn constant(&self, atom: usize) -> (&[u8], Span) {
        (&self.model, self.atoms[atom].value)
    }

    /// The number of atoms, each a key with its value.
    pub fn atom_count(&self) -> usize {
        self.atoms.len()
    }

    /// What stands before an atom's value.
    pub(super) fn lead(&self, atom: usize) -> &[u8] {
        let (start, end) = self.atoms[atom].lead;
        &self.model[start..end]
    }

    /// Notes a value that an atom had.
    pub(super) fn on_value(&mut self, atom: usize, value: &[u8], kind: Kind) {
        let atom = &mut self.atoms[atom];
        let known = atom.value;
        let variable = match atom.variable {
            None if self.model[known.start..known.end] == *value => None,
            None => Some(join(known.kind, kind)),
            Some(known) => Some(join(known, kind)),
        };
        if variable != atom.variable {
            atom.variable = variable;
            self.stale = true;
        }
    }

    /// Follows a line from an atom's lead on. Values that are wanted are noted.
    #[inline(always)]
    pub(super) fn follow(
        &self,
        kernel: impl Kernel,
        bytes: &[u8],
        start: usize,
        atom: usize,
        found: &mut [Option<Span>],
    ) -> Followed {
        let (first, mut literal) = self.leads[atom];
        let steps = self.steps.get(first..).unwrap_or_default();
        let mut rest = bytes.get(start..).unwrap_or_default();
        let mut pool = self.pool.get(literal..).unwrap_or_default();
        // Where the literal before the last value began, in the line and in the pool: here, if there was none.
        let mut before = (start, literal);
        let mut regular = true;
        for step in steps {
            let length = step.end - literal;
            if !holds(kernel, rest, pool, length) {
                let same = same(kernel, rest, pool, length);
                if same < length {
                    let begin = (bytes.len() - rest.len(), literal);
                    return self.left(step, atom, begin, same, before);
                }
            }
            let (Some(value), Some(more)) = (rest.get(length..), pool.get(length..)) else {
                break;
            };
            let begin = (bytes.len() - rest.len(), literal);
            let start = bytes.len() - value.len();
            // The next step waits for this length only, not for where the value starts.
            let quick = match step.value {
                Expected::Digits => digits(kernel, value),
                Expected::Plain => plain(kernel, value),
                Expected::Any => None,
                Expected::End => return Followed::End(start, regular),
            };
            let (length, kind) = match quick {
                Some(quick) => quick,
                None => match grammar::value(kernel, bytes, start) {
                    Some(Span { end, kind, .. }) => {
                        regular &= matches!(kind, Kind::Digits | Kind::Plain);
                        (end - start, kind)
                    }
                    // A blank before the value, perhaps.
                    None => return self.before(step.atom, begin),
                },
            };
            let Some(after) = value.get(length..) else {
                break;
            };
            if let Some(found) = found.get_mut(step.slot) {
                let end = start + length;
                *found = Some(Span { start, end, kind });
            }
            (rest, pool) = (after, more);
            before = begin;
            literal = step.end;
        }
        Followed::To(self.atom_count(), bytes.len() - rest.len())
    }

    /// Back to where an atom's lead begins, in a literal that begins there.
    #[cold]
    fn before(&self, atom: usize, (begin, literal): (usize, usize)) -> Followed {
        Followed::To(atom, begin + (self.leads[atom].1 - literal))
    }

    /// The atom at which a line left the plan, after `same` equal bytes of a step's literal.
    #[cold]
    #[inline(never)]
    fn left(
        &self,
        step: &Step,
        from: usize,
        (begin, literal): (usize, usize),
        same: usize,
        before: (usize, usize),
    ) -> Followed {
        if same == 0 && before.1 == literal {
            return Followed::To(from, begin);
        }
        if same == 0 {
            // The previous value may continue.
            return self.before(self.leads_at(literal) - 1, before);
        }
        // The last lead that starts before this byte: if one starts at it, the previous value may continue.
        let here = literal + same;
        let mut atom = step.atom;
        while self.leads[atom].1 >= here {
            atom -= 1;
        }
        self.before(atom, (begin, literal))
    }

    /// The atom whose lead begins here in the pool.
    fn leads_at(&self, literal: usize) -> usize {
        self.leads.partition_point(|lead| lead.1 < literal)
    }
}

/// Whether a line, with its line feed, equals the printed row.
fn canonical(line: &[u8]) -> bool {
    let parsed = Parser::<Value>::new(line, &mut Keys::default()).only(&Projection::Whole);
    let mut printed = String::with_capacity(line.len());
    if !parsed.is_ok_and(|row| row.write(&mut printed)) {
        return false;
    }
    printed.push('\n');
    printed.as_bytes() == line
}

/// Whether `bytes` starts with the literal. The stretch in which it ends is compared first, since it differs in most lines
/// that do not follow; differences after its end do not count. Near the end of the bytes it may return `false` for a match.
#[inline(always)]
fn holds(kernel: impl Kernel, bytes: &[u8], pool: &[u8], length: usize) -> bool {
    let end = length % STRETCH;
    let (Some((bytes, last)), Some((pool, last_literal))) = (
        bytes.split_at_checked(length - end),
        pool.split_at_checked(length - end),
    ) else {
        return false;
    };
    let (Some(last), Some(last_literal)) = (last.first_chunk(), last_literal.first_chunk()) else {
        return false;
    };
    kernel.first_difference(last, last_literal) >= end
        && (length == end || kernel.are_equal(bytes.as_chunks().0, pool.as_chunks().0))
}

/// The number of leading bytes that equal the literal.
#[cold]
#[inline(never)]
fn same(kernel: impl Kernel, bytes: &[u8], pool: &[u8], length: usize) -> usize {
    let mut done = 0;
    while done < length {
        let expected: Stretch = last_block(pool, done);
        let same = kernel.first_difference(&last_block(bytes, done), &expected);
        done += same;
        if same < STRETCH {
            break;
        }
    }
    done.min(length)
}

/// An integer of digits; everything else is scanned by the grammar. A fraction shows as a literal that does
/// not follow.
#[inline(always)]
fn digits(kernel: impl Kernel, bytes: &[u8]) -> Option<(usize, Kind)> {
    let block: &Block = bytes.first_chunk()?;
    let word = u64::from_le_bytes(*block.first_chunk()?);
    // A zero before another digit, or before what is no end of a number either.
    if word & 0xf0ff == 0x3030 {
        return None;
    }
    if let Some(count) = few_digits(word) {
        return Some((count, Kind::Digits));
    }
    // `black_box` keeps this a branch: the next literal would wait for a conditional move.
    let count = black_box(kernel.first_non_digit(block));
    (count.wrapping_sub(1) < BLOCK - 1).then_some((count, Kind::Digits))
}

/// The number of digits at the start of a word, if there are any, and the next byte lacks a bit that all digits have, as a
/// comma does. The scan waits for the end of a number, which takes few instructions here, but not for the check that digits
/// stand before it.
#[inline(always)]
fn few_digits(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let ends = !word & (ONES * 0x10);
    let before = ends.wrapping_sub(1) & !ends | 0xf0;
    // A digit is 0x30 to 0x39: adding six keeps the high half. Only other bytes carry into the next one.
    let others = (word ^ (ONES * 0x30)) | (word.wrapping_add(ONES * 6) ^ (ONES * 0x30));
    let is_number = ends != 0 && others & before & (ONES * 0xf0) == 0;
    is_number.then_some(ends.trailing_zeros() as usize / 8)
}

/// A short string of plain text.
#[inline(always)]
fn plain(kernel: impl Kernel, bytes: &[u8]) -> Option<(usize, Kind)> {
    let (quote, text) = bytes.split_first()?;
    let block: &Block = text.first_chunk()?;
    let count = kernel.first_special(block);
    let plain = *quote == b'"' && block.get(count) == Some(&b'"');
    plain.then_some((count + 2, Kind::Plain))
}

/// The kind of values that have both of these kinds.
fn join(a: Kind, b: Kind) -> Kind {
    if a == b { a } else { Kind::Other }
}
