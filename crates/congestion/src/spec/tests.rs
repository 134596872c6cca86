use alloc::boxed::Box;
use core::time::Duration;

use lastbyte_units::Time;

use super::*;
use crate::{
    config::{AppLimited, FirstFlight, FirstRecovery, IdlePolicy, Variant, WindowSize},
    controller::Ack,
    rtt::Rtt,
    startup::{Growth, QueueThreshold, StartupAck},
    window::WindowController,
};

fn parse(text: &str) -> Spec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    match text.parse::<Spec>() {
        Ok(_) => panic!("{text} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_four_arms_differ_in_first_flight_and_first_recovery() {
    let arm = |name: &str| {
        let config = parse(name).config().clone();
        assert_eq!(config.initial_window, WindowSize::Datagrams(30), "{name}");
        assert_eq!(config.startup_beta, Some(0.5), "{name}");
        (config.first_flight, config.first_recovery)
    };
    let jump = FirstFlight::Jump { window: None };
    let proportional = FirstRecovery::Proportional(Variant::Draft02);
    assert_eq!(
        arm("slow-start"),
        (FirstFlight::HALF_ROUND_TRIP, FirstRecovery::Cut)
    );
    assert_eq!(arm("jumpstart"), (jump, FirstRecovery::Cut));
    assert_eq!(
        arm("rapid-no-jump"),
        (FirstFlight::HALF_ROUND_TRIP, proportional)
    );
    assert_eq!(arm("rapid-start"), (jump, proportional));
}

#[test]
fn every_preset_builds_and_starts_with_30_datagrams() {
    for (name, _) in Registry::builtin().presets() {
        let controller = parse(name).build(&Environment {
            max_datagram_size: 1280,
            seed: 7,
        });
        assert_eq!(controller.window(), 38_400, "{name}");
        assert_eq!(
            controller.state().statistics.initial_window,
            38_400,
            "{name}"
        );
    }
}

#[test]
fn any_startup_can_be_combined_with_any_avoidance() {
    let registry = Registry::builtin();
    let mut pairs = 0;
    for (growth, _) in registry.startups() {
        for (congestion, _) in registry.avoidances() {
            for recovery in ["cut", "proportional"] {
                for flight in ["initial-window", "jump"] {
                    let spec = parse(&format!(
                        "slow-start:growth={growth},congestion={congestion},recovery={recovery},first-flight={flight}"
                    ));
                    let controller = spec.build(&Environment {
                        max_datagram_size: 1200,
                        seed: 1,
                    });
                    assert_eq!(controller.state().avoidance, Some(congestion));
                    pairs += 1;
                }
            }
        }
    }
    assert_eq!(pairs, 64);
}

#[test]
fn the_spec_of_the_rapid_start_authors_is_parsed() {
    let spec = parse("rapid-start:variant=quicly,congestion=pico,initial-window=44160B,beta=0.7");
    let config = spec.config();
    assert_eq!(config.initial_window, WindowSize::Bytes(44_160));
    assert_eq!(
        config.first_recovery,
        FirstRecovery::Proportional(Variant::Quicly)
    );
    assert_eq!(QueueThreshold::of(&config.settings), QueueThreshold::Max);
    assert_eq!((config.startup_beta, config.beta), (Some(0.7), Some(0.7)));
    assert_eq!(
        spec.to_string(),
        "rapid-start:variant=quicly,congestion=pico,initial-window=44160B,beta=0.7"
    );
}

#[test]
fn the_variant_of_the_editors_copy_sets_the_keys_that_it_names() {
    let keys = |text: &str| {
        let spec = parse(text);
        let config = spec.config();
        (
            config.first_recovery,
            config.burst,
            config.startup_pacing_gain,
            config.startup_beta_ecn,
        )
    };
    let editor = FirstRecovery::Proportional(Variant::Editor);
    let burst = Some(WindowSize::Datagrams(2));
    assert_eq!(
        keys("rapid-start:variant=editor"),
        (editor, burst, Some(1.0), Some(0.8))
    );
    assert_eq!(
        keys("rapid-start:variant=editor,burst=10p,startup-pacing-gain=2,startup-beta-ecn=0.7"),
        (
            editor,
            Some(WindowSize::Datagrams(10)),
            Some(2.0),
            Some(0.7)
        )
    );
    // As with the other variants, no effect on a cut.
    assert_eq!(
        keys("slow-start:variant=editor"),
        (FirstRecovery::Cut, None, None, None)
    );
    assert_eq!(
        keys("rapid-start"),
        (
            FirstRecovery::Proportional(Variant::Draft02),
            None,
            None,
            None
        )
    );
}

#[test]
fn startup_beta_overrides_beta_which_overrides_variant_and_preset() {
    let startup_beta = |text: &str| parse(text).config().startup_beta;
    assert_eq!(startup_beta("rapid-start"), Some(0.5));
    assert_eq!(startup_beta("rapid-start:variant=quicly"), Some(0.7));
    assert_eq!(
        startup_beta("rapid-start:variant=quicly,beta=0.6"),
        Some(0.6)
    );
    assert_eq!(
        startup_beta("rapid-start:startup-beta=0.8,beta=0.6"),
        Some(0.8)
    );
    // The variant concerns Rapid Start's recovery: it has no effect on a cut.
    assert_eq!(startup_beta("slow-start:variant=quicly"), Some(0.5));
    assert_eq!(startup_beta("cubic"), None);
}

/// The bucket after a pause: ten datagrams, of scalable rules what is released at a time, and what `burst` says.
#[test]
fn bursts_after_a_pause_are_those_of_the_rule_or_of_the_key() {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, Duration::from_millis(40), Duration::ZERO, None);
    let burst = |text: &str| {
        let controller = parse(text).build(&Environment {
            max_datagram_size: 1000,
            seed: 1,
        });
        let pacing = controller.pacing(&rtt);
        assert!(pacing.burst >= pacing.quantum, "{text}");
        pacing.burst
    };
    assert_eq!(burst("cubic"), 10_000);
    assert_eq!(burst("cubic:burst=2p"), 2000);
    assert_eq!(burst("cubic:burst=30p"), 30_000);
    // draft-briscoe-iccrg-prague-congestion-control §2.5.2.
    assert_eq!(burst("prague"), 2000);
    assert_eq!(burst("rapid-start:congestion=prague"), 2000);
    assert_eq!(burst("prague:burst=10p"), 10_000);
    // A window of 1000 packets a round trip of 40 ms, twice: 12.5 packets in 250 µs.
    assert_eq!(
        burst("prague:initial-window=1000p,first-flight-rtts=0.5"),
        12_500
    );
    // BBR: two quanta of 64 KiB, of which one is the least.
    assert_eq!(burst("bbr"), 131_072);
    assert_eq!(burst("bbr:burst=2p"), 65_536);
    assert_eq!(burst("bbr:burst=200p"), 200_000);
}

