//! The charts of the page as figures for print.

use super::{
    analysis::Analysis,
    figure::{Subject, domain},
    parts::{BANDS, Parts},
    queries::{PARTS, Subgroup},
    settings::{Sweep, is_key},
    sweep,
    text::of_metric,
};
use crate::{
    figure::{Arrangement, Axis, Figure, Look, Mark, Panel, Point, Scale, Series},
    scale::{Changes, Unit},
    statistics::bootstrap::Interval,
};

/// The colours of parts of a time, of which each has another shade of grey, and neighbours are far apart.
const SHADES: [u32; PARTS.len()] = [
    0xe6_e1d3, 0x3c_3c50, 0xa8_d8c8, 0x3f_6fa5, 0xe0_ad57, 0x6a_4a7d, 0x8f_a66b, 0xb9_7f86,
];

/// All charts, that of all connections first.
pub(super) fn all(analysis: &Analysis) -> Vec<Figure> {
    let groups = analysis.groups.iter().map(Subject::Group);
    let (main, others): (Vec<_>, Vec<_>) = groups.partition(|subject| subject.is_main());
    let paths = analysis.paths.iter().map(Subject::Paths);
    let neighbours = analysis.neighbours.iter().flatten();
    let subjects = main.into_iter().chain(paths);
    let subjects = subjects
        .chain(neighbours.map(Subject::Neighbour))
        .chain(others);
    let mut all: Vec<Figure> = subjects.map(|subject| curves(analysis, subject)).collect();
    all.extend(analysis.parts.iter().map(|parts| bars(analysis, parts)));
    let sweep = analysis.settings.sweep.iter();
    all.extend(sweep.map(|sweep| medians(analysis, sweep)));
    all
}

/// The name of a chart's file.
fn name(analysis: &Analysis, subject: Subject<'_>) -> String {
    let metric = &analysis.settings.metric.name;
    let metric = if is_key(metric) {
        plain(&metric.to_lowercase())
    } else {
        "metric".to_owned()
    };
    match subject {
        Subject::Paths(_) => format!("{metric}-paths"),
        Subject::Neighbour(kind) => format!("neighbour-{}", plain(&kind.name)),
        Subject::Group(group) => match &group.subgroup {
            Subgroup::All => metric,
            Subgroup::Bin(bin) => format!("{metric}-size-{}", bin + 1),
            Subgroup::Site(site) => format!("{metric}-site-{}", plain(site)),
        },
    }
}

/// A name with only the characters that are safe in file names.
fn plain(name: &str) -> String {
    let plain = name.chars().map(|c| {
        if c.is_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    });
    plain.collect()
}

/// Percentile over change: a line per arm, with the band of each percentile, and thin lines at the joint band.
fn curves(analysis: &Analysis, subject: Subject<'_>) -> Figure {
    let (mut bands, mut lines) = (Vec::new(), Vec::new());
    for (arm, curve) in subject.curves().iter().enumerate().skip(1) {
        let points = |bounds: fn(&Interval) -> Option<(f64, f64)>| -> Vec<Point> {
            let cells = (1..).map(f64::from).zip(curve);
            let points = cells.map(|(percentile, cell)| Point {
                x_bounds: bounds(cell).map(|(low, high)| (low * 100.0, high * 100.0)),
                ..Point::new(cell.estimate.unwrap_or(f64::NAN) * 100.0, percentile)
            });
            points.collect()
        };
        let (name, look) = (&analysis.arms[arm].name, Look::of(arm - 1));
        if subject.is_main() {
            let mut points = points(|cell| cell.together);
            points.retain(|point| point.x_bounds.is_some());
            bands.push(Series {
                name: format!("{name}: simultaneous"),
                look,
                mark: Mark::Bounds,
                points,
            });
        }
        lines.push(Series {
            name: name.clone(),
            look,
            mark: Mark::Line,
            points: points(|cell| cell.alone),
        });
    }
    bands.extend(lines);
    let x = Axis {
        scale: Scale::Changes,
        domain: domain(analysis, subject),
    };
    let (what, less, more) = subject.labels(&analysis.settings.metric);
    let logarithmic = if Changes::is_logarithmic(x.domain) {
        ", logarithmic"
    } else {
        ""
    };
    let change = format!(
        "← {less} · {what} relative to {}{logarithmic} · {more} →",
        analysis.arms[0].name
    );
    let of = match subject {
        Subject::Group(_) => "connections",
        Subject::Paths(_) | Subject::Neighbour(_) => "paths",
    };
    let joint = if subject.is_main() {
        "; thin: simultaneous"
    } else {
        ""
    };
    let percentile = format!("percentile of {of}; shaded: 95 %{joint}");
    let guide = [(0.0, 0.0), (0.0, 100.0)];
    let mut figure = Figure::single(
        &name(analysis, subject),
        &subject.title(&analysis.settings.metric.name),
        (&change, &percentile),
        (x, Axis::percentiles()),
        bands,
    );
    figure.panels[0].guides.push(guide);
    figure
}

