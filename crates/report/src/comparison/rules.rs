//! The rules that leave out lines of production logs, and how many lines each leaves out.

use std::collections::BTreeMap;

use super::queries::{JUMP, PACED, RESUMED, SMALL};

/// Names of arms beyond this number are counted together.
const ARMS_MAX: usize = 16;
const OTHERS: &str = "(other arms)";

/// The rules: the bit of each, and why a line is left out.
const RULES: [(usize, &str); 4] = [
    (
        RESUMED,
        "`jumpstart.prev-rate` is not 0: the connection started at the rate of an earlier one (--resumed includes them)",
    ),
    (
        SMALL,
        "the object is below 200 kB (--min-size 0 includes them)",
    ),
    (PACED, "`num-paced` is not 1: the packets were not paced"),
    (
        JUMP,
        "`num-jumpstart-applicable` is not 1: there was too little data for a jump",
    ),
];

/// Lines by arm and by the set of rules that leave them out; 0 is the set of lines that count.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut(BTreeMap<String, [u64; 16]>);

/// An arm of which no line counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EmptyArm {
    pub(super) name: String,
    pub(super) lines: u64,
    /// The options that include lines of it, and how many.
    pub(super) option: (&'static str, u64),
}

impl LeftOut {
    pub(super) fn add(&mut self, arm: &str, rules: usize) {
        let is_known = self.0.contains_key(arm) || self.0.len() < ARMS_MAX;
        let name = if is_known { arm } else { OTHERS };
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), [0; 16]);
        }
        if let Some(count) = self.0.get_mut(name).and_then(|sets| sets.get_mut(rules)) {
            *count += 1;
        }
    }

    fn sets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0
            .values()
            .flat_map(|sets| sets.iter().copied().enumerate())
    }

    /// All lines, and those that are left out.
    pub(super) fn lines(&self) -> (u64, u64) {
        let sum = |from| {
            self.sets()
                .filter(|(set, _)| *set >= from)
                .map(|(_, count)| count)
                .sum()
        };
        (sum(0), sum(1))
    }

    /// Each rule that leaves out lines, with their number. A line may be left out by several.
    pub(super) fn rules(&self) -> Vec<(&'static str, u64)> {
        let count = |rule: usize| {
            let sets = self.sets().filter(|(set, _)| set & rule != 0);
            sets.map(|(_, count)| count).sum::<u64>()
        };
        let rules = RULES.iter().map(|(rule, why)| (*why, count(*rule)));
        rules.filter(|(_, count)| *count > 0).collect()
    }

    /// The arms that have lines of which none counts.
    pub(super) fn empty_arms(&self) -> Vec<EmptyArm> {
        let arms = self.0.iter().filter(|(_, sets)| sets[0] == 0);
        arms.map(|(name, sets)| {
            let lines = sets.iter().sum();
            let [resumed, small] = [RESUMED, SMALL].map(|rule| sets[rule]);
            let both = resumed + small + sets[RESUMED | SMALL];
            let option = if resumed >= small && resumed > 0 {
                ("--resumed", resumed)
            } else if small > 0 {
                ("--min-size 0", small)
            } else if both > 0 {
                ("--resumed --min-size 0", both)
            } else {
                (
                    "--arm-by EXPR, an expression for the arm, to which no rule applies,",
                    lines,
                )
            };
            EmptyArm {
                name: name.clone(),
                lines,
                option,
            }
        })
        .collect()
    }

    /// The empty arms in a sentence, or nothing.
    pub(super) fn hint(&self) -> Option<String> {
        let arms: Vec<String> = self.empty_arms().iter().map(EmptyArm::sentence).collect();
        (!arms.is_empty()).then(|| arms.join("; "))
    }
}

impl EmptyArm {
    /// Without a full stop.
    pub(super) fn sentence(&self) -> String {
        let (option, count) = self.option;
        format!(
            "all {} lines of the arm {} are left out by the rules for production logs: {option} includes {count} of them",
            self.lines, self.name
        )
    }
}
