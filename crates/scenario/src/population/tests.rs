use lastbyte_link::{self as link, Capacity, Limit, Loss, Queue, Spread};
use proptest::prelude::*;

use super::*;
use crate::cross::CrossKind;

fn site(name: &str) -> Population {
    let all = Population::standard();
    all.with_sites(&[name.to_owned()])
        .expect("there is this site")
}

fn scaled(change: impl FnOnce(&mut Sweep)) -> Population {
    let mut sweep = Sweep::default();
    change(&mut sweep);
    let all = Population::standard();
    all.scaled(&sweep).expect("the sweep is possible")
}

fn share(count: u64, has: impl Fn(u64) -> bool) -> f64 {
    (0..count).filter(|seed| has(*seed)).count() as f64 / count as f64
}

fn percentiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 5, 9].map(|tenth| values[values.len() * tenth / 10])
}

/// Section 9.5 of the sheet that the population was made from: Mb/s and ms, at 10, 50 and 90 %.
const MARGINALS: &[(&str, [f64; 3], [f64; 3])] = &[
    ("East Asia", [7.5, 79.0, 346.0], [9.0, 28.0, 85.0]),
    ("South-East Asia", [2.8, 22.0, 149.0], [14.0, 50.0, 139.0]),
    ("East Europe", [4.8, 43.0, 233.0], [13.0, 35.0, 87.0]),
    ("West Europe", [8.0, 66.0, 337.0], [10.0, 26.0, 69.0]),
    ("Africa", [1.9, 10.0, 65.0], [29.0, 76.0, 207.0]),
    ("North America", [10.8, 109.0, 417.0], [11.0, 29.0, 76.0]),
    ("South America", [4.6, 51.0, 257.0], [11.0, 41.0, 135.0]),
];

#[test]
fn rates_and_round_trips_of_each_site_match_the_population_file() {
    let all = Population::standard();
    let names: Vec<&str> = all.sites().collect();
    assert_eq!(names, MARGINALS.iter().map(|row| row.0).collect::<Vec<_>>());
    for (name, rates, rtts) in MARGINALS {
        let site = site(name);
        let facts: Vec<DrawFacts> = (0..15_000).map(|seed| site.sketch(seed).facts).collect();
        let rate = |facts: &DrawFacts| facts.long_term_rate().bits_per_second() as f64 / 1e6;
        let found = percentiles(facts.iter().map(rate).collect());
        let rtt = |facts: &DrawFacts| facts.rtt.as_secs_f64() * 1e3;
        let found_rtts = percentiles(facts.iter().map(rtt).collect());
        for (found, expected) in found.iter().zip(rates).chain(found_rtts.iter().zip(rtts)) {
            assert!(
                (found / expected - 1.0).abs() < 0.12,
                "{name}: {found} {expected}"
            );
        }
    }
}

#[test]
fn sites_and_classes_are_drawn_by_their_weights() {
    let all = Population::standard();
    let count = 30_000;
    let sketches: Vec<Sketch> = (0..count).map(|seed| all.sketch(seed)).collect();
    for (index, site) in all.sites.iter().enumerate() {
        let here: Vec<&Sketch> = sketches
            .iter()
            .filter(|sketch| sketch.site == index)
            .collect();
        let share = here.len() as f64 / count as f64;
        assert!((share - 1.0 / 7.0).abs() < 0.01, "{}: {share}", site.name);
        for (class, weight) in all.class_weights(site).enumerate() {
            let found = here.iter().filter(|sketch| sketch.class == class).count();
            let found = found as f64 / here.len() as f64;
            let expected = weight / all.class_weights(site).sum::<f64>();
            assert!(
                (found - expected).abs() < 0.027,
                "{} {}: {found} {expected}",
                site.name,
                all.classes[class].name
            );
            assert!(expected > 0.0 || found == 0.0);
        }
    }
}