#[test]
fn keys_are_accepted_in_any_order() {
    let spec = parse(
        "slow-start:idle=rfc2861,respect-app-limited=off,pacing-gain=1.5,fast-convergence=off,queue-threshold=max,\
         beta-ecn=0.85,startup-beta=0.6,beta=0.7,first-flight-rtts=1,min-window=4p,initial-window=64KiB,\
         recovery=proportional,first-flight=initial-window,growth=rapid,congestion=newreno,variant=draft-02,jump-window=1MB,\
         search-threshold=0.3,search-exit=keep,rate-limited-increase=off,resume=on,resume-max=100p,\
         hystart-exit=on,classic-ecn-fallback=on,burst=2p,startup-pacing-gain=1,startup-beta-ecn=0.8",
    );
    assert_eq!(
        *spec.config(),
        Config {
            initial_window: WindowSize::Bytes(65_536),
            minimum_window: WindowSize::Datagrams(4),
            first_flight: FirstFlight::InitialWindow { round_trips: 1.0 },
            first_recovery: FirstRecovery::Proportional(Variant::Draft02),
            startup_beta: Some(0.6),
            startup_beta_ecn: Some(0.8),
            beta: Some(0.7),
            beta_ecn: Some(0.85),
            pacing_gain: Some(1.5),
            startup_pacing_gain: Some(1.0),
            burst: Some(WindowSize::Datagrams(2)),
            resume: Some(WindowSize::Datagrams(100)),
            app_limited: AppLimited::Ignored,
            idle: IdlePolicy::Rfc2861,
            settings: [
                ("fast-convergence", Value::Switch(false)),
                ("queue-threshold", Value::Choice("max")),
                ("variant", Value::Choice("draft-02")),
                ("search-threshold", Value::Number(0.3)),
                ("search-exit", Value::Choice("keep")),
                ("hystart-exit", Value::Switch(true)),
                ("classic-ecn-fallback", Value::Switch(true)),
            ]
            .into_iter()
            .collect(),
        }
    );
    assert_eq!(
        QueueThreshold::of(&spec.config().settings),
        QueueThreshold::Max
    );
    // Every key is covered by this test.
    for key in Registry::builtin().keys() {
        assert!(
            spec.to_string().contains(&format!("{}=", key.name)),
            "{}",
            key.name
        );
    }
}

