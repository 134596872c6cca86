//! The columns that are read of a line of a connection log, and the features computed from them.
//!
//! Lines of the bank are read by the same code as lines of a log. A new column is a line in [`Column`], a new feature a line in
//! [`FEATURES`].

use lastbyte_json::Value;
use lastbyte_record::connection_log::keys;

/// Declares the columns with their keys.
macro_rules! columns {
    ($($name:ident $key:expr, $about:literal;)*) => {
        /// A column: a number of the log.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Column {
            $(#[doc = $about] $name,)*
        }

        /// The keys of the columns, in their order.
        pub const KEYS: &[&str] = &[$($key,)*];

        /// The columns, in their order.
        const COLUMNS: &[Column] = &[$(Column::$name,)*];
    };
}

columns! {
    Size keys::CONTENT_LENGTH.name(), "Size of the response, in bytes.";
    Ttlb keys::TTLB.name(), "Time to last byte, in ms.";
    Sent keys::NUM_PACKETS_SENT.name(), "Packets sent.";
    Lost keys::NUM_PACKETS_LOST.name(), "Packets lost.";
    LostByTime keys::NUM_PACKETS_LOST_TIME_THRESHOLD.name(), "Packets lost by the time threshold alone.";
    Acked keys::NUM_PACKETS_ACK_RECEIVED.name(), "Packets acknowledged.";
    LateAcked keys::NUM_PACKETS_LATE_ACKED.name(), "Packets acknowledged after they were declared lost.";
    Acks "num-frames-received.ack", "ACK frames received.";
    ProbeTimeouts keys::NUM_PTOS.name(), "Probe timeouts.";
    Confirmed keys::HANDSHAKE_CONFIRMED_MSEC.name(), "Time until the handshake was confirmed, in ms.";
    RttMinimum keys::RTT_MINIMUM.name(), "Minimum round-trip time, in ms.";
    RttSmoothed keys::RTT_SMOOTHED.name(), "Smoothed round-trip time, in ms.";
    RttVariance keys::RTT_VARIANCE.name(), "Mean deviation of the round-trip time, in ms.";
    RttLatest keys::RTT_LATEST.name(), "Latest round-trip time, in ms.";
    Window keys::CC_CWND.name(), "Congestion window, in bytes.";
    WindowAtExit keys::CC_CWND_EXITING_SLOW_START.name(), "Window at the end of startup, in bytes; 0 during startup.";
    WindowMinimum keys::CC_CWND_MINIMUM.name(), "Smallest window after a reduction, in bytes.";
    WindowMaximum keys::CC_CWND_MAXIMUM.name(), "Largest window, in bytes.";
    Episodes keys::CC_NUM_LOSS_EPISODES.name(), "Reductions of the window.";
    Tracked keys::NUM_SENTMAP_PACKETS_LARGEST.name(), "Largest number of packets tracked.";
    Handshake keys::ANATOMY_HANDSHAKE.name(), "Time from the start of the connection to the request, in ms.";
    PartWindow keys::ANATOMY_WINDOW.name(), "Time with a full window, in ms.";
    PartPacing keys::ANATOMY_PACING.name(), "Time held back by the pacer, in ms.";
    PartIdle keys::ANATOMY_IDLE.name(), "Time with an idle path, in ms.";
    PartQueueing keys::ANATOMY_QUEUEING.name(), "Time behind the bottleneck's queue, in ms.";
    PartRepair keys::ANATOMY_REPAIR.name(), "Time of repairs, in ms.";
    PartLastAck keys::ANATOMY_LAST_ACK.name(), "Time of the last acknowledgment, in ms.";
}

/// What is read of a line. A number that the line does not have is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// `NaN` is absent.
    values: [f64; COLUMNS.len()],
}

/// Numbers from this one on stand for no value in logs, except that of the smallest window.
const NONE_FROM: f64 = 4e9;

impl Line {
    /// The line with these values of [`KEYS`], in their order. What is not a number is absent.
    #[must_use]
    pub fn of_cells(cells: &[Value]) -> Self {
        Self::of_numbers(cells.iter().map(|cell| cell.as_f64().unwrap_or(f64::NAN)))
    }

