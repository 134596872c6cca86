//! Scans a line at a time. A line follows the plan of the line before as far as it matches, then is scanned key by key, and
//! returns to a plan at a key that matches one.

use super::grammar::{self, Member, Next, Span};
use super::kernel::{Kernel, Run, Simd};
use super::members;
use super::plan::{Followed, Plan};
use super::selection::Selection;
use super::stretches;
use crate::fast_hash::{self, FastMap};
use crate::parse::Projection;

/// Maximum number of plans. A plan takes several times the memory of its line.
const PLANS_MAX: usize = 8;

/// A new plan is learned from a line with more keys than this that no plan expected.
const UNEXPECTED_MAX: usize = 3;

/// How many times in a line a plan is searched again. The number is halved after each line in which no plan was found.
const RETURNS_MAX: usize = 8;

/// After this number of lines without a plan, the full number of searches is tried again.
const RETRY: u64 = 64;

/// When there are [`PLANS_MAX`] plans, a new one is learned after this number of candidate lines, then after twice as many.
const PATIENCE: u64 = 64;

/// The result of scanning a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// An object. The next line starts at this offset.
    Row(usize),
    /// A blank line. The next line starts at this offset.
    Blank(usize),
    /// A line for the parser: JSON of another form, or not JSON.
    Odd,
}

/// Finds the fields of a projection in lines of JSON. What it learned from earlier lines affects its speed, never the
/// result.
#[derive(Debug)]
pub struct Scanner {
    simd: Simd,
    state: State,
}

#[derive(Debug)]
struct State {
    selection: Selection,
    /// The values of the last row, by their place among the fields (or in the plan, when all are wanted).
    found: Vec<Option<Span>>,
    plans: Vec<Plan>,
    /// Their numbers among all that were learned.
    numbers: Vec<u64>,
    learned: u64,
    /// The plan that the last row ended on.
    plan: usize,
    /// The plan and atom of each lead, by its hash.
    leads: FastMap<u64, (usize, usize)>,
    /// For learning.
    members: Vec<Member>,
    /// Candidate lines since the last learned plan, once there are [`PLANS_MAX`].
    passed: u64,
    patience: u64,
    /// Whether the last row is printed unchanged.
    verbatim: bool,
    /// Current number of searches for a plan in a line.
    returns: usize,
    /// Lines in which no plan was found again.
    lost: u64,
}

/// Counts for one line.
#[derive(Clone, Copy, Default)]
struct LineCounts {
    /// Keys that no plan expected at their place.
    unexpected: usize,
    /// Whether a plan expected any key.
    known: bool,
}

/// A scanner at a line.
struct Work<'a> {
    state: &'a mut State,
    bytes: &'a [u8],
    start: usize,
}

impl Scanner {
    /// A scanner for this projection, with the fastest kernel of this CPU.
    pub fn new(projection: &Projection) -> Scanner {
        Scanner::with(Simd::best(), projection)
    }

    pub(super) fn with(simd: Simd, projection: &Projection) -> Scanner {
        let selection = Selection::of(projection);
        let state = State {
            found: vec![None; selection.len()],
            selection,
            plans: Vec::new(),
            numbers: Vec::new(),
            learned: 0,
            plan: 0,
            leads: FastMap::default(),
            members: Vec::new(),
            passed: 0,
            patience: PATIENCE,
            verbatim: false,
            returns: RETURNS_MAX,
            lost: 0,
        };
        Scanner { simd, state }
    }

    /// Scans the line that starts at an offset.
    #[inline]
    pub fn line(&mut self, bytes: &[u8], start: usize) -> Line {
        let state = &mut self.state;
        self.simd.run(Work {
            state,
            bytes,
            start,
        })
    }

    /// The values of the last row, by their place among the projection's fields.
    pub fn found(&self) -> &[Option<Span>] {
        &self.state.found
    }
}

impl Scanner {
    /// For tests: a scanner that does not search for another plan in a line that leaves its own.
    #[cfg(test)]
    pub(super) fn without_retries(mut self) -> Scanner {
        self.state.returns = 0;
        self
    }

    /// The plan that the last row followed, and its number among all that were learned.
    pub fn plan(&self) -> Option<(&Plan, u64)> {
        let state = &self.state;
        let number = state.numbers.get(state.plan)?;
        Some((state.plans.get(state.plan)?, *number))
    }

    /// Returns `true` only if the last line, with its line feed, equals the printed row.
    pub fn is_verbatim(&self) -> bool {
        self.state.verbatim
    }
}

impl Run for Work<'_> {
    type Output = Line;

    #[inline(always)]
    fn run(self, kernel: impl Kernel) -> Line {
        let Work {
            state,
            bytes,
            start,
        } = self;
        state.line(kernel, bytes, start)
    }
}

