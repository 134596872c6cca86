//! A tally as data, so that parts of a log are counted where they are.

use std::collections::BTreeMap;

use lastbyte_report::statistics::{quantiles::Histogram, sequence::Sums};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{COUNT_MAX, HOUR_MS, Ignored, Tally, Values};

/// No value is larger: logarithms of times in milliseconds, and shares.
const VALUE_MAX: f64 = 64.0;

/// The count, sum and sum of squares.
type SumsState = (u64, f64, f64);
/// The connections, and the sums of times to last byte, loss, incomplete transfers and round-trip times.
type ValuesState = (u64, SumsState, SumsState, SumsState, SumsState);
/// The bins of a histogram.
type Bins = Vec<(i16, u64)>;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct State {
    ignored: Ignored,
    /// Epoch, site, and the values of the baseline and of the arm.
    cells: Vec<(u32, String, [ValuesState; 2])>,
    epochs: BTreeMap<u32, EpochState>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EpochState {
    newest: u64,
    /// The times of the first and of the last line of each hour.
    hours: Vec<[u64; 2]>,
    configs: Vec<String>,
    /// Times of the baseline and of the arm.
    times: [Bins; 2],
}

impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let cells = self.cells.iter().map(|((epoch, site), values)| {
            let values = [values_state(&values[0]), values_state(&values[1])];
            (*epoch, self.name(*site).to_owned(), values)
        });
        let epochs = self.newest.iter().map(|(epoch, newest)| {
            let times = self.times.get(epoch);
            let state = EpochState {
                newest: *newest,
                hours: (self.hours.get(epoch).into_iter())
                    .flat_map(|hours| hours.values().copied())
                    .collect(),
                configs: self.configs(*epoch),
                times: times.map_or_else(Default::default, |times| {
                    [times[0].bins().collect(), times[1].bins().collect()]
                }),
            };
            (*epoch, state)
        });
        let state = State {
            ignored: self.ignored,
            cells: cells.collect(),
            epochs: epochs.collect(),
        };
        state.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Tally {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let state = State::deserialize(from)?;
        Self::of(state).ok_or_else(|| D::Error::custom("a number is out of range"))
    }
}

impl Tally {
    fn of(state: State) -> Option<Self> {
        let Ignored {
            other_experiment,
            other_epoch,
            other_arm,
            without_time,
            ahead,
            unreadable,
            short,
        } = state.ignored;
        let ignored = [
            other_experiment,
            other_epoch,
            other_arm,
            without_time,
            ahead,
            unreadable,
            short,
        ];
        if ignored.iter().any(|count| *count > COUNT_MAX) {
            return None;
        }
        let mut tally = Self {
            ignored: state.ignored,
            ..Self::default()
        };
        for (epoch, site, [baseline, arm]) in state.cells {
            let values = [values(baseline)?, values(arm)?];
            let site = tally.site(&site);
            tally.add_values(epoch, site, &values);
        }
        for (epoch, state) in state.epochs {
            tally.newest.insert(epoch, state.newest);
            tally.until_ms = tally.until_ms.max(state.newest);
            for [first, last] in state.hours {
                let hour = first / HOUR_MS;
                if last < first || last / HOUR_MS != hour {
                    return None;
                }
                tally.add_hour(epoch, hour, [first, last]);
            }
            let configs = state.configs.into_iter().collect();
            tally.configs.insert(epoch, configs);
            let [baseline, arm] = state.times;
            if !baseline.is_empty() || !arm.is_empty() {
                let times = [histogram(baseline)?, histogram(arm)?];
                tally.times.insert(epoch, times);
            }
        }
        Some(tally)
    }
}

const fn sums_state(sums: &Sums) -> SumsState {
    (sums.count, sums.sum, sums.squares)
}

const fn values_state(values: &Values) -> ValuesState {
    (
        values.connections,
        sums_state(&values.ttlb),
        sums_state(&values.loss),
        sums_state(&values.incomplete),
        sums_state(&values.rtt),
    )
}

fn sums((count, sum, squares): SumsState) -> Option<Sums> {
    let most = count as f64 * VALUE_MAX;
    let are_of_values = sum.abs() <= most && (0.0..=most * VALUE_MAX).contains(&squares);
    (count <= COUNT_MAX && are_of_values).then_some(Sums {
        count,
        sum,
        squares,
    })
}

fn values((connections, ttlb, loss, incomplete, rtt): ValuesState) -> Option<Values> {
    (connections <= COUNT_MAX).then_some(Values {
        connections,
        ttlb: sums(ttlb)?,
        loss: sums(loss)?,
        incomplete: sums(incomplete)?,
        rtt: sums(rtt)?,
    })
}

fn histogram(bins: Bins) -> Option<Histogram> {
    let are_counts = bins.iter().all(|(_, count)| *count <= COUNT_MAX);
    are_counts.then(|| Histogram::of_bins(bins))?
}