#[test]
fn errors_name_the_problem_its_place_and_the_allowed_values() {
    let messages: Vec<String> = [
        "",
        "quick-start",
        "Cubic",
        "cubic:",
        "cubic:beta",
        "cubic:gamma=1",
        "bbr:congestion=cubic",
        "cubic:beta=0.7,beta=0.8",
        "cubic:beta=1.5",
        "cubic:beta=NaN",
        "cubic:beta=",
        "cubic:initial-window=10",
        "cubic:initial-window=1p",
        "cubic:initial-window=-1p",
        "cubic:initial-window=99999999999999999999p",
        "cubic:initial-window=18446744073709551615MiB",
        "cubic:min-window=2GiB",
        "rapid-start:variant=draft-03",
        "rapid-start:congestion=bbr",
        "rapid-start:growth=hypestart",
        "rapid-start:idle=always",
        "rapid-start:fast-convergence=yes",
        "rapid-start:first-flight-rtts=0",
        "rapid-start:pacing-gain=0.5",
        "jumpstart:jump-window=20p",
    ]
    .iter()
    .map(|spec| format!("{spec:<45} {}", error(spec)))
    .collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("spec_errors", messages.join("\n"));
    });
}

#[test]
fn help_names_each_key() {
    let line = |key: &Key| {
        let usage = format!("{}={}", key.name, key.value());
        format!("{usage:<34} {}", key.summary())
    };
    let lines: Vec<String> = Registry::builtin().keys().iter().map(line).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("spec_keys", lines.join("\n"));
    });
}

#[derive(Debug)]
struct Still;

impl Startup for Still {
    fn name(&self) -> &'static str {
        "still"
    }

    fn on_ack(&mut self, _: &StartupAck<'_>) -> Growth {
        Growth::by(0)
    }
}

#[test]
fn added_names_are_checked() {
    let mut registry = Registry::builtin();
    let still = |_: &Config| Box::new(Still) as Box<dyn Startup>;
    for taken in ["cubic", "rapid", "jumpstart", "bbr"] {
        let error = registry.add_startup(taken, "", still).map(|_| ());
        assert_eq!(error, Err(SpecError::NameTaken { name: taken }));
    }
    for bad in [
        "",
        "Still",
        "still life",
        "still:",
        "a,b",
        "3",
        "2fast",
        "-still",
    ] {
        let error = registry.add_startup(bad, "", still).map(|_| ());
        assert_eq!(error, Err(SpecError::BadName { name: bad }));
    }
    registry
        .add_startup("still", "does not grow", still)
        .expect("a free name");
    registry
        .add_avoidance("reno-2", "the same again", |config| {
            Box::new(NewReno::new(config))
        })
        .expect("a free name");
    assert!(registry.parse("still:congestion=reno-2").is_ok());
    assert!(registry.parse("rapid-start:growth=still").is_ok());
    assert!(registry.parse("reno-2:growth=hystart").is_ok());
    let unknown = registry.parse("slow-start:growth=stil").map(|_| ());
    let message = unknown.expect_err("no such growth").to_string();
    assert!(message.contains("search, still"), "{message}");
}

#[test]
fn the_state_names_the_growth_rule_and_not_the_preset() {
    let environment = Environment {
        max_datagram_size: 1200,
        seed: 1,
    };
    for (spec, expected) in [
        ("cubic:growth=rapid", ("rapid", Some("cubic"))),
        (
            "rapid-start:growth=slow-start",
            ("slow-start", Some("cubic")),
        ),
        ("jumpstart", ("slow-start", Some("cubic"))),
        ("hystart:congestion=newreno", ("hystart", Some("newreno"))),
        ("search", ("search", Some("cubic"))),
        ("rate-limited", ("slow-start", Some("cubic"))),
        ("careful-resume", ("slow-start", Some("cubic"))),
        ("bbr", ("bbr", None)),
    ] {
        let state = parse(spec).build(&environment).state();
        assert_eq!((state.startup, state.avoidance), expected, "{spec}");
    }
}

#[derive(Debug)]
struct Steps {
    bytes: u64,
}

impl Startup for Steps {
    fn name(&self) -> &'static str {
        "steps"
    }

    fn on_ack(&mut self, _: &StartupAck<'_>) -> Growth {
        Growth::by(self.bytes)
    }
}