#[test]
fn shares_of_loss_policers_and_other_traffic_match_the_file() {
    // Africa: lossy .35 by the factors of the classes, and all of LEO and GEO.
    let africa = site("Africa");
    let weights: Vec<f64> = africa.class_weights(&africa.sites[0]).collect();
    let expected: f64 = africa
        .classes
        .iter()
        .zip(&weights)
        .map(|(class, weight)| match class.loss {
            Some(_) => *weight,
            None => weight * 0.35 * class.loss_factor,
        })
        .sum::<f64>()
        / weights.iter().sum::<f64>();
    let facts = |seed| africa.sketch(seed).facts;
    let found = share(20_000, |seed| facts(seed).random_loss > 0.0);
    assert!((found - expected).abs() < 0.012, "{found} {expected}");
    let policed = share(60_000, |seed| facts(seed).policer.is_some());
    assert!((policed - 0.013).abs() < 0.002, "{policed}");
    let losses: Vec<f64> = (0..30_000)
        .filter_map(|seed| {
            let sketch = africa.sketch(seed);
            let has_own = africa.classes[sketch.class].loss.is_some();
            (!has_own && sketch.facts.random_loss > 0.0).then_some(sketch.facts.random_loss)
        })
        .collect();
    let [_, median, p90] = percentiles(losses.clone());
    assert!((median / 0.001 - 1.0).abs() < 0.1, "{median}");
    assert!(
        (p90 / (0.001 * (1.5f64 * 1.2816).exp()) - 1.0).abs() < 0.12,
        "{p90}"
    );
    assert!(losses.iter().all(|loss| *loss <= 0.03));

    let cross = |population: &Population| {
        [
            share(20_000, |seed| {
                matches!(population.sketch(seed).facts.cross, CrossFact::Bulk(_))
            }),
            share(20_000, |seed| {
                matches!(
                    population.sketch(seed).facts.cross,
                    CrossFact::Bursts { .. }
                )
            }),
        ]
    };
    // By class: half for cellular, double for poor.
    let factors = africa.classes.iter().zip(&weights);
    let factors = factors.map(|(class, weight)| class.cross_factor * weight);
    let expected = 0.15 * factors.sum::<f64>() / weights.iter().sum::<f64>();
    for found in cross(&africa) {
        assert!((found - expected).abs() < 0.012, "{found} {expected}");
    }
    // All have some: as many of either kind.
    for found in cross(&scaled(|sweep| sweep.cross = 100.0)) {
        assert!((found - 0.5).abs() < 0.015, "{found}");
    }
}

#[test]
fn sizes_are_drawn_by_bins_with_density_falling_with_the_square() {
    let all = Population::standard();
    let sizes: Vec<u64> = (0..40_000)
        .map(|seed| all.sketch(seed).size_bytes)
        .collect();
    for ((from, to), expected) in all.sizes.bins.iter().zip([0.52, 0.28, 0.14, 0.06]) {
        let inside: Vec<f64> = sizes
            .iter()
            .filter(|size| (from..to).contains(size))
            .map(|size| *size as f64)
            .collect();
        let found = inside.len() as f64 / sizes.len() as f64;
        assert!((found - expected).abs() < 0.01, "{from}: {found}");
        // Of a density by 1/x² from a to 2a, the median is 4a/3, and half of the rest is below 8a/5 and 8a/7.
        let a = *from as f64;
        let below = |x: f64| inside.iter().filter(|size| **size < x).count() as f64;
        for (x, expected) in [(8.0 / 7.0, 0.25), (4.0 / 3.0, 0.5), (8.0 / 5.0, 0.75)] {
            let found = below(a * x) / inside.len() as f64;
            assert!((found - expected).abs() < 0.025, "{from} {x}: {found}");
        }
    }
    assert!(sizes.iter().all(|size| (200_000..3_200_000).contains(size)));
    let images = scaled(|sweep| sweep.sizes = Some("images".to_owned()));
    let large = share(20_000, |seed| images.sketch(seed).size_bytes >= 1_600_000);
    assert!((large - 0.04).abs() < 0.006, "{large}");
}

