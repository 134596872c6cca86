//! A line at a time: along the plan of the line before while it can be followed, key by key where it cannot, and back on
//! a plan where a key stands as in one.

use super::grammar::{self, Member, Next, Span};
use super::kernel::{Kernel, Run, Simd};
use super::members::{self, Visit};
use super::plan::{Followed, Plan};
use super::wanted::{Fields, Wanted};
use crate::fast_hash::{self, FastMap};
use crate::parse::Projection;

/// So many plans at once; each is some times as large as its line.
const PLANS_MAX: usize = 8;

/// A line that has more keys that no plan expected is a model for others.
const STRANGE_MAX: usize = 3;

/// So often in a line a plan is looked for again, and half as often after each line in which that was of no use.
const RETURNS_MAX: usize = 8;

/// Of lines in which it was of no use, the so-manyeth is tried in full again.
const RETRY: u64 = 64;

/// With all plans learned, the next is learned from such a line as the so-manyeth, then the twice-so-manyeth.
const PATIENCE: u64 = 64;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// An object; the next line begins here.
    Row(usize),
    /// Nothing but blanks; the next line begins here.
    Blank(usize),
    /// To be parsed: JSON of another form, or none.
    Odd,
}

/// Finds what a projection wants in lines of JSON. What it has learned from other lines decides how fast it does so,
/// never what it finds.
#[derive(Debug)]
pub struct Scanner {
    simd: Simd,
    state: State,
}

#[derive(Debug)]
struct State {
    wanted: Wanted,
    /// The values of the last row, by their place among the fields (or in the plan, when all are wanted).
    found: Vec<Option<Span>>,
    plans: Vec<Plan>,
    /// Their numbers among all that were learned.
    numbers: Vec<u64>,
    learned: u64,
    /// The plan that the last row ended on.
    plan: usize,
    /// Where the leads of the plans stand, by their hashes.
    leads: FastMap<u64, (usize, usize)>,
    /// For learning.
    members: Vec<Member>,
    /// Lines from which nothing was learned since all plans are.
    passed: u64,
    patience: u64,
    /// The last row is printed as it stands.
    verbatim: bool,
    /// So often a plan is looked for again, at present.
    returns: usize,
    /// Lines that left all plans for good.
    lost: u64,
}

/// What was seen on the way through a line.
#[derive(Clone, Copy, Default)]
struct Walked {
    /// Keys that stood where no plan expected them.
    strange: usize,
    /// Whether any key stood as in a plan.
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
    #[must_use]
    pub fn new(projection: &Projection) -> Scanner {
        Scanner::with(Simd::best(), projection)
    }

