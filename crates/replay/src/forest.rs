//! The kernel: extremely randomised trees (Geurts, Ernst and Wehenkel, 2006) as adaptive neighbourhoods.
//!
//! A tree divides the bank by features, at random thresholds, where the outcomes differ most. The paths that share a leaf with a line
//! are its neighbours, and their weight is the share of trees in which they do, divided by the size of the leaf. So features that
//! have no effect on the outcome do not separate paths, and no scale of a feature is set by hand.
//!
//! Each tree is grown from half of the bank's populations. Trees that have not seen a population weigh its paths without it:
//! errors are those of unseen populations.

use crate::random::Random;

/// What is divided.
pub(crate) struct Data<'a> {
    /// The features of each path.
    pub(crate) features: &'a [Vec<f64>],
    /// The outcomes of each path, scaled to a variance of 1.
    pub(crate) outcomes: &'a [[f64; 2]],
    /// The population of each path.
    pub(crate) populations: &'a [u32],
}

enum Node {
    Split {
        feature: usize,
        threshold: f64,
        right: usize,
    },
    Leaf {
        from: usize,
        to: usize,
    },
}

struct Tree {
    nodes: Vec<Node>,
    members: Vec<u32>,
    /// Whether it has seen a population.
    has_seen: Vec<bool>,
}

/// Trees.
pub(crate) struct Forest {
    trees: Vec<Tree>,
    paths: usize,
}

/// A path and its weight.
pub(crate) type Weighted = (u32, f64);

impl Forest {
    pub(crate) fn grow(data: &Data<'_>, trees: usize, leaf: usize, seed: u64) -> Self {
        let populations = data
            .populations
            .iter()
            .max()
            .map_or(0, |last| *last as usize + 1);
        let trees = (0..trees).map(|tree| {
            let mut random = Random::new(seed, 1000 + tree as u64);
            let has_seen = half(populations, &mut random);
            let members: Vec<u32> = (0..data.features.len() as u32)
                .filter(|path| has_seen[data.populations[*path as usize] as usize])
                .collect();
            let mut tree = Tree {
                nodes: Vec::new(),
                members,
                has_seen,
            };
            let to = tree.members.len();
            tree.split(data, leaf, 0, to, &mut random);
            tree
        });
        Self {
            trees: trees.collect(),
            paths: data.features.len(),
        }
    }

    /// The neighbours of these features, with weights whose sum is 1; of trees that have not seen `population`, if it is given. Empty
    /// if there are none.
    pub(crate) fn weigh(&self, features: &[f64], population: Option<u32>) -> Vec<Weighted> {
        let mut weights = vec![0.0; self.paths];
        let mut found: Vec<u32> = Vec::new();
        for tree in &self.trees {
            if population.is_some_and(|one| tree.has_seen.get(one as usize) != Some(&false)) {
                continue;
            }
            let leaf = tree.leaf(features);
            let weight = 1.0 / leaf.len() as f64;
            for path in leaf {
                let slot = &mut weights[*path as usize];
                if *slot == 0.0 {
                    found.push(*path);
                }
                *slot += weight;
            }
        }
        found.sort_unstable();
        let total: f64 = found.iter().map(|path| weights[*path as usize]).sum();
        found
            .iter()
            .map(|path| (*path, weights[*path as usize] / total))
            .collect()
    }
}

/// Half of the populations, or both of two.
fn half(populations: usize, random: &mut Random) -> Vec<bool> {
    let mut order: Vec<usize> = (0..populations).collect();
    for last in (1..populations).rev() {
        order.swap(last, random.below(last + 1));
    }
    let mut has_seen = vec![false; populations];
    for one in order.into_iter().take(populations.div_ceil(2)) {
        has_seen[one] = true;
    }
    has_seen
}

impl Tree {
    fn leaf(&self, features: &[f64]) -> &[u32] {
        let mut at = 0;
        loop {
            match self.nodes.get(at) {
                Some(Node::Split {
                    feature,
                    threshold,
                    right,
                }) => {
                    at = if features[*feature] < *threshold {
                        at + 1
                    } else {
                        *right
                    };
                }
                Some(Node::Leaf { from, to }) => return &self.members[*from..*to],
                None => return &[],
            }
        }
    }

    /// Divides members `from..to`, whose node is the next one.
    fn split(&mut self, data: &Data<'_>, leaf: usize, from: usize, to: usize, random: &mut Random) {
        let node = self.nodes.len();
        self.nodes.push(Node::Leaf { from, to });
        let Some((feature, threshold)) = best(data, &self.members[from..to], leaf, random) else {
            return;
        };
        let is_left = |path: &u32| data.features[*path as usize][feature] < threshold;
        let members = &mut self.members[from..to];
        members.sort_by_key(|path| (!is_left(path), *path));
        let middle = from + members.partition_point(is_left);
        self.split(data, leaf, from, middle, random);
        let right = self.nodes.len();
        self.split(data, leaf, middle, to, random);
        self.nodes[node] = Node::Split {
            feature,
            threshold,
            right,
        };
    }
}

/// The best of one random threshold in half of the features that can be divided: where the outcomes of both sides differ most.
fn best(
    data: &Data<'_>,
    members: &[u32],
    leaf: usize,
    random: &mut Random,
) -> Option<(usize, f64)> {
    if members.len() < 2 * leaf {
        return None;
    }
    let features = data.features.first()?.len();
    let sum = |paths: &mut dyn Iterator<Item = &u32>| {
        let mut total = (0.0, [0.0; 2]);
        for path in paths {
            let outcome = data.outcomes[*path as usize];
            total = (
                total.0 + 1.0,
                [total.1[0] + outcome[0], total.1[1] + outcome[1]],
            );
        }
        total
    };
    let (count, all) = sum(&mut members.iter());
    let mut best: Option<(f64, usize, f64)> = None;
    let mut order: Vec<usize> = (0..features).collect();
    let mut tried = 0;
    for at in 0..features {
        order.swap(at, at + random.below(features - at));
        let feature = order[at];
        if tried == features.div_ceil(2) {
            break;
        }
        let value = |path: &u32| data.features[*path as usize][feature];
        let (low, high) = members
            .iter()
            .map(value)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let threshold = low + (high - low) * random.unit();
        if threshold <= low {
            continue;
        }
        let (left, sums) = sum(&mut members.iter().filter(|path| value(path) < threshold));
        if left < leaf as f64 || count - left < leaf as f64 {
            continue;
        }
        tried += 1;
        let gain: f64 = [0, 1]
            .iter()
            .map(|at| {
                let rest = all[*at] - sums[*at];
                sums[*at] * sums[*at] / left + rest * rest / (count - left)
            })
            .sum();
        if best.is_none_or(|(most, ..)| gain > most) {
            best = Some((gain, feature, threshold));
        }
    }
    best.map(|(_, feature, threshold)| (feature, threshold))
}