/// Where the time goes: a panel per band of percentiles, and in it a bar per arm.
fn bars(analysis: &Analysis, parts: &Parts) -> Figure {
    let panels = BANDS.iter().zip(&parts.means).map(|((_, _, title), arms)| {
        let rows = arms.len();
        let mut ends = vec![0.0; rows];
        let series = PARTS
            .iter()
            .zip(SHADES)
            .enumerate()
            .map(|(part, ((_, name), rgb))| {
                // The first arm is above the others.
                let points = arms.iter().zip(&mut ends).enumerate();
                let points = points.map(|(arm, (times, end))| {
                    let (from, time) = (*end, times[part].max(0.0));
                    *end += time;
                    Point {
                        x_bounds: Some((from, *end)),
                        ..Point::new(time, (rows - 1 - arm) as f64)
                    }
                });
                Series {
                    name: (*name).to_owned(),
                    look: Look::solid(rgb),
                    mark: Mark::Bars,
                    points: points.filter(|point| point.x > 0.0).collect(),
                }
            });
        let series: Vec<Series> = series.filter(|one| !one.points.is_empty()).collect();
        Panel {
            title: (*title).to_owned(),
            x: Axis::from_zero(Unit::Milliseconds, ends.into_iter()),
            y: Axis::names(
                analysis
                    .arms
                    .iter()
                    .rev()
                    .map(|arm| arm.name.clone())
                    .collect(),
            ),
            height: 0.62,
            series,
            guides: Vec::new(),
            marks: Vec::new(),
        }
    });
    Figure {
        name: "ttlb-parts".to_owned(),
        title: "Where the time goes".to_owned(),
        description: String::new(),
        captions: (
            "mean parts of the time to last byte, by its percentile".to_owned(),
            String::new(),
        ),
        arrangement: Arrangement::Grid(250.0),
        panels: panels.collect(),
    }
}

/// The change of the median over the values of a setting.
fn medians(analysis: &Analysis, sweep: &Sweep) -> Figure {
    let arms = analysis.arms.len();
    let domain = sweep::domain(analysis, sweep);
    let panels = sweep.panels.iter().map(|panel| {
        let series = (1..arms).map(|arm| {
            let beside = (arm as f64 - arms as f64 / 2.0) * (0.5 / arms as f64).min(0.12);
            let points = (0..).map(f64::from).zip(&panel.networks);
            let points = points.map(|(place, network)| {
                let cell = sweep::cell(analysis, network, arm);
                let median = cell.and_then(|cell| cell.estimate).unwrap_or(f64::NAN);
                let bounds = cell.and_then(|cell| cell.alone);
                Point {
                    y_bounds: bounds.map(|(low, high)| (low * 100.0, high * 100.0)),
                    ..Point::new(place + beside, median * 100.0)
                }
            });
            Series {
                name: analysis.arms[arm].name.clone(),
                look: Look::of(arm - 1),
                mark: Mark::Estimates,
                points: points.collect(),
            }
        });
        let x = Axis::names(sweep.values.clone());
        Panel {
            title: panel.title.clone(),
            guides: vec![[(x.domain.0, 0.0), (x.domain.1, 0.0)]],
            marks: Vec::new(),
            x,
            y: Axis {
                scale: Scale::Changes,
                domain,
            },
            height: 0.62,
            series: series.collect(),
        }
    });
    Figure {
        name: "sweep".to_owned(),
        title: format!(
            "Change of the median{} by {}",
            of_metric(analysis),
            sweep.axis
        ),
        description: String::new(),
        captions: (
            sweep.axis.clone(),
            format!(
                "change of the median of {} relative to {}, with its 95 % interval",
                analysis.settings.metric.name, analysis.arms[0].name
            ),
        ),
        arrangement: Arrangement::Grid(190.0),
        panels: panels.collect(),
    }
}
