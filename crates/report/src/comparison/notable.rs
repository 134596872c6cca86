//! Connections to look at: the slowest, and those that an arm changed most, with the command that runs each again.
//!
//! Only logs of `lastbyte ab` have them, as only a simulated connection can be run again from its seed.

use super::gather::Block;
use crate::statistics::bootstrap::Member;

/// Maximum number of connections in a list.
const LENGTH: usize = 5;

/// A path that was simulated in every arm.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notable {
    pub(super) seed: u64,
    /// The arm that it is notable for.
    pub(super) arm: usize,
    /// Its time in each arm, in microseconds; `None` if it did not complete, or is absent.
    pub(super) times: Vec<Option<u64>>,
    /// The change of the arm's time against the baseline's.
    pub(super) change: Option<f64>,
}

/// Lists of notable connections.
#[derive(Clone, Debug, Default)]
pub(super) struct NotableLists {
    /// The slowest of all arms, slowest first.
    pub(super) slowest: Vec<Notable>,
    /// Those that an arm made slower by the largest factors.
    pub(super) slower: Vec<Notable>,
    /// Those that an arm made faster by the largest factors.
    pub(super) faster: Vec<Notable>,
}

impl NotableLists {
    /// From pairs. `order` has the index of each arm in a block.
    pub(super) fn new(blocks: &[Block], order: &[usize]) -> Self {
        let time = |block: &Block, arm: usize| match block.members.get(order[arm]) {
            Some(Member::Value(micros)) => Some(*micros),
            _ => None,
        };
        let is_absent = |block: &Block, arm: usize| {
            matches!(block.members.get(order[arm]), None | Some(Member::Absent))
        };
        let notable = |block: &Block, arm: usize, change| Notable {
            seed: block.seed,
            arm,
            times: (0..order.len()).map(|arm| time(block, arm)).collect(),
            change,
        };
        let (mut slowest, mut slower, mut faster) = (Vec::new(), Vec::new(), Vec::new());
        for block in blocks {
            let arms = (0..order.len()).filter(|arm| !is_absent(block, *arm));
            let worst = arms.max_by_key(|arm| {
                (
                    time(block, *arm).unwrap_or(u64::MAX),
                    core::cmp::Reverse(*arm),
                )
            });
            if let Some(arm) = worst {
                let rank = time(block, arm).unwrap_or(u64::MAX);
                keep(&mut slowest, rank as f64, || notable(block, arm, None));
            }
            for arm in 1..order.len() {
                let Some((ours, base)) = time(block, arm).zip(time(block, 0)) else {
                    continue;
                };
                let ratio = ours.max(1) as f64 / base.max(1) as f64;
                let make = || notable(block, arm, Some(ratio - 1.0));
                if ratio > 1.0 {
                    keep(&mut slower, ratio, make);
                } else if ratio < 1.0 {
                    keep(&mut faster, 1.0 / ratio, make);
                }
            }
        }
        let of = |ranked: Vec<(f64, Notable)>| ranked.into_iter().map(|(_, one)| one).collect();
        Self {
            slowest: of(slowest),
            slower: of(slower),
            faster: of(faster),
        }
    }
}

/// Keeps the connections of the highest ranks, each path once; of equal ones the first.
fn keep(list: &mut Vec<(f64, Notable)>, rank: f64, make: impl FnOnce() -> Notable) {
    let place = list.partition_point(|(other, _)| *other >= rank);
    if place >= LENGTH {
        return;
    }
    let new = make();
    if let Some(same) = list.iter().position(|(_, other)| other.seed == new.seed) {
        if same < place {
            return;
        }
        list.remove(same);
    }
    list.insert(place, (rank, new));
    list.truncate(LENGTH);
}