    pub(super) fn with(simd: Simd, projection: &Projection) -> Scanner {
        let wanted = Wanted::of(projection);
        let state = State {
            found: vec![None; wanted.len()],
            wanted,
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

    /// Goes past the line that begins at a place.
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
    #[must_use]
    pub fn found(&self) -> &[Option<Span>] {
        &self.state.found
    }
}

impl Scanner {
    /// For tests: one that does not look for a plan again in a line that leaves its own.
    #[cfg(test)]
    pub(super) fn hasty(mut self) -> Scanner {
        self.state.returns = 0;
        self
    }

    /// The plan that the last row followed, and its number among all that were learned.
    #[must_use]
    pub fn plan(&self) -> Option<(&Plan, u64)> {
        let state = &self.state;
        let number = state.numbers.get(state.plan)?;
        Some((state.plans.get(state.plan)?, *number))
    }

    /// Whether the last row, with its line's end, is printed as it stands. It may be though this says no.
    #[must_use]
    pub fn is_verbatim(&self) -> bool {
        self.state.verbatim
    }
}

impl Run for Work<'_> {
    type Made = Line;

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
        // Where to follow a plan from.
        let mut place = (!self.plans.is_empty()).then_some((self.plan, 0));
        let mut walked = Walked::default();
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
                        return self.end(kernel, bytes, start, end, walked);
                    }
                    Followed::To(atom, there) => {
                        at = there;
                        left = Some((plan, atom));
                    }
                }
            }
            if walked.strange > self.returns {
                let Some(end) = self.rest(kernel, bytes, at, at == start) else {
                    return no_row(bytes, start);
                };
                self.lost += 1;
                self.returns = match self.lost % RETRY {
                    0 => RETURNS_MAX,
                    _ => self.returns / 2,
                };
                walked.strange = walked.strange.max(STRANGE_MAX + 1);
                return self.end(kernel, bytes, start, end, walked);
            }
            let member = match kernel.next(bytes, at, at == start) {
                Some(Next::Member(member)) => member,
                Some(Next::End(end)) => {
                    return self.end(kernel, bytes, start, end, walked);
                }
                None => return no_row(bytes, start),
            };
            self.note(bytes, &member);
            at = member.value.end;
            let lead = &bytes[member.start..member.value.start];
            if let Some((plan, atom)) = left
                && atom < self.plans[plan].atom_count()
                && self.plans[plan].lead(atom) == lead
            {
                place = Some((plan, atom));
            } else {
                walked.strange += 1;
                if walked.strange <= self.returns {
                    place = self.known_lead(lead);
                }
            }
            if let Some((plan, atom)) = &mut place {
                let value = &bytes[member.value.start..member.value.end];
                self.plans[*plan].met(*atom, value, member.value.kind);
                walked.known = true;
                *atom += 1;
            }
        }
    }

    /// Goes through the rest of a line without looking for a plan. Gives where the next begins; `None` when it is no JSON.
    #[inline(always)]
    fn rest(&mut self, kernel: impl Kernel, bytes: &[u8], at: usize, first: bool) -> Option<usize> {
        match &self.wanted {
            Wanted::All => members::walk(kernel, bytes, at, first, &mut ()),
            Wanted::Fields(fields) => {
                let found = &mut self.found;
                let mut noting = Noting {
                    bytes,
                    fields,
                    found,
                };
                members::walk(kernel, bytes, at, first, &mut noting)
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
    fn note(&mut self, bytes: &[u8], member: &Member) {
        if let Wanted::Fields(fields) = &self.wanted {
            let key = &bytes[member.key.0..member.key.1];
            if let Some(slot) = fields.slot(key, member.plain_key) {
                self.found[slot] = Some(member.value);
            }
        }
    }

    /// At the end of a row that was not followed from its begin to its end: learns from it.
    #[inline(always)]
    fn end(
        &mut self,
        kernel: impl Kernel,
        bytes: &[u8],
        start: usize,
        end: usize,
        walked: Walked,
    ) -> Line {
        if walked.known {
            for plan in &mut self.plans {
                plan.refresh();
            }
        }
        if (walked.strange > STRANGE_MAX || !walked.known) && self.may_learn() {
            self.members.clear();
            let mut at = start;
            while let Some(Next::Member(member)) = kernel.next(bytes, at, at == start) {
                at = member.value.end;
                self.members.push(member);
            }
            self.learn(bytes, end);
        }
        match self.wanted {
            Wanted::Fields(_) => Line::Row(end),
            // Where the values of such a row stand is not known.
            Wanted::All => Line::Odd,
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
        let whole = matches!(self.wanted, Wanted::All);
        let slot = |key: &[u8]| match &self.wanted {
            Wanted::All => None,
            Wanted::Fields(fields) => fields.slot(key, false),
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

/// What a line is that is no row with members.
#[cold]
#[inline(never)]
fn no_row(bytes: &[u8], start: usize) -> Line {
    match grammar::line_end(bytes, start) {
        Some(end) => Line::Blank(end),
        None => Line::Odd,
    }
}

/// Keeps the values of a line that are wanted.
struct Noting<'a> {
    bytes: &'a [u8],
    fields: &'a Fields,
    found: &'a mut [Option<Span>],
}

impl Visit for Noting<'_> {
    #[inline(always)]
    fn member(&mut self, key: (usize, usize), plain_key: bool, value: Span) -> bool {
        if (!plain_key || self.fields.may_have(self.bytes, key))
            && let Some(slot) = self.fields.slot(&self.bytes[key.0..key.1], plain_key)
        {
            self.found[slot] = Some(value);
        }
        true
    }
}
