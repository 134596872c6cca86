//! Arbitrary text for a quantity, a network, a trace, a population or an experiment: it is rejected with a message, or can be
//! simulated. Shared by the replay of the corpus and the fuzz target.
//!
//! The first byte selects the kind of text. It may replace a line of a valid file, selected by the next byte, so that most
//! inputs are nearly valid.

use core::{fmt::Display, time::Duration};

use lastbyte_congestion::Registry;
use lastbyte_link::{Capacity, Trace};
use lastbyte_scenario::{
    Direction, Experiment, FlowPlan, Path, Population, Request, Scenario, Transport,
    experiment::FOUR_ARMS, network::PathText, population::DEFAULT,
};
use lastbyte_sim::simulate;
use lastbyte_units::{self as units, UnitError};

/// A network with every key.
const NETWORK: &str = r#"
rtt = "40ms"
overhead = 28
[down]
steps = ["0s 30mbit", "1s 0", "2s 10mbit"]
period = "3s"
queue = "100p"
discipline = "fq-codel"
mark = "on"
departure = "first-bit"
jitter = "5ms reorder"
loss = "1%"
burst-loss = "2% 3p"
lose = [5, 7]
duplicate = "0.1%"
reorder = "1% 5ms"
mtu = 1400
policer = "10mbit 100kB"
[up]
rate = "5Mb/s"
delay = "7ms"
queue = "64kB"
mark = "10p"
release = "random 4ms"
"#;

pub(crate) fn play(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else {
        return;
    };
    let nearly = |good: &str| {
        let (line, text) = rest.split_first()?;
        let text = str::from_utf8(text).ok()?;
        let mut lines: Vec<&str> = good.lines().collect();
        let place = usize::from(*line) % lines.len();
        lines[place] = text;
        Some(lines.join("\n"))
    };
    let plain = || str::from_utf8(rest).ok().map(str::to_owned);
    match kind % 8 {
        0 => _ = plain().map(|text| figures(&text)),
        1 => _ = plain().map(|text| network(&text)),
        2 => _ = nearly(NETWORK).map(|text| network(&text)),
        3 => _ = plain().map(|text| trace(&text)),
        4 => _ = plain().map(|text| population(&text)),
        5 => _ = nearly(DEFAULT).map(|text| population(&text)),
        6 => _ = plain().map(|text| experiment(&text)),
        _ => _ = nearly(FOUR_ARMS).map(|text| experiment(&text)),
    }
}

/// Checks that an error has a message.
fn refused(error: &impl Display) {
    assert!(!error.to_string().is_empty());
}

fn figures(text: &str) {
    fn checked<T>(read: Result<T, UnitError>, check: impl Fn(T)) {
        match read {
            Ok(value) => check(value),
            Err(error) => {
                assert!(error.to_string().starts_with("expected "));
                assert!(!error.expected().is_empty());
            }
        }
    }
    checked(units::span(text), |span| {
        assert!(span <= Duration::from_secs(3_200_000_000));
        assert!(units::span(&units::show_span(span)).is_ok());
    });
    checked(units::rate(text), |rate| {
        assert!((1..=1_000_000_000_000_000).contains(&rate.bits_per_second()));
        assert!(units::rate(&units::show_rate(rate)).is_ok());
        // No text is valid as both a span, a size or a share: values are unambiguous.
        assert!(units::span(text).is_err() && units::probability(text).is_err());
        assert!(units::bytes(text).is_err());
    });
    checked(units::bytes(text), |bytes| {
        assert!(bytes <= 1_000_000_000_000_000_000);
        assert_eq!(units::bytes(&bytes.to_string()), Ok(bytes));
        assert!(units::bytes(&units::show_bytes(bytes)).is_ok());
    });
    checked(units::probability(text), |share| {
        assert!((0.0..=1.0).contains(&share));
        assert!(share <= 0.5 || text.contains('%'));
    });
    checked(units::count(text), |_| ());
    checked(units::seed(text), |seed| assert!(seed < units::SEED_END));
}

fn trace(text: &str) {
    match text.parse::<Trace>() {
        Ok(trace) => {
            let mut path = Path::default();
            path.down.capacity = Capacity::Trace(trace);
            run(path);
        }
        Err(error) => refused(&error),
    }
}

fn network(text: &str) {
    let read = PathText::parse(text).and_then(|text| {
        let alone = text.path(&mut |_| Ok("1\n2\n5\n".to_owned()));
        let over = PathText::named("vdsl")?.overridden_by(text);
        let over = over.path(&mut |_| Ok("1\n2\n5\n".to_owned()));
        alone.and(over)
    });
    match read {
        Ok(path) => run(path),
        Err(error) => refused(&error),
    }
}

/// Simulates the path for a moment.
fn run(path: Path) {
    path.down.check().expect("a link");
    path.up.check().expect("a link");
    let scenario = Scenario {
        path,
        flows: vec![FlowPlan {
            congestion: "rapid-start".parse().expect("a preset"),
            start: Duration::ZERO,
            rtt: None,
            direction: Direction::Down,
            requests: vec![Request::of(30_000)],
            progress: Vec::new(),
        }],
        cross: Vec::new(),
        transport: Transport::default(),
        seed: 1,
        time_limit: Duration::from_millis(300),
        horizon: Duration::ZERO,
    };
    let _ = simulate(&scenario, &mut ());
}

fn population(text: &str) {
    match Population::parse(text) {
        Ok(population) => {
            for seed in 0..4 {
                let draw = population.draw(seed);
                draw.path.down.check().expect("a link");
                draw.path.up.check().expect("a link");
                assert!(draw.size_bytes > 0);
            }
        }
        Err(error) => refused(&error),
    }
}

fn experiment(text: &str) {
    match Experiment::parse_with(text, &Registry::builtin(), &mut |_| Ok(DEFAULT.to_owned())) {
        Ok(experiment) => {
            assert!(experiment.seed < units::SEED_END && experiment.connections > 0);
            for index in 0..4 {
                let plan = experiment.connection(index, index % 2 == 0);
                assert!(plan.seed < units::SEED_END && plan.arm < experiment.arms.len());
                let scenario = experiment.scenario(&plan);
                scenario.path.down.check().expect("a link");
            }
        }
        Err(error) => refused(&error),
    }
}
