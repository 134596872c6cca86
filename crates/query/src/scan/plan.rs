//! What a row looks like: literal bytes, and values between them. A plan is learned from one line, in which all values
//! are taken for constant but those that are read; a value that is met different is a variable from then on. Constant
//! values become part of the literal around them, so that a row is compared in a few long runs.
//!
//! A line follows a plan when every byte equals the literal's or lies in a value that was scanned in full. So what was
//! followed is known to be JSON with just these keys, and the line's end needs no search.

use super::grammar::{Kind, Member, Span, ask, last_block, peek};
use super::kernel::{BLOCK, Kernel};

/// A longer line is no model for others.
const LENGTH_MAX: usize = 64 * 1024;

/// A key with its value.
#[derive(Debug)]
struct Atom {
    /// In the model: what stands before the value since the last, and the value.
    lead: (usize, usize),
    value: Span,
    /// How the value is scanned; `None` while it has always been the same.
    variable: Option<Kind>,
    /// Where the value is wanted.
    slot: Option<usize>,
}

/// A run of literal bytes, and the value after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// In the pool.
    literal: (usize, usize),
    /// The value's, or the number of atoms after the last literal.
    atom: usize,
    value: Option<Kind>,
    slot: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Plan {
    /// The line it was learned from.
    model: Vec<u8>,
    atoms: Vec<Atom>,
    steps: Vec<Step>,
    /// All literals, with a block of zeros behind them.
    pool: Vec<u8>,
    /// For each atom, and for the end: the step in whose literal its lead stands, and where in the pool.
    leads: Vec<(usize, usize)>,
    /// All values are wanted: those of variables are noted by their atom.
    whole: bool,
    /// Values have been made variable since the steps were made.
    stale: bool,
    /// How many lines it helped with since the last was thrown away.
    pub(super) uses: u64,
}

/// How far a line follows a plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Followed {
    /// To its end, after which the next begins.
    End(usize),
    /// To this atom, whose lead begins at this place.
    To(usize, usize),
}

impl Plan {
    /// From a line's members; `slot` gives where the value of a key is wanted.
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
            stale: true,
            uses: 0,
        };
        plan.refresh();
        Some(plan)
    }

    /// Makes the steps anew when values have turned out to be variable.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.steps.clear();
        self.pool.clear();
        self.leads.clear();
        let mut begun = 0;
        for (at, atom) in self.atoms.iter().enumerate() {
            self.leads.push((self.steps.len(), self.pool.len()));
            self.pool
                .extend_from_slice(&self.model[atom.lead.0..atom.lead.1]);
            if atom.variable.is_some() {
                self.steps.push(Step {
                    literal: (begun, self.pool.len()),
                    atom: at,
                    value: atom.variable,
                    slot: if self.whole { Some(at) } else { atom.slot },
                });
                begun = self.pool.len();
            } else {
                self.pool
                    .extend_from_slice(&self.model[atom.value.start..atom.value.end]);
            }
        }
        self.leads.push((self.steps.len(), self.pool.len()));
        let tail = self.atoms.last().map_or(0, |atom| atom.value.end);
        self.pool.extend_from_slice(&self.model[tail..]);
        self.steps.push(Step {
            literal: (begun, self.pool.len()),
            atom: self.atoms.len(),
            value: None,
            slot: None,
        });
        self.pool.extend_from_slice(&[0; BLOCK]);
    }

    pub(super) fn len(&self) -> usize {
        self.atoms.len()
    }

    /// What stands before an atom's value.
    pub(super) fn lead(&self, atom: usize) -> &[u8] {
        let (start, end) = self.atoms[atom].lead;
        &self.model[start..end]
    }

    /// Notes a value that an atom had.
    pub(super) fn met(&mut self, atom: usize, value: &[u8], kind: Kind) {
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
        let mut at = start;
        // The last variable, and where its lead began.
        let mut last = None;
        for step in &self.steps[first..] {
            let length = step.literal.1 - literal;
            let same = same(kernel, bytes, at, &self.pool, literal, length);
            if same < length {
                return self.left(step, atom, at, literal, same, last);
            }
            let begin = at;
            at += length;
            let value = match step.value {
                None => return Followed::End(at),
                Some(Kind::Digits) => digits(kernel, bytes, at),
                Some(Kind::Plain) => plain(kernel, bytes, at),
                Some(_) => None,
            };
            let lead = begin + (self.leads[step.atom].1 - literal);
            let Some(value) = value.or_else(|| kernel.value(bytes, at)) else {
                // A blank before the value, perhaps.
                return Followed::To(step.atom, lead);
            };
            if let Some(slot) = step.slot {
                found[slot] = Some(value);
            }
            last = Some((step.atom, lead));
            at = value.end;
            literal = step.literal.1;
        }
        Followed::To(self.len(), at)
    }

    /// Which atom a line left the plan at, when so many bytes of a step's literal were the same.
    #[cold]
    #[inline(never)]
    fn left(
        &self,
        step: &Step,
        from: usize,
        at: usize,
        literal: usize,
        same: usize,
        last: Option<(usize, usize)>,
    ) -> Followed {
        if same == 0 {
            // The value before may go on.
            return match last {
                Some((last, place)) => Followed::To(last, place),
                None => Followed::To(from, at),
            };
        }
        // The last lead that begins before this byte: when one begins at it, the value before may go on.
        let here = literal + same;
        let mut atom = step.atom;
        while self.leads[atom].1 >= here {
            atom -= 1;
        }
        Followed::To(atom, at + self.leads[atom].1 - literal)
    }
}