#[test]
fn added_keys_parse_with_the_same_errors_and_reach_the_rule() {
    let mut registry = Registry::builtin();
    registry
        .add_key(Key::number("step-scale", 1.0, 4.0, "by how much (1)"))
        .and_then(|registry| registry.add_key(Key::choice("step-unit", &["byte", "kb"], "of what")))
        .and_then(|registry| {
            let base = 10.0; // factories capture
            registry.add_startup("steps", "in steps", move |config| {
                let scale = config.settings.number("step-scale").unwrap_or(1.0);
                let unit = match config.settings.choice("step-unit") {
                    Some("kb") => 1000.0,
                    _ => 1.0,
                };
                Box::new(Steps {
                    bytes: (base * scale * unit) as u64,
                })
            })
        })
        .expect("free names");
    let environment = Environment {
        max_datagram_size: 1200,
        seed: 1,
    };
    let growth = |text: &str| {
        let spec = registry.parse(text).expect("a spec");
        let mut controller = spec.build(&environment);
        let (now, rtt, before) = (Time::ZERO, Rtt::default(), controller.window());
        controller.on_ack(&Ack {
            now,
            in_flight: 0,
            rtt: &rtt,
            has_rtt_sample: false,
        });
        controller.window() - before
    };
    assert_eq!(growth("steps"), 10);
    assert_eq!(growth("cubic:growth=steps,step-scale=2.5"), 25);
    assert_eq!(growth("steps:step-unit=kb,initial-window=10p"), 10_000);
    for (text, expected) in [
        ("steps:step-scale=5", "(expected 1 to 4)"),
        ("steps:step-unit=mb", "(expected one of byte, kb)"),
        ("steps:step-size=1", "idle, step-scale, step-unit)"),
        ("bbr:step-scale=2", "(expected initial-window, burst)"),
        ("steps:step-scale=2,step-scale=2", "is given twice"),
    ] {
        let error = registry.parse(text).expect_err(text).to_string();
        assert!(
            error.ends_with(expected) || error.contains(expected),
            "{error}"
        );
    }
    for taken in ["idle", "step-scale"] {
        let error = registry.add_key(Key::switch(taken, "")).map(|_| ());
        assert_eq!(error, Err(SpecError::NameTaken { name: taken }));
    }
    for bad in ["a=b", "2nd"] {
        let error = registry.add_key(Key::switch(bad, "")).map(|_| ());
        assert_eq!(error, Err(SpecError::BadName { name: bad }));
    }
}

#[test]
fn near_names_are_suggested() {
    let registry = Registry::builtin();
    for (text, suggested) in [
        ("cubik", Some("cubic")),
        ("Cubic", Some("cubic")),
        ("cubc", Some("cubic")),
        ("cubicc", Some("cubic")),
        ("ucbic", Some("cubic")),
        ("rapid", Some("rapid-no-jump` or `rapid-start")),
        ("slow", Some("slow-start")),
        ("cubic:initial=10p", Some("initial-window")),
        ("bbrv3", None),
        ("sl", None),
        ("quick-start", None),
        ("", None),
        ("cubic:bta=0.7", Some("beta")),
        ("cubic:initial-windows=10p", Some("initial-window")),
        ("cubic:gamma=1", None),
    ] {
        let error = registry.parse(text).expect_err(text).to_string();
        match suggested {
            Some(name) => assert!(
                error.ends_with(&format!("; did you mean `{name}`?")),
                "{error}"
            ),
            None => assert!(error.ends_with(')'), "{error}"),
        }
    }
}

#[test]
fn an_added_controller_takes_the_keys_it_names() {
    let mut registry = Registry::builtin();
    let make = |config: &Config, environment: &Environment| {
        Box::new(WindowController::new(
            config.clone(),
            environment.max_datagram_size,
            Box::new(Still),
            Box::new(NewReno::new(config)),
        )) as Box<dyn Controller>
    };
    registry
        .add_controller("whole", "the same again", &["initial-window"], make)
        .expect("a free name");
    assert!(registry.parse("whole:initial-window=10p").is_ok());
    let error = registry.parse("whole:beta=0.5").expect_err("not its key");
    let expected = "unknown key `beta` of `whole` (expected initial-window)";
    assert_eq!(error.to_string(), expected);
    let error = registry.add_controller("other", "", &["gain"], make);
    let error = error.map(|_| ()).expect_err("no such key").to_string();
    assert!(
        error.starts_with("unknown key `gain` of `other`"),
        "{error}"
    );
}