    /// The line with these numbers of [`KEYS`], in their order. `NaN`, infinity and numbers of 4 · 10⁹ or more are absent.
    #[must_use]
    pub fn of_numbers(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut values = [f64::NAN; COLUMNS.len()];
        for (value, number) in values.iter_mut().zip(numbers) {
            if (0.0..NONE_FROM).contains(&number) {
                *value = number;
            }
        }
        Self { values }
    }

    /// The numbers in the order of [`KEYS`]; `None` is absent.
    pub fn numbers(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.values
            .iter()
            .map(|value| Some(*value).filter(|value| value.is_finite()))
    }

    /// The number of a column.
    pub fn get(&self, column: Column) -> Option<f64> {
        Some(self.values[column as usize]).filter(|value| value.is_finite())
    }

    fn at(&self, column: Column) -> f64 {
        self.values[column as usize]
    }

    /// The natural logarithm of the time to last byte in ms, of 0.5 ms at least, as logs round to 1 ms.
    pub fn log_ttlb(&self) -> Option<f64> {
        self.get(Column::Ttlb).map(|ttlb| libm::log(ttlb.max(0.5)))
    }

    /// The share of packets that were lost, 0 to 1.
    pub fn loss(&self) -> Option<f64> {
        let sent = self.get(Column::Sent).filter(|sent| *sent > 0.0)?;
        Some((self.get(Column::Lost)? / sent).min(1.0))
    }

    /// The natural logarithm of the minimum round-trip time in ms.
    pub(crate) fn log_rtt(&self) -> Option<f64> {
        Some(libm::log(self.rtt())).filter(|log| log.is_finite())
    }

    /// The minimum round-trip time in ms, of 0.5 at least.
    fn rtt(&self) -> f64 {
        self.at(Column::RttMinimum).max_or_nan(0.5)
    }
}

/// `f64::max` replaces `NaN`; an absent number has to stay absent.
trait MaxOrNan {
    fn max_or_nan(self, least: f64) -> f64;
}

impl MaxOrNan for f64 {
    fn max_or_nan(self, least: f64) -> f64 {
        if self < least { least } else { self }
    }
}

/// A number computed from a line, on a scale on which distances mean the same everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// The name.
    pub name: &'static str,
    /// The columns it needs.
    pub columns: &'static [Column],
    /// Whether the time to last byte can be computed from it.
    pub has_ttlb: bool,
    of: fn(&Line) -> f64,
}

impl Feature {
    /// The value; `None` if a column is absent.
    pub fn of(&self, line: &Line) -> Option<f64> {
        Some((self.of)(line)).filter(|value| value.is_finite())
    }
}

fn ratio(line: &Line, over: f64, column: Column) -> f64 {
    libm::log(line.at(column).max_or_nan(0.5) / over)
}

fn part(line: &Line, column: Column) -> f64 {
    line.at(column) / line.at(Column::Ttlb).max_or_nan(1.0)
}

fn per_sent(line: &Line, column: Column) -> f64 {
    line.at(column) / line.at(Column::Sent).max_or_nan(1.0)
}

/// Declares the features.
macro_rules! features {
    ($($name:literal [$($column:ident),*] $has_ttlb:literal |$line:ident| $value:expr;)*) => {
        &[$(Feature {
            name: $name,
            columns: &[$(Column::$column),*],
            has_ttlb: $has_ttlb,
            of: |$line| $value,
        },)*]
    };
}