/// How many bytes are the literal's.
#[inline(always)]
fn same(
    kernel: impl Kernel,
    bytes: &[u8],
    at: usize,
    pool: &[u8],
    literal: usize,
    length: usize,
) -> usize {
    let (whole, rest) = (length / BLOCK, length % BLOCK);
    // The block in which the literal ends is compared whole, too; what differs behind the literal does not count.
    let wide = (whole + 1) * BLOCK;
    let window = at.checked_add(wide).and_then(|end| bytes.get(at..end));
    let expected = pool.get(literal..literal + wide);
    let (Some(window), Some(expected)) = (window, expected) else {
        return same_at_end(kernel, bytes, at, pool, literal, length);
    };
    let (window, _) = window.as_chunks::<BLOCK>();
    let (expected, _) = expected.as_chunks::<BLOCK>();
    let mut blocks = window.iter().zip(expected);
    for done in 0..whole {
        if let Some((block, literal)) = blocks.next() {
            let same = kernel.first_difference(block, literal);
            if same < BLOCK {
                return done * BLOCK + same;
            }
        }
    }
    if let Some((block, literal)) = blocks.next() {
        let same = kernel.first_difference(block, literal);
        if same < rest {
            return whole * BLOCK + same;
        }
    }
    length
}

/// The same where blocks may end behind the bytes.
#[cold]
#[inline(never)]
fn same_at_end(
    kernel: impl Kernel,
    bytes: &[u8],
    at: usize,
    pool: &[u8],
    literal: usize,
    length: usize,
) -> usize {
    let mut done = 0;
    while done < length {
        let expected = last_block(pool, literal + done);
        let same = kernel.first_difference(&last_block(bytes, at + done), &expected);
        done += same;
        if same < BLOCK {
            break;
        }
    }
    done.min(length)
}

/// Digits that are an Integer, at once; anything else is looked at in full.
#[inline(always)]
fn digits(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<Span> {
    let count = ask(bytes, start, |block| kernel.first_non_digit(block));
    if count.wrapping_sub(1) >= BLOCK - 1 || (count > 1 && peek(bytes, start) == b'0') {
        return None;
    }
    // A fraction shows as a literal that does not follow.
    Some(Span {
        start,
        end: start + count,
        kind: Kind::Digits,
    })
}

#[inline(always)]
fn plain(kernel: impl Kernel, bytes: &[u8], start: usize) -> Option<Span> {
    let count = ask(bytes, start + 1, |block| kernel.first_special(block));
    let end = start + 1 + count;
    (count < BLOCK && peek(bytes, start) == b'"' && peek(bytes, end) == b'"').then_some(Span {
        start,
        end: end + 1,
        kind: Kind::Plain,
    })
}

/// How to scan what is sometimes the one and sometimes the other.
fn join(a: Kind, b: Kind) -> Kind {
    if a == b { a } else { Kind::Other }
}
