//! The match: which paths of the bank a line may have had, and what another arm did on them.
//!
//! [`Model::train`] learns the kernel from the bank alone, and measures its errors there: on populations that it has not seen.
//! [`Model::match_lines`] then weighs the bank's paths for each line of a log.

use crate::{
    bank::Bank,
    forest::Weighted,
    kernel::{Effort, Kernel, PATHS_MIN},
    line::{Line, Selection},
    linear,
    random::Random,
    statistics::{COUNT, LOSS, MEAN, Statistics, Transfer, change},
};

/// What is predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// The outcome under another arm.
    Arm(&'a str),
    /// The time to last byte under the line's own arm, which a check predicts without using it.
    Own,
}

/// Draws from the posterior of a line.
pub(crate) const DRAWS: usize = 16;
/// The rounds of reweighting of which the best is taken.
const ROUNDS: [usize; 2] = [0, 6];
/// Fewer lines than this are no population of which errors are measured.
const POPULATION_MIN: usize = 20;
/// Repetitions by which the chance in an error is measured.
const REPEATS: usize = 40;

/// A path of the bank with both outcomes.
struct Known {
    /// The index in the bank.
    path: u32,
    own: Transfer,
    new: Transfer,
}

/// A kernel from the lines of one arm to the outcomes of another.
pub(crate) struct Model {
    kernel: Kernel,
    known: Vec<Known>,
    /// Change of the logarithm of the time, and of the loss.
    outcomes: Vec<[f64; 2]>,
    rounds: usize,
    /// Standard deviations of the errors of unseen populations, beyond chance.
    pub(crate) errors: Statistics,
    pub(crate) unmatched: Statistics,
    seed: u64,
}

/// A line with its posterior.
#[derive(Clone, Debug)]
pub(crate) struct Matched {
    /// The index among the lines given.
    pub(crate) line: usize,
    pub(crate) own: Transfer,
    pub(crate) draws: [Transfer; DRAWS],
    /// What the nearest path alone would give: change of the logarithm of the time, and of the loss.
    pub(crate) nearest: [f64; 2],
    /// Paths of the bank, and their weights.
    pub(crate) paths: Vec<Weighted>,
}

/// Matched lines, and those that are not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matches {
    pub(crate) lines: Vec<Matched>,
    /// Lines that lack a feature.
    pub(crate) incomplete: usize,
    /// Lines that no path resembles.
    pub(crate) unsupported: Vec<usize>,
}

impl Model {
    /// Learns from the bank. `None` if it has not both arms, or fewer than 100 paths that completed under both.
    pub(crate) fn train(
        bank: &Bank,
        from: &str,
        target: &Target<'_>,
        selection: &Selection,
        effort: Effort,
        seed: u64,
    ) -> Option<Self> {
        let lines = bank.lines(from)?;
        let others = match target {
            Target::Arm(to) => bank.lines(to)?,
            Target::Own => lines,
        };
        let (mut known, mut features, mut populations) = (Vec::new(), Vec::new(), Vec::new());
        for (path, (line, other)) in lines.iter().zip(others).enumerate() {
            let both = line.as_ref().zip(other.as_ref());
            let found = both.and_then(|(line, other)| {
                let pair = pair(line, transfer(other)?, target)?;
                Some((pair, selection.values(line)?))
            });
            if let Some(((own, new), values)) = found {
                known.push(Known {
                    path: path as u32,
                    own,
                    new,
                });
                features.push(values);
                populations.push(bank.paths()[path].population);
            }
        }
        if known.len() < PATHS_MIN {
            return None;
        }
        let outcomes: Vec<[f64; 2]> = known
            .iter()
            .map(|one| {
                [
                    one.new.log_ttlb - one.own.log_ttlb,
                    one.new.loss - one.own.loss,
                ]
            })
            .collect();
        let kernel = Kernel::train(selection, features, &outcomes, populations, effort, seed);
        let pairs = known.iter().map(|one| (one.own, one.new));
        let unmatched = change(pairs);
        let mut model = Self {
            kernel,
            known,
            outcomes,
            rounds: 0,
            errors: [0.0; COUNT],
            unmatched,
            seed,
        };
        model.measure_errors(bank, effort);
        Some(model)
    }

