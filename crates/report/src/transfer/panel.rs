//! The table of rows, with the series, colours and guide lines of each.

use crate::{scale::Unit, scene::Color};

use super::{Arm, Guides, Picture, Point};

/// The style of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A dot per point.
    Dots,
    /// A line that holds each value until the next.
    Steps,
    /// The same, dashed.
    Dashed,
    /// Steps with a filled area below them.
    Area,
    /// A cross per point.
    Crosses,
}

/// One series of a row.
pub(super) struct Series {
    /// Its name in the page: for its data, and for its colour `--key` in the style sheet.
    pub(super) key: &'static str,
    /// Its name in the legend.
    pub(super) label: &'static str,
    pub(super) kind: Kind,
    /// Its colour on white. The palette is that of Okabe and Ito, for colour-blind readers.
    pub(super) color: Color,
    /// Whether it is shown at first when all arms share a panel, where the colour is that of the arm.
    pub(super) overlaid: bool,
    pub(super) of: fn(&Arm) -> &Vec<Point>,
    pub(super) of_mut: fn(&mut Arm) -> &mut Vec<Point>,
}

/// One row of panels.
pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: Unit,
    /// Height of a panel in the figure, in pixels.
    pub(super) height: f32,
    /// In the order of drawing.
    pub(super) series: &'static [Series],
}

macro_rules! series {
    ($field:ident, $label:literal, $kind:ident, $color:literal, $overlaid:literal) => {
        Series {
            key: stringify!($field),
            label: $label,
            kind: Kind::$kind,
            color: Color::solid($color),
            overlaid: $overlaid,
            of: |arm| &arm.$field,
            of_mut: |arm| &mut arm.$field,
        }
    };
}

/// All rows, from the top down.
pub(super) const ROWS: &[Row] = &[
    Row {
        key: "bytes",
        title: "Bytes so far",
        unit: Unit::Bytes,
        height: 300.0,
        series: &[
            series!(sent, "sent", Dots, 0x1a_1a1a, false),
            series!(arrived, "received", Steps, 0x00_9e73, false),
            series!(acked, "acknowledged", Dots, 0xe6_9f00, true),
            series!(lost, "declared lost", Crosses, 0xc8_102e, false),
            series!(
                connection_limit,
                "connection limit",
                Steps,
                0x7b_4fa3,
                false
            ),
            series!(stream_limit, "stream limit", Steps, 0x2b_8cc4, false),
            series!(twin_acked, "twin: acknowledged", Dashed, 0x00_9e73, false),
        ],
    },
    Row {
        key: "queue",
        title: "Queue at the bottleneck",
        unit: Unit::Bytes,
        height: 100.0,
        series: &[
            series!(queue, "depth", Area, 0x33_80b5, true),
            series!(marks, "marked", Crosses, 0x7b_4fa3, false),
            series!(drops, "dropped", Crosses, 0xc8_102e, true),
        ],
    },
    Row {
        key: "rates",
        title: "Rate at the bottleneck",
        unit: Unit::BitsPerSecond,
        height: 90.0,
        series: &[
            series!(others, "other traffic", Steps, 0x8a_8f98, false),
            series!(rate, "this transfer", Steps, 0x00_9e73, true),
        ],
    },
    Row {
        key: "window",
        title: "Congestion window",
        unit: Unit::Bytes,
        height: 110.0,
        series: &[
            series!(in_flight, "bytes in flight", Area, 0x5f_8f7f, false),
            series!(window, "window", Steps, 0x00_5fa8, true),
            series!(twin_window, "twin: window", Dashed, 0x00_9e73, false),
        ],
    },
    Row {
        key: "pacing",
        title: "Pacing rate",
        unit: Unit::BitsPerSecond,
        height: 80.0,
        series: &[series!(pacing, "rate", Steps, 0x7b_4fa3, true)],
    },
    Row {
        key: "rtt",
        title: "Round-trip time",
        unit: Unit::Milliseconds,
        height: 100.0,
        series: &[
            series!(rtt, "samples", Dots, 0x8a_8f98, false),
            series!(rtt_smoothed, "smoothed", Steps, 0xb3_4d00, true),
            series!(twin_rtt, "twin: smoothed", Dashed, 0x00_9e73, false),
        ],
    },
    Row {
        key: "delay",
        title: "One-way delay",
        unit: Unit::Milliseconds,
        height: 100.0,
        series: &[
            series!(delay_up, "to the server", Dots, 0xe6_9f00, false),
            series!(delay_down, "to the client", Dots, 0x00_5fa8, true),
        ],
    },
];