impl State {
    #[inline(always)]
    fn line(&mut self, kernel: impl Kernel, bytes: &[u8], start: usize) -> Line {
        self.reset();
        let mut at = start;
        // The plan and atom to continue with.
        let mut place = (!self.plans.is_empty()).then_some((self.plan, 0));
        let mut counts = LineCounts::default();
        loop {
            let mut left = None;
            if let Some((plan, atom)) = place.take() {
                match self.plans[plan].follow(kernel, bytes, at, atom, &mut self.found) {
                    Followed::End(end, regular) => {
                        self.plans[plan].uses += 1;
                        self.plan = plan;
                        if at == start {
                            self.verbatim = regular && self.plans[plan].is_canonical();
                            return Line::Row(end);
                        }
                        self.returns = RETURNS_MAX;
                        return self.end(kernel, bytes, start, end, counts);
                    }
                    Followed::To(atom, there) => {
                        at = there;
                        left = Some((plan, atom));
                    }
                }
            }
            if counts.unexpected > self.returns {
                let Some(end) = self.rest(kernel, bytes, at, at == start) else {
                    return no_row(bytes, start);
                };
                self.lost += 1;
                self.returns = match self.lost % RETRY {
                    0 => RETURNS_MAX,
                    _ => self.returns / 2,
                };
                counts.unexpected = counts.unexpected.max(UNEXPECTED_MAX + 1);
                return self.end(kernel, bytes, start, end, counts);
            }
            let member = match grammar::next(kernel, bytes, at, at == start) {
                Some(Next::Member(member)) => member,
                Some(Next::End(end)) => {
                    return self.end(kernel, bytes, start, end, counts);
                }
                None => return no_row(bytes, start),
            };
            self.record(bytes, &member);
            at = member.value.end;
            let lead = &bytes[member.start..member.value.start];
            if let Some((plan, atom)) = left
                && atom < self.plans[plan].atom_count()
                && self.plans[plan].lead(atom) == lead
            {
                place = Some((plan, atom));
            } else {
                counts.unexpected += 1;
                if counts.unexpected <= self.returns {
                    place = self.known_lead(lead);
                }
            }
            if let Some((plan, atom)) = &mut place {
                let value = &bytes[member.value.start..member.value.end];
                self.plans[*plan].on_value(*atom, value, member.value.kind);
                counts.known = true;
                *atom += 1;
            }
        }
    }

    /// Scans the rest of a line without a plan. Returns the offset of the next line; `None` if this one is not JSON.
    #[inline(always)]
    fn rest(&mut self, kernel: impl Kernel, bytes: &[u8], at: usize, first: bool) -> Option<usize> {
        match &self.selection {
            Selection::All => members::walk(kernel, bytes, at, first, &mut ()),
            Selection::Fields(fields) => {
                stretches::walk(kernel, bytes, at, first, fields, &mut self.found)
            }
        }
    }

    #[inline(always)]
    fn reset(&mut self) {
        self.found.fill(None);
        self.verbatim = false;
    }

    #[inline(never)]
    fn known_lead(&self, lead: &[u8]) -> Option<(usize, usize)> {
        let place = self.leads.get(&fast_hash::of_bytes(lead)).copied()?;
        (self.plans[place.0].lead(place.1) == lead).then_some(place)
    }

    /// Keeps a value that is wanted and was met outside of a plan.
    #[inline(always)]
    fn record(&mut self, bytes: &[u8], member: &Member) {
        if let Selection::Fields(fields) = &self.selection {
            let key = &bytes[member.key.0..member.key.1];
            if let Some(slot) = fields.slot(key, member.plain_key) {
                self.found[slot] = Some(member.value);
            }
        }
    }

    /// Ends a row that did not follow a plan completely, and learns from it.
    #[inline(always)]
    fn end(
        &mut self,
        kernel: impl Kernel,
        bytes: &[u8],
        start: usize,
        end: usize,
        counts: LineCounts,
    ) -> Line {
        if counts.known {
            for plan in &mut self.plans {
                plan.refresh();
            }
        }
        if (counts.unexpected > UNEXPECTED_MAX || !counts.known) && self.may_learn() {
            self.members.clear();
            let mut at = start;
            while let Some(Next::Member(member)) = grammar::next(kernel, bytes, at, at == start) {
                at = member.value.end;
                self.members.push(member);
            }
            self.learn(bytes, end);
        }
        match self.selection {
            Selection::Fields(_) => Line::Row(end),
            // The offsets of the values of such a row are unknown.
            Selection::All => Line::Odd,
        }
    }

    fn may_learn(&mut self) -> bool {
        if self.plans.len() < PLANS_MAX {
            return true;
        }
        self.passed += 1;
        if self.passed < self.patience {
            return false;
        }
        self.passed = 0;
        self.patience *= 2;
        true
    }

    fn learn(&mut self, bytes: &[u8], end: usize) {
        let whole = matches!(self.selection, Selection::All);
        let slot = |key: &[u8]| match &self.selection {
            Selection::All => None,
            Selection::Fields(fields) => fields.slot(key, false),
        };
        let Some(plan) = Plan::learn(bytes, &self.members, end, whole, slot) else {
            return;
        };
        if whole && self.found.len() < plan.atom_count() {
            self.found.resize(plan.atom_count(), None);
        }
        if self.plans.len() < PLANS_MAX {
            self.plan = self.plans.len();
            self.plans.push(plan);
            self.numbers.push(0);
        } else {
            let least = (0..self.plans.len()).min_by_key(|at| self.plans[*at].uses);
            self.plan = least.unwrap_or(0);
            self.plans[self.plan] = plan;
            for plan in &mut self.plans {
                plan.uses = 0;
            }
        }
        self.learned += 1;
        self.numbers[self.plan] = self.learned;
        self.leads.clear();
        for (at, plan) in self.plans.iter().enumerate() {
            for atom in 0..plan.atom_count() {
                let hash = fast_hash::of_bytes(plan.lead(atom));
                self.leads.entry(hash).or_insert((at, atom));
            }
        }
    }
}

/// Classifies a line that is not an object with members.
#[cold]
#[inline(never)]
fn no_row(bytes: &[u8], start: usize) -> Line {
    match grammar::line_end(bytes, start) {
        Some(end) => Line::Blank(end),
        None => Line::Odd,
    }
}