    /// Weighs the paths of the bank for each line, and draws the outcome.
    pub(crate) fn match_lines(&self, lines: &[&Line], target: &Target<'_>) -> Matches {
        let mut matches = Matches::default();
        let mut wanted = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            let own = transfer(line).and_then(|own| pair(line, own, target));
            let (Some((own, _)), Some(values)) = (own, self.kernel.values(line)) else {
                matches.incomplete += 1;
                continue;
            };
            let (distance, nearest) = self.kernel.nearest(&values, None);
            if distance > self.kernel.limit {
                matches.unsupported.push(index);
                continue;
            }
            let weights = self.kernel.weigh(&values);
            wanted.push((index, own, values, weights, nearest));
        }
        let mut all: Vec<Vec<Weighted>> = wanted.iter().map(|one| one.3.clone()).collect();
        self.reweigh(&mut all, self.rounds);
        let mut random = Random::new(self.seed, 1);
        for ((line, own, values, _, nearest), weights) in wanted.into_iter().zip(all) {
            let draws = self.draws(own, &values, &weights, &mut random);
            let paths = weights
                .iter()
                .map(|(one, weight)| (self.known[*one as usize].path, *weight));
            matches.lines.push(Matched {
                nearest: self.outcomes[nearest],
                line,
                own,
                draws,
                paths: paths.collect(),
            });
        }
        matches
    }

    /// Draws outcomes of a line from its posterior, in strata of the change of the time.
    fn draws(
        &self,
        own: Transfer,
        values: &[f64],
        weights: &[Weighted],
        random: &mut Random,
    ) -> [Transfer; DRAWS] {
        let at = linear::at(values, weights, &self.kernel.features, &self.outcomes);
        let mut mean = [0.0; 2];
        let mut sorted: Vec<([f64; 2], f64)> = Vec::with_capacity(weights.len());
        for (one, weight) in weights {
            let outcome = self.outcomes[*one as usize];
            mean = [mean[0] + weight * outcome[0], mean[1] + weight * outcome[1]];
            sorted.push((outcome, *weight));
        }
        sorted.sort_by(|a, b| a.0[0].total_cmp(&b.0[0]));
        let offset = random.unit();
        let mut below = 0.0;
        let mut rest = sorted.iter();
        let mut last = [0.0; 2];
        let mut draws = [own; DRAWS];
        for (number, draw) in draws.iter_mut().enumerate() {
            let place = (number as f64 + offset) / DRAWS as f64;
            while below <= place
                && let Some((outcome, weight)) = rest.next()
            {
                below += weight;
                last = *outcome;
            }
            draw.log_ttlb = own.log_ttlb + last[0] + at[0] - mean[0];
            draw.loss = (own.loss + last[1] + at[1] - mean[1]).clamp(0.0, 1.0);
        }
        draws
    }

    /// Moves the weights towards the paths that many lines may have had: rounds of expectation and maximisation of the population,
    /// each of which takes half of the step.
    fn reweigh(&self, all: &mut [Vec<Weighted>], rounds: usize) {
        let count = self.known.len();
        let mut prior = vec![1.0; count];
        let given: Vec<Vec<Weighted>> = all.to_vec();
        for _ in 0..rounds {
            let mut next = vec![0.0; count];
            for weights in &*all {
                for (one, weight) in weights {
                    next[*one as usize] += weight;
                }
            }
            let scale = count as f64 / all.len().max(1) as f64;
            for (prior, next) in prior.iter_mut().zip(next) {
                *prior = f64::midpoint(*prior, next * scale);
            }
            for (weights, given) in all.iter_mut().zip(&given) {
                let total: f64 = given
                    .iter()
                    .map(|(one, weight)| weight * prior[*one as usize])
                    .sum();
                for (slot, (one, weight)) in weights.iter_mut().zip(given) {
                    slot.1 = weight * prior[*one as usize] / total;
                }
            }
        }
    }

    /// Predicts populations of the bank that the trees have not seen, and classes of access, and takes the rounds with the smaller
    /// error.
    fn measure_errors(&mut self, bank: &Bank, effort: Effort) {
        let mut random = Random::new(self.seed, 3);
        let mut groups: std::collections::BTreeMap<(u8, String), Vec<usize>> =
            std::collections::BTreeMap::new();
        for (one, known) in self.known.iter().enumerate() {
            let path = &bank.paths()[known.path as usize];
            groups
                .entry((0, format!("{:06}", path.population)))
                .or_default()
                .push(one);
            groups.entry((1, path.class.clone())).or_default().push(one);
        }
        let mut best: Option<(f64, usize, Statistics)> = None;
        let groups: Vec<Vec<(usize, Vec<Weighted>)>> = groups
            .into_values()
            .map(|members| {
                let lines = (0..members.len().min(effort.lines))
                    .map(|_| members[random.below(members.len())]);
                let weighed = lines.map(|one| (one, self.kernel.weigh_unseen(one)));
                weighed.filter(|(_, weights)| !weights.is_empty()).collect()
            })
            .filter(|lines: &Vec<_>| lines.len() >= POPULATION_MIN)
            .collect();
        for rounds in ROUNDS {
            let mut squares = [0.0; COUNT];
            for group in &groups {
                let excess = self.excess_of(group, rounds, &mut random);
                for (sum, square) in squares.iter_mut().zip(excess) {
                    *sum += square;
                }
            }
            let count = groups.len().max(1) as f64;
            let errors = squares.map(|sum| libm::sqrt((sum / count).max(0.0)));
            // A point of loss is as bad as two points of time.
            let total = errors[MEAN] + 2.0 * errors[LOSS];
            if best.is_none_or(|(least, ..)| total < least) {
                best = Some((total, rounds, errors));
            }
        }
        if let Some((_, rounds, errors)) = best {
            (self.rounds, self.errors) = (rounds, errors);
        }
    }

    /// The squares of the errors of a population, without what chance adds to them.
    fn excess_of(
        &self,
        group: &[(usize, Vec<Weighted>)],
        rounds: usize,
        random: &mut Random,
    ) -> Statistics {
        let mut all: Vec<Vec<Weighted>> =
            group.iter().map(|(_, weights)| weights.clone()).collect();
        self.reweigh(&mut all, rounds);
        let drawn: Vec<(Transfer, [Transfer; DRAWS], Transfer)> = group
            .iter()
            .zip(&all)
            .map(|((one, _), weights)| {
                let Known { own, new, .. } = self.known[*one];
                (
                    own,
                    self.draws(own, &self.kernel.features[*one], weights, random),
                    new,
                )
            })
            .collect();
        let predicted = change(
            drawn
                .iter()
                .flat_map(|(own, draws, _)| draws.iter().map(move |draw| (*own, *draw))),
        );
        let truth = change(drawn.iter().map(|(own, _, new)| (*own, *new)));
        let (mut sum, mut squares) = ([0.0; COUNT], [0.0; COUNT]);
        for _ in 0..REPEATS {
            let chosen: Vec<usize> = drawn.iter().map(|_| random.below(DRAWS)).collect();
            let one = change(
                drawn
                    .iter()
                    .zip(&chosen)
                    .map(|((own, draws, _), number)| (*own, draws[*number])),
            );
            let each = one.iter().zip(&predicted);
            for ((sum, square), (one, predicted)) in sum.iter_mut().zip(&mut squares).zip(each) {
                let value = one - predicted;
                *sum += value;
                *square += value * value;
            }
        }
        let repeats = REPEATS as f64;
        let mut excess = [0.0; COUNT];
        let errors = predicted.iter().zip(&truth).zip(sum.iter().zip(&squares));
        for (excess, ((predicted, truth), (sum, square))) in excess.iter_mut().zip(errors) {
            let chance = square / repeats - (sum / repeats) * (sum / repeats);
            *excess = (predicted - truth) * (predicted - truth) - chance;
        }
        excess
    }
}

fn transfer(line: &Line) -> Option<Transfer> {
    Some(Transfer {
        log_ttlb: line.log_ttlb()?,
        loss: line.loss()?,
    })
}

/// What is known of a line, and what is to be predicted. Its own time is predicted from its round-trip time.
fn pair(line: &Line, new: Transfer, target: &Target<'_>) -> Option<(Transfer, Transfer)> {
    let own = match target {
        Target::Arm(_) => transfer(line)?,
        Target::Own => Transfer {
            log_ttlb: line.log_rtt()?,
            loss: new.loss,
        },
    };
    Some((own, new))
}