/// All series of all rows.
pub(super) fn all_series() -> impl Iterator<Item = &'static Series> {
    ROWS.iter().flat_map(|row| row.series)
}

/// The rows and series that an arm has data for. The first row is always there.
pub(super) fn rows(picture: &Picture) -> Vec<(&'static Row, Vec<&'static Series>)> {
    ROWS.iter()
        .enumerate()
        .map(|(index, row)| {
            let mut series: Vec<&Series> = row
                .series
                .iter()
                .filter(|series| picture.arms.iter().any(|arm| !(series.of)(arm).is_empty()))
                .collect();
            if index == 0 && series.is_empty() {
                series = row.series.iter().take(1).collect();
            }
            (row, series)
        })
        .filter(|(_, series)| !series.is_empty())
        .collect()
}

/// The guide line of a row: its value and label.
pub(super) fn level(row: &Row, guides: &Guides) -> Option<(f64, String)> {
    let (value, name) = match row.key {
        "queue" => (guides.queue_limit?, "limit"),
        "window" => (guides.rate? / 8.0 * guides.rtt? / 1000.0, "BDP"),
        "pacing" | "rates" => (guides.rate?, "bottleneck"),
        "rtt" => (guides.rtt?, "empty path"),
        _ => return None,
    };
    let mut label = format!("{name} {}", row.unit.format(value));
    if let ("queue", Some(rate)) = (row.key, guides.rate) {
        let ms = value * 8.0 / rate * 1000.0;
        label.push_str(" = ");
        label.push_str(&Unit::Milliseconds.format(ms));
    }
    Some((value, label))
}

/// The axis of pacing rates ends at this multiple of the bottleneck's rate: the first rate of BBR, of which there is a single
/// moment, would flatten all others.
pub(super) const PACING_MAX: f64 = 8.0;

/// The range of a row's axis, the same for all arms. It starts at zero unless all values are far from it, and includes the
/// guide line unless that is far above all data. Pacing rates can exceed it.
pub(super) fn extent(picture: &Picture, row: &Row, series: &[&Series]) -> (f64, f64) {
    let values = || {
        // A limit far above the data does not change the scale.
        let series = || {
            series
                .iter()
                .filter(|series| !series.key.ends_with("_limit"))
        };
        picture
            .arms
            .iter()
            .flat_map(move |arm| series().flat_map(|series| (series.of)(arm)))
            .map(|point| point.value)
    };
    let lo = values().fold(f64::INFINITY, f64::min);
    let mut hi = values().fold(f64::NEG_INFINITY, f64::max);
    // No data, or zeros only.
    if lo > hi || (lo == 0.0 && hi == 0.0) {
        return (0.0, 1.0);
    }
    if let Some((level, _)) = level(row, &picture.guides)
        && level > hi
        && level <= hi * 3.0
    {
        hi = level;
    }
    if let ("pacing", Some(rate)) = (row.key, picture.guides.rate) {
        hi = hi.min(rate * PACING_MAX);
    }
    if row.unit == Unit::Milliseconds && lo > hi * 0.6 {
        let lo = level(row, &picture.guides).map_or(lo, |(level, _)| level.min(lo));
        let room = (hi - lo).max(hi * 0.01) * 0.08;
        return (lo - room, hi + room);
    }
    let lo = lo.min(0.0);
    (lo, hi + (hi - lo) * 0.06)
}

/// The slope of the guide line of an arm's bytes: its start, the first acknowledgment, and bytes per ms.
pub(super) fn slope(arm: &Arm, guides: &Guides) -> Option<(Point, f64)> {
    Some((*arm.acked.first()?, guides.rate? / 8000.0))
}