/// All features. Whether a feature `has_ttlb` is the third column.
pub const FEATURES: &[Feature] = features! {
    "size" [Size] false |line| libm::log(line.at(Column::Size).max_or_nan(1.0));
    "minimum RTT" [RttMinimum] false |line| libm::log(line.rtt());
    "TTLB in RTTs" [Ttlb, RttMinimum] true |line| ratio(line, line.rtt(), Column::Ttlb);
    "loss" [Sent, Lost] false |line| libm::log(per_sent(line, Column::Lost) + 0.003);
    "loss by time" [Sent, LostByTime] false |line| per_sent(line, Column::LostByTime);
    "late acknowledgments" [Sent, LateAcked] false |line| per_sent(line, Column::LateAcked);
    "loss episodes" [Episodes] false |line| libm::log1p(line.at(Column::Episodes));
    "probe timeouts" [ProbeTimeouts] false |line| libm::log1p(line.at(Column::ProbeTimeouts));
    "smoothed RTT" [RttSmoothed, RttMinimum] false |line| ratio(line, line.rtt(), Column::RttSmoothed);
    "latest RTT" [RttLatest, RttMinimum] false |line| ratio(line, line.rtt(), Column::RttLatest);
    "RTT deviation" [RttVariance, RttMinimum] false |line| libm::log((line.at(Column::RttVariance) + 0.5) / line.rtt());
    "window" [Window] false |line| libm::log(line.at(Column::Window).max_or_nan(1.0));
    "largest window" [WindowMaximum] false |line| libm::log(line.at(Column::WindowMaximum).max_or_nan(1.0));
    "smallest window" [WindowMaximum] false |line| {
        // It is absent, or above all others, if the window was never reduced.
        let least = line.get(Column::WindowMinimum).unwrap_or(f64::INFINITY);
        libm::log(least.min(line.at(Column::WindowMaximum)).max_or_nan(1.0))
    };
    "window at exit" [Window, WindowAtExit] false |line| {
        let exit = line.at(Column::WindowAtExit);
        libm::log(if exit > 0.0 { exit } else { 2.0 * line.at(Column::Window).max_or_nan(1.0) + 0.0 * exit })
    };
    "startup ended" [WindowAtExit] false |line| {
        let exit = line.at(Column::WindowAtExit);
        if exit.is_nan() { exit } else { f64::from(u8::from(exit > 0.0)) }
    };
    "packets tracked" [Tracked] false |line| libm::log1p(line.at(Column::Tracked));
    "ACK frames a packet" [Acks, Acked] false |line| libm::log((line.at(Column::Acks) + 1.0) / (line.at(Column::Acked) + 1.0));
    "handshake" [Confirmed, RttMinimum] false |line| ratio(line, line.rtt(), Column::Confirmed);
    "request" [Handshake, RttMinimum] false |line| ratio(line, line.rtt(), Column::Handshake);
    "part window" [PartWindow, Ttlb] true |line| part(line, Column::PartWindow);
    "part pacing" [PartPacing, Ttlb] true |line| part(line, Column::PartPacing);
    "part idle" [PartIdle, Ttlb] true |line| part(line, Column::PartIdle);
    "part queueing" [PartQueueing, Ttlb] true |line| part(line, Column::PartQueueing);
    "part repair" [PartRepair, Ttlb] true |line| part(line, Column::PartRepair);
    "part last ACK" [PartLastAck, Ttlb] true |line| part(line, Column::PartLastAck);
};

/// The features that nearly all of a set of lines have, and what the others would need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Indices in [`FEATURES`].
    pub used: Vec<usize>,
    /// The keys that lines lack, in the order of [`KEYS`].
    pub missing: Vec<&'static str>,
    /// The names of the features that cannot be computed for that reason.
    pub unused: Vec<&'static str>,
}

/// A feature is used if this share of the lines has it.
const PRESENT: f64 = 0.98;

impl Selection {
    /// The features that 98 % of these lines have.
    #[must_use]
    pub fn of(lines: &[&Line]) -> Self {
        let least = PRESENT * lines.len() as f64;
        let count =
            |has: &dyn Fn(&Line) -> bool| lines.iter().filter(|line| has(line)).count() as f64;
        let (mut used, mut unused) = (Vec::new(), Vec::new());
        let mut columns: Vec<Column> = Vec::new();
        for (index, feature) in FEATURES.iter().enumerate() {
            if count(&|line| feature.of(line).is_some()) >= least {
                used.push(index);
            } else {
                unused.push(feature.name);
                let absent = feature
                    .columns
                    .iter()
                    .filter(|column| count(&|line| line.get(**column).is_some()) < least);
                columns.extend(absent);
            }
        }
        columns.sort_unstable();
        columns.dedup();
        Self {
            used,
            missing: columns
                .iter()
                .map(|column| KEYS[*column as usize])
                .collect(),
            unused,
        }
    }

    /// Without the features from which the time to last byte can be computed.
    #[must_use]
    pub fn without_ttlb(&self) -> Self {
        let mut without = self.clone();
        without.used.retain(|index| !FEATURES[*index].has_ttlb);
        without
    }

    /// The values of the features; `None` if the line lacks one of them.
    pub fn values(&self, line: &Line) -> Option<Vec<f64>> {
        self.used
            .iter()
            .map(|index| FEATURES[*index].of(line))
            .collect()
    }
}