#[test]
fn the_same_seed_gives_the_same_draw() {
    let [one, two] = [Population::standard(), Population::standard()];
    for seed in 0..200 {
        let [one, two] = [one.draw(seed), two.draw(seed)];
        assert_eq!(one.facts, two.facts);
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}

/// Gives the first the field of the second.
type Restore = fn(&mut DrawFacts, &DrawFacts);

/// What a switch is for is all that it changes.
#[test]
fn a_switch_changes_its_own_field_only() {
    let all = Population::standard();
    let switches: &[(Population, Restore)] = &[
        (scaled(|sweep| sweep.policing = 0.0), |to, from| {
            to.policer = from.policer;
        }),
        (scaled(|sweep| sweep.policing = 50.0), |to, from| {
            to.policer = from.policer;
        }),
        (scaled(|sweep| sweep.lossy = 0.0), |to, from| {
            to.random_loss = from.random_loss;
        }),
        (scaled(|sweep| sweep.lossy = 3.0), |to, from| {
            to.random_loss = from.random_loss;
        }),
        (scaled(|sweep| sweep.cross = 0.0), |to, from| {
            to.cross = from.cross.clone();
        }),
        (scaled(|sweep| sweep.ack_batching = 0.0), |to, from| {
            to.release = from.release;
        }),
        (scaled(|sweep| sweep.ack_batching = 2.0), |to, from| {
            to.release = from.release;
        }),
        (scaled(|sweep| sweep.path_rtt = 1.6), |to, from| {
            to.rtt = from.rtt;
        }),
        (scaled(|sweep| sweep.up_rate = 0.5), |to, from| {
            to.up_rate = from.up_rate;
        }),
        (scaled(|sweep| sweep.queue = 4.0), |to, from| {
            (to.queue, to.queue_bytes) = (from.queue, from.queue_bytes);
        }),
    ];
    for (number, (switched, restore)) in switches.iter().enumerate() {
        let mut changed = 0;
        for seed in 0..2000 {
            let before = all.sketch(seed);
            let after = switched.sketch(seed);
            assert_eq!(
                (before.site, before.class, before.size_bytes),
                (after.site, after.class, after.size_bytes)
            );
            let mut facts = after.facts;
            changed += usize::from(facts != before.facts);
            restore(&mut facts, &before.facts);
            assert_eq!(facts, before.facts, "switch {number}, seed {seed}");
        }
        assert!(changed > 0, "switch {number} does nothing");
    }
}

#[test]
fn sweeps_set_their_parameter() {
    let none = |population: &Population, has: fn(&DrawFacts) -> bool| {
        assert!((0..3000).all(|seed| !has(&population.sketch(seed).facts)));
    };
    none(&scaled(|sweep| sweep.lossy = 0.0), |facts| {
        facts.random_loss > 0.0
    });
    none(&scaled(|sweep| sweep.poor = 0.0), |facts| facts.is_poor);
    none(&scaled(|sweep| sweep.policing = 0.0), |facts| {
        facts.policer.is_some()
    });
    none(&scaled(|sweep| sweep.ack_batching = 0.0), |facts| {
        facts.release.is_some()
    });
    none(&scaled(|sweep| sweep.cross = 0.0), |facts| {
        facts.cross != CrossFact::None
    });
    let all = Population::standard();
    let [once, twice] = [all, scaled(|sweep| sweep.rate = 2.0)];
    for seed in 0..500 {
        let [once, twice] = [&once, &twice].map(|of| of.sketch(seed).facts.rate.bits_per_second());
        assert!(once.abs_diff(twice / 2) <= 1000);
    }
    let half = Sweep {
        queue: 0.5,
        ..Sweep::default()
    };
    let back = scaled(|sweep| sweep.queue = 2.0)
        .scaled(&half)
        .expect("it is possible");
    assert_eq!(back.sketch(7).facts, once.sketch(7).facts);
    assert_eq!(back.sweep().changes(), []);
    assert_eq!(half.changes(), [("queue", 0.5)]);
}

#[test]
fn queue_sizes_have_a_minimum() {
    let shallow = scaled(|sweep| sweep.queue = 0.0);
    for seed in 0..200 {
        assert_eq!(shallow.sketch(seed).facts.queue_bytes, 20 * 1280);
    }
}

#[test]
fn every_draw_is_a_valid_path() {
    let all = Population::standard();
    for seed in 0..2000 {
        check(&all.draw(seed));
    }
}

fn check(draw: &Draw) {
    let Draw { path, facts, .. } = draw;
    assert_eq!(path.down.check(), Ok(()));
    assert_eq!(path.up.check(), Ok(()));
    assert_eq!(path.down.delay + path.up.delay, facts.rtt);
    assert_eq!(path.down.policer, facts.policer);
    assert_eq!(path.up.release, facts.release);
    assert_eq!(
        facts.random_loss > 0.0,
        path.down
            .loss
            .iter()
            .any(|loss| matches!(loss, Loss::Bernoulli(_)))
    );
    assert_eq!(
        facts.has_aqm,
        !matches!(path.down.queue, Queue::DropTail(_))
    );
    assert_eq!(facts.cross == CrossFact::None, draw.cross.is_empty());
    assert!(draw.cross.iter().all(|cross| cross.start <= draw.start));
    match &path.down.capacity {
        Capacity::Constant(rate) => assert_eq!(*rate, facts.rate),
        Capacity::Schedule(schedule) => {
            assert!(facts.is_rate_variable);
            let mean = schedule.nominal().bits_per_second() as f64;
            let factor = mean / facts.rate.bits_per_second() as f64;
            assert!((0.4..2.0).contains(&factor), "{factor}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn variable_rates_keep_their_mean_and_width() {
    let all = Population::standard();
    let class = all
        .classes
        .iter()
        .find(|class| class.name == "lte")
        .expect("it is there");
    let facts = all.sketch(1).facts;
    let stream = Stream::new(5, Field::Variation);
    let rates = path::rates(class, &facts, stream, 20_000);
    let factors: Vec<f64> = rates
        .iter()
        .map(|rate| rate.bits_per_second() as f64 / facts.rate.bits_per_second() as f64)
        .collect();
    let count = factors.len() as f64;
    let mean = factors.iter().sum::<f64>() / count;
    let variance = factors.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!((variance.sqrt() - 0.3).abs() < 0.02, "{variance}");
    let together: f64 = factors
        .windows(2)
        .map(|two| (two[0] - mean) * (two[1] - mean))
        .sum();
    let correlation = together / count / variance;
    assert!((correlation - 0.37).abs() < 0.03, "{correlation}");
}

#[test]
fn bursts_have_the_frequency_of_the_file_while_the_line_is_full() {
    let all = Population::standard();
    let poor = (0..500)
        .map(|seed| all.draw(seed))
        .find(|draw| draw.class == "poor")
        .expect("one of them is");
    let model = poor.path.down.loss.iter().find_map(|loss| match loss {
        Loss::GilbertElliott(model) => Some(model),
        _ => None,
    });
    let model = model.expect("all poor paths have bursts");
    let packets = poor.facts.rate.bits_per_second() as f64 / 8.0 / f64::from(DATAGRAM);
    assert!((model.to_bad * packets / 0.5 - 1.0).abs() < 0.01);
    assert!((model.to_good - 0.2).abs() < 1e-9);
    assert_eq!(Transport::default().datagram_size, DATAGRAM);
}

#[test]
fn satellite_losses_coincide_with_handover_outages() {
    let all = Population::standard();
    let leo = (0..5000)
        .map(|seed| all.draw(seed))
        .find(|draw| draw.class == "leo");
    let leo = leo.expect("one of them is");
    assert_eq!(leo.facts.handover, Some(Duration::from_secs(15)));
    assert!(leo.start < Duration::from_secs(15));
    let fixed = Spacing::Fixed(Duration::from_secs(15));
    let bursts = leo
        .path
        .down
        .loss
        .iter()
        .any(|loss| matches!(loss, Loss::Bursts(bursts) if bursts.spacing == fixed));
    assert!(bursts);
    // Nothing gets through in the first 100 ms.
    let config = link::Config {
        loss: Vec::new(),
        ..leo.path.down.clone()
    };
    let mut link = link::Link::new(&config, 1).expect("it can be");
    link.send(link::Time::ZERO, link::Packet::new(1200, ()), &mut ());
    while let Some(at) = link.deadline() {
        if let Some(delivery) = link.poll(at, &mut ()) {
            assert!(delivery.at.as_nanos() >= 100_000_000 + config.delay.as_nanos() as u64);
        }
    }
}

#[test]
fn time_to_the_next_handover_has_the_mean_of_a_poisson_process() {
    let all = Population::standard();
    let class = all
        .classes
        .iter()
        .find(|class| class.name == "5g")
        .expect("it is there");
    let count = 20_000u32;
    let mut sum = 0.0;
    for seed in 0..count {
        let (interval, age) = handover(class, Stream::new(seed.into(), Field::Handover));
        let left = interval.expect("it has some").saturating_sub(age);
        sum += left.as_secs_f64();
    }
    let mean = sum / f64::from(count);
    assert!((mean / 50.0 - 1.0).abs() < 0.03, "{mean}");
}

#[test]
fn page_bursts_never_fill_a_line() {
    let all = scaled(|sweep| sweep.cross = 100.0);
    for draw in (0..500).map(|seed| all.draw(seed)) {
        for cross in &draw.cross {
            if let CrossKind::Constant(rate) = cross.kind {
                let whole = draw.facts.long_term_rate();
                assert!(rate.bits_per_second() * 2 <= whole.bits_per_second());
                assert!(rate.bits_per_second() <= 2_000_000);
            }
        }
    }
}

#[test]
fn pages_are_transfers_where_a_congestion_control_is_named() {
    let text = DEFAULT
        .replacen(
            "bursts-every",
            "bursts-congestion = \"cubic\"\nbursts-every",
            1,
        )
        .replacen("bursts-share = 0.15", "bursts-share = 1", 1)
        .replacen("bulk-share = 0.15", "bulk-share = 0", 1);
    let population = Population::parse(&text).expect("a population");
    let mut phases = Vec::new();
    for draw in (0..200).map(|seed| population.draw(seed)) {
        let CrossFact::Bursts { bytes, every } = draw.facts.cross else {
            continue;
        };
        let [cross] = &draw.cross[..] else {
            panic!("one source: {:?}", draw.cross);
        };
        let CrossKind::Pages(_, pages) = &cross.kind else {
            panic!("pages: {cross:?}");
        };
        assert_eq!((pages.bytes, pages.every), (bytes, every));
        if draw.facts.handover.is_none() {
            let lead = draw.start.as_secs_f64() - cross.start.as_secs_f64();
            phases.push(lead / every.as_secs_f64());
        }
    }
    assert!(phases.len() > 50);
    assert!(
        phases.iter().all(|phase| (1.0..2.0).contains(phase)),
        "{phases:?}"
    );
    let mean = phases.iter().sum::<f64>() / phases.len() as f64;
    assert!((mean - 1.5).abs() < 0.1, "{mean}");
}

#[test]
fn errors_of_a_population_name_their_place() {
    let with = |from: &str, to: &str| {
        let text = DEFAULT.replacen(from, to, 1);
        assert_ne!(text, DEFAULT, "{from}");
        Population::parse(&text).expect_err(to).to_string()
    };
    for (from, to, says) in [
        (
            "aqm = \"codel\"",
            "aqm = \"red\"",
            "`aqm`: `red` (expected `codel`, `fq-codel`, `pie`, `dualpi2` or `cake`)",
        ),
        (
            "rate = \"40mbit p10",
            "rate = \"40 p10",
            "`classes.vdsl.rate`: `40` (expected a rate",
        ),
        (
            "ecn-share = 0",
            "ecn-share = 2",
            "`ecn-share`: 2 (expected a share",
        ),
        (
            "ecn-share = 0",
            "ecn-shares = 0",
            "unknown field `ecn-shares`",
        ),
        (
            "wifi = 23, lte",
            "wlan = 23, lte",
            "`sites.East Asia.weights.wlan`: unknown class",
        ),
        (
            "name = \"cable\"",
            "name = \"vdsl\"",
            "`classes.vdsl`: there are two",
        ),
        (
            "mix = \"both\"",
            "mix = \"all\"",
            "`sizes.mix`: unknown mix `all` (expected both,",
        ),
        ("\"200kB 400kB\"", "\"400kB 200kB\"", "`sizes.bins`"),
        (
            "both = [0.52, ",
            "both = [",
            "`sizes.mixes.both`: 3 weights for 4 bins",
        ),
        ("cubic = 0.5", "cubix = 0.5", "`cross.bulk.cubix`"),
        (
            "bursts-every",
            "bursts-congestion = \"cubix\"\nbursts-every",
            "`cross.bursts-congestion`",
        ),
        (
            "stall = \"50ms\"",
            "stall = \"50s\"",
            "`classes.lte.handover.stall`",
        ),
        (
            "release = \"4ms\"",
            "release = \"0ms\"",
            "`classes.cable.release`",
        ),
        (
            "15% of 1mbit",
            "25% of 1mbit",
            "`sites.Africa.policer-rate`",
        ),
        (
            "rate-factor = 0.75",
            "rate-factor = -1",
            "`sites.East Asia.rate-factor`",
        ),
        ("rate-factor = 0.75\n", "", "missing field `rate-factor`"),
    ] {
        let error = with(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
}

/// A mistake that the deserializers find, and one that later checks find.
#[test]
fn errors_of_a_population_name_the_line() {
    for (from, to) in [
        ("rate = \"40mbit p10", "rate = \"40 p10"),
        ("wifi = 23, lte", "wlan = 23, lte"),
        ("per-second = 0.5", "per-second = 0"),
        ("ecn-share = 0", "ecn-shares = 0"),
        ("stall = \"50ms\"", "stall = \"50s\""),
    ] {
        let text = DEFAULT.replacen(from, to, 1);
        let expected = 1 + text.lines().position(|line| line.contains(to)).expect(to);
        let error = Population::parse(&text).expect_err(to);
        assert_eq!(error.line, Some(expected), "{error}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("line {expected}: `")),
            "{error}"
        );
    }
    let text = DEFAULT.replacen("rate-factor = 0.75\n", "", 1);
    let error = Population::parse(&text).expect_err("no factor");
    let site = DEFAULT.lines().position(|line| line == "[[sites]]");
    assert_eq!(error.line, site.map(|line| line + 1), "{error}");
    assert_eq!(error.key, "sites.East Asia");
    let error = Population::parse(&DEFAULT.replacen("queue-floor = 20", "", 1));
    assert_eq!(
        error.expect_err("no floor").to_string(),
        "missing field `queue-floor`"
    );
}

#[test]
fn invalid_selections_and_sweeps_are_rejected() {
    let all = Population::standard();
    let error = all
        .with_sites(&["Mars".to_owned()])
        .expect_err("unknown site")
        .to_string();
    assert!(
        error.contains("`Mars`") && error.contains("West Europe"),
        "{error}"
    );
    for sweep in [
        Sweep {
            queue: -1.0,
            ..Sweep::default()
        },
        Sweep {
            rate: 0.0,
            ..Sweep::default()
        },
        Sweep {
            lossy: f64::NAN,
            ..Sweep::default()
        },
        Sweep {
            sizes: Some("x".to_owned()),
            ..Sweep::default()
        },
    ] {
        assert!(all.scaled(&sweep).is_err(), "{sweep:?}");
    }
}

proptest! {
    #[test]
    fn any_seed_and_any_sweep_draw_a_valid_path(
        seed in any::<u64>(),
        factors in proptest::array::uniform9(0.01f64..100.0),
    ) {
        let [queue, lossy, path_rtt, rate, up_rate, poor, cross, ack_batching, policing] = factors;
        let sweep = Sweep { queue, lossy, path_rtt, rate, up_rate, poor, cross, ack_batching, policing, sizes: None };
        let scaled = Population::standard().scaled(&sweep).expect("it is possible");
        check(&scaled.draw(seed));
    }
}

/// The default with these lines in the class `wifi`.
fn with_wifi(lines: &str) -> Result<Population, SettingError> {
    let place = "name = \"wifi\"";
    Population::parse(&DEFAULT.replacen(place, &format!("{lines}\n{place}"), 1))
}

#[test]
fn noise_of_a_class_is_drawn_for_that_class_only() {
    let plain = Population::standard();
    let noisy = with_wifi(
        "contention = { share = \"uniform 10% 30%\", busy = \"4ms\" }
        wake-up = { after = \"10s\", delay = \"uniform 20ms 80ms\" }
        reordering = { share = 0.5, packets = \"1%\", delay = \"5ms\" }",
    )
    .expect("keys that there are");
    let mut reordered = 0;
    let mut count = 0;
    for seed in 0..2000 {
        let (before, after) = (plain.draw(seed), noisy.draw(seed));
        let facts = &after.facts;
        if after.class == "wifi" {
            count += 1;
            let contention = facts.contention.expect("all have it");
            assert!((0.1..0.3).contains(&contention.share));
            let wake_up = facts.wake_up.expect("all have it");
            assert!((20..=80).contains(&wake_up.delay.as_millis()));
            reordered += u32::from(facts.reordering.is_some());
            assert_eq!(after.path.up.wake_up, facts.wake_up);
            assert_eq!(after.path.down.wake_up, None);
            assert_eq!(after.path.down.contention, facts.contention);
            assert_eq!(after.path.up.contention, facts.contention);
            assert_eq!(after.path.down.reordering, facts.reordering);
        } else {
            assert_eq!(facts, &before.facts);
        }
        assert_eq!(
            (facts.rate, facts.rtt),
            (before.facts.rate, before.facts.rtt)
        );
    }
    let share = f64::from(reordered) / f64::from(count);
    assert!((share - 0.5).abs() < 0.08, "{share}");
}

/// The limits of the uplink are drawn for their class only, and change nothing else.
#[test]
fn the_way_up_has_limits_of_its_own() {
    let plain = Population::standard();
    let limited = with_wifi(
        "up-share = \"uniform 10% 50%\"
        up-queue = \"uniform 50ms 200ms\"
        up-aqm-share = 0.5
        up-loss = \"uniform 0.1% 1%\"
        up-jitter = \"3ms\"",
    )
    .expect("keys that there are");
    let half = limited.scaled(&Sweep {
        up_rate: 0.5,
        ..Sweep::default()
    });
    let half = half.expect("it is possible");
    let (mut managed, mut count) = (0, 0);
    for seed in 0..2000 {
        let (before, after) = (plain.draw(seed), limited.draw(seed));
        let facts = &after.facts;
        if after.class != "wifi" {
            assert_eq!(facts, &before.facts);
            continue;
        }
        check(&after);
        count += 1;
        managed += u32::from(facts.up.has_aqm);
        let rate = facts.up_rate.expect("all have it");
        let share = rate.bits_per_second() as f64 / facts.rate.bits_per_second() as f64;
        assert!(
            (0.09..0.51).contains(&share) || rate.bits_per_second() == 16_000,
            "{share}"
        );
        let halved = half.draw(seed).facts.up_rate.expect("all have it");
        assert!(
            halved
                .bits_per_second()
                .abs_diff(rate.bits_per_second() / 2)
                <= 1000
        );
        let up = &after.path.up;
        assert_eq!(up.capacity, Capacity::Constant(rate));
        let bytes = rate
            .bytes_in(facts.up.queue.expect("all have it"))
            .max(20 * 1280);
        match &up.queue {
            Queue::DropTail(queue) => {
                assert!(!facts.up.has_aqm);
                assert_eq!(queue.limit, Limit::Bytes(bytes));
            }
            Queue::CoDel(queue) => {
                assert!(facts.up.has_aqm);
                assert_eq!(queue.limit, Limit::Bytes(bytes));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(up.loss, [Loss::Bernoulli(facts.up.random_loss)]);
        assert!((0.001..0.01).contains(&facts.up.random_loss));
        assert_eq!(
            up.jitter.map(|jitter| jitter.spread),
            Some(Spread::Exponential(Duration::from_millis(3)))
        );
        assert_eq!(after.path.down, before.path.down);
    }
    let share = f64::from(managed) / f64::from(count);
    assert!((share - 0.5).abs() < 0.08, "{share}");
}

#[test]
fn a_sweep_of_rates_up_needs_one() {
    let unlimited = DEFAULT
        .lines()
        .filter(|line| !line.starts_with("up-rate"))
        .collect::<Vec<_>>()
        .join("\n");
    let population = Population::parse(&unlimited).expect("a population");
    let sweep = Sweep::of("up-rate", "0.5").expect("a factor");
    let error = population.scaled(&sweep).expect_err("no class has it");
    assert_eq!(error.key, "up-rate");
    assert!(Sweep::of("up-rate", "0").is_err());
}

#[test]
fn errors_of_noise_name_the_key() {
    for (lines, key) in [
        ("up-rate = \"5%\"", "classes.wifi.up-rate"),
        (
            "up-rate = \"5mbit\"\nup-share = \"5%\"",
            "classes.wifi.up-share",
        ),
        ("up-queue = \"50ms\"", "classes.wifi.up-queue"),
        ("up-aqm-share = 0.5", "classes.wifi.up-aqm-share"),
        ("up-loss = \"5\"", "classes.wifi.up-loss"),
        ("up-jitter = \"0s\"", "classes.wifi.up-jitter"),
        (
            "contention = { share = \"2\", busy = \"4ms\" }",
            "classes.wifi.contention.share",
        ),
        (
            "contention = { share = \"10%\", busy = \"0s\" }",
            "classes.wifi.contention.busy",
        ),
        (
            "wake-up = { after = \"10s\", delay = \"10\" }",
            "classes.wifi.wake-up.delay",
        ),
        (
            "reordering = { share = 1.5, packets = \"1%\", delay = \"5ms\" }",
            "classes.wifi.reordering.share",
        ),
    ] {
        let error = with_wifi(lines).expect_err(lines);
        assert_eq!(error.key, key, "{error}");
    }
}

#[test]
fn clients_acknowledge_by_the_rules_of_browsers() {
    let all = Population::standard();
    let count = 4000;
    let thinned = share(count, |seed| {
        all.draw(seed).transport.ack_decimation.is_some()
    });
    assert!((thinned - 0.72).abs() < 0.03, "{thinned}");
    let error = Population::parse(&DEFAULT.replacen("rule = \"safari\"", "rule = \"lynx\"", 1));
    assert_eq!(
        error.expect_err("no such rule").key,
        "acks.safari-like.rule"
    );
}

#[test]
fn a_managed_queue_runs_the_discipline_of_the_file() {
    for (name, is_it) in [
        (
            "pie",
            (|queue| matches!(queue, Queue::Pie(_))) as fn(Queue) -> bool,
        ),
        ("dualpi2", |queue| matches!(queue, Queue::DualPi2(_))),
        ("cake", |queue| matches!(queue, Queue::Cake(_))),
    ] {
        let text = DEFAULT.replacen("aqm = \"codel\"", &format!("aqm = \"{name}\""), 1);
        let population = Population::parse(&text).expect(name);
        let found = (0..200).any(|seed| is_it(population.draw(seed).path.down.queue));
        assert!(found, "{name}");
    }
    let red = Population::parse(&DEFAULT.replacen("aqm = \"codel\"", "aqm = \"red\"", 1));
    assert_eq!(red.expect_err("there is none").key, "aqm");
}
