//! A line at a time: along the plan of the line before while it can be followed, key by key where it cannot, and back on
//! a plan where a key stands as in one.

use super::grammar::{self, Member, Next, Span};
use super::kernel::{Kernel, Simd};
use super::plan::{Followed, Plan};
use crate::fast_hash::{self, FastMap};
use crate::json::parse::Projection;

/// So many plans at once; each is some times as large as its line.
const PLANS_MAX: usize = 8;

/// A line that has more keys that no plan expected is a model for others.
const STRANGE_MAX: usize = 3;

/// So often in a line a plan is looked for again.
const RETURNS_MAX: usize = 8;

/// With all plans learned, the next is learned from such a line as the so-manyeth, then the twice-so-manyeth.
const PATIENCE: u64 = 64;

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// An object; the next line begins here.
    Row(usize),
    /// Nothing but blanks; the next line begins here.
    Blank(usize),
    /// To be parsed: JSON of another form, or none.
    Odd,
}

/// Finds what a projection wants in lines of JSON. What it has learned from other lines decides how fast it does so,
/// never what it finds.
pub(crate) struct Scanner {
    simd: Simd,
    state: State,
}

pub(super) struct State {
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
}

enum Wanted {
    /// Fields by their keys.
    Fields(Vec<Vec<u8>>),
    All,
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
pub(super) struct Work<'a> {
    state: &'a mut State,
    bytes: &'a [u8],
    start: usize,
}

impl Scanner {
    pub(crate) fn new(projection: &Projection) -> Scanner {
        Scanner::with(Simd::best(), projection)
    }

    pub(super) fn with(simd: Simd, projection: &Projection) -> Scanner {
        let wanted = match projection {
            Projection::Whole => Wanted::All,
            Projection::Fields(fields) => {
                let keys = fields.iter().map(|(key, _)| key.clone().into_bytes());
                Wanted::Fields(keys.collect())
            }
        };
        let slots = match &wanted {
            Wanted::Fields(keys) => keys.len(),
            Wanted::All => 0,
        };
        let state = State {
            wanted,
            found: vec![None; slots],
            plans: Vec::new(),
            numbers: Vec::new(),
            learned: 0,
            plan: 0,
            leads: FastMap::default(),
            members: Vec::new(),
            passed: 0,
            patience: PATIENCE,
            verbatim: false,
        };
        Scanner { simd, state }
    }

    /// Goes past the line that begins at a place.
    #[inline]
    pub(crate) fn line(&mut self, bytes: &[u8], start: usize) -> Line {
        let state = &mut self.state;
        self.simd.line(Work {
            state,
            bytes,
            start,
        })
    }

    /// The values of the last row, by their place among the projection's fields.
    pub(crate) fn found(&self) -> &[Option<Span>] {
        &self.state.found
    }
}

impl Scanner {
    /// The plan that the last row followed, and its number among all that were learned.
    pub(super) fn plan(&self) -> Option<(&Plan, u64)> {
        let state = &self.state;
        let number = state.numbers.get(state.plan)?;
        Some((state.plans.get(state.plan)?, *number))
    }

    /// Whether the last row, with its line's end, is printed as it stands. It may be though this says no.
    pub(crate) fn is_verbatim(&self) -> bool {
        self.state.verbatim
    }
}

impl Work<'_> {
    #[inline(always)]
    pub(super) fn run(self, kernel: impl Kernel) -> Line {
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
                        return self.end(kernel, bytes, start, end, walked);
                    }
                    Followed::To(atom, there) => {
                        at = there;
                        left = Some((plan, atom));
                    }
                }
            }
            let member = match kernel.next(bytes, at, at == start) {
                Some(Next::Member(member)) => member,
                Some(Next::End(end)) => {
                    return self.end(kernel, bytes, start, end, walked);
                }
                None if at == start => {
                    return match grammar::line_end(bytes, at) {
                        Some(end) => Line::Blank(end),
                        None => Line::Odd,
                    };
                }
                None => return Line::Odd,
            };
            self.note(bytes, &member);
            at = member.value.end;
            let lead = &bytes[member.start..member.value.start];
            if let Some((plan, atom)) = left
                && atom < self.plans[plan].len()
                && self.plans[plan].lead(atom) == lead
            {
                place = Some((plan, atom));
            } else {
                walked.strange += 1;
                if walked.strange <= RETURNS_MAX {
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
        if let Wanted::Fields(keys) = &self.wanted {
            let key = &bytes[member.key.0..member.key.1];
            if let Some(slot) = slot(keys, key, member.plain_key) {
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
        let (whole, keys): (bool, &[Vec<u8>]) = match &self.wanted {
            Wanted::All => (true, &[]),
            Wanted::Fields(keys) => (false, keys),
        };
        let Some(plan) = Plan::learn(bytes, &self.members, end, whole, |key| {
            slot(keys, key, false)
        }) else {
            return;
        };
        if whole && self.found.len() < plan.len() {
            self.found.resize(plan.len(), None);
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
            for atom in 0..plan.len() {
                let hash = fast_hash::of_bytes(plan.lead(atom));
                self.leads.entry(hash).or_insert((at, atom));
            }
        }
    }
}

/// Which of the keys a key is. One that is written with escapes is compared as what it means.
#[inline(always)]
fn slot(keys: &[Vec<u8>], raw: &[u8], plain: bool) -> Option<usize> {
    let found = keys.iter().position(|key| key == raw);
    if found.is_none() && !plain && raw.contains(&b'\\') {
        return slot_of_escaped(keys, raw);
    }
    found
}

#[cold]
#[inline(never)]
fn slot_of_escaped(keys: &[Vec<u8>], raw: &[u8]) -> Option<usize> {
    let text = crate::json::parse::unescaped(raw)?;
    keys.iter().position(|key| key == text.as_bytes())
}
