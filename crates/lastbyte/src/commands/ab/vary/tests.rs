use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn each_network_has_each_combination() {
    let axes = axes(&texts(&["loss=0,1%", "queue=20ms, 80ms"])).expect("settings");
    let bases = ["lte", "vdsl"].map(|name| {
        let path = PathText::named(name).expect("a network");
        (name.to_owned(), path)
    });
    let (networks, sweep) = combine(bases.into(), &axes).expect("networks");
    let names: Vec<&str> = networks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "lte, queue 20ms, loss 0",
            "lte, queue 20ms, loss 1%",
            "lte, queue 80ms, loss 0",
            "lte, queue 80ms, loss 1%",
            "vdsl, queue 20ms, loss 0",
            "vdsl, queue 20ms, loss 1%",
            "vdsl, queue 80ms, loss 0",
            "vdsl, queue 80ms, loss 1%",
        ]
    );
    let (_, path) = &networks[3];
    assert_eq!(
        (path.down.loss.as_deref(), path.down.queue.as_deref()),
        (Some("1%"), Some("80ms"))
    );
    let sweep = sweep.expect("a chart");
    assert_eq!((sweep.axis.as_str(), sweep.panels.len()), ("loss", 4));
    assert_eq!(sweep.panels[2].title, "vdsl, queue 20ms");
    assert_eq!(sweep.panels[2].networks, names[4..6]);
}

#[test]
fn a_path_of_settings_alone_needs_rate_and_round_trip() {
    let of = |settings: &[&str]| combine(Vec::new(), &axes(&texts(settings)).expect("settings"));
    let (networks, _) = of(&["rate=5mbit,50mbit", "rtt=20ms"]).expect("networks");
    assert_eq!(networks[1].0, "rtt 20ms, rate 50mbit");
    assert_eq!(networks[0].1.down.queue.as_deref(), Some("100ms"));
    let error = of(&["rate=5mbit"]).expect_err("no round trip");
    assert_eq!(
        error.to_string(),
        "no network (expected --network, or `rate` and `rtt` among the settings)"
    );
}

#[test]
fn errors_name_what_is_wrong() {
    let error = |settings: &[&str]| {
        let axes = axes(&texts(settings)).map(|_| ());
        axes.expect_err("an error").to_string()
    };
    assert_eq!(error(&["loss"]), "`loss` (expected KEY=VALUE,…)");
    assert!(error(&["colour=1"]).starts_with("unknown setting `colour` (expected rate, rtt,"));
    assert_eq!(
        error(&["loss=0", "loss=1%"]),
        "`loss` is given twice (expected once)"
    );
    assert_eq!(
        error(&["loss=1%,1%"]),
        "`loss`: `1%` is given twice (expected once)"
    );
    assert!(error(&["loss=often"]).starts_with("`loss`: "));
    let values: Vec<String> = (1..=65).map(|ms| format!("{ms}ms")).collect();
    let many = axes(&[format!("rtt={}", values.join(",")), "rate=1mbit".to_owned()]);
    let error = combine(Vec::new(), &many.expect("settings")).expect_err("too many");
    assert_eq!(error.to_string(), "65 combinations (expected at most 64)");
}

#[test]
fn a_population_is_scaled_by_each_combination() {
    let factors = factors(&texts(&["queue=0.5,2", "sizes=images,videos"])).expect("factors");
    let (combinations, sweep) = combine_factors("default", &factors).expect("combinations");
    let names: Vec<&str> = combinations.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "sizes images, queue 0.5",
            "sizes images, queue 2",
            "sizes videos, queue 0.5",
            "sizes videos, queue 2",
        ]
    );
    assert!((combinations[3].1.queue - 2.0).abs() < f64::EPSILON);
    assert_eq!(combinations[3].1.sizes.as_deref(), Some("videos"));
    let sweep = sweep.expect("a chart");
    assert_eq!((sweep.axis.as_str(), sweep.panels.len()), ("queue", 2));
    assert_eq!(sweep.panels[1].networks, names[2..]);
    let one = super::factors(&texts(&["lossy=0,1,3"])).expect("factors");
    let (_, sweep) = combine_factors("default", &one).expect("combinations");
    assert_eq!(sweep.expect("a chart").panels[0].title, "default");
}

#[test]
fn errors_of_factors_name_what_is_wrong() {
    let error = |settings: &[&str]| {
        let factors = factors(&texts(settings)).map(|_| ());
        factors.expect_err("an error").to_string()
    };
    assert!(error(&["colour=1"]).starts_with("unknown setting `colour` (expected queue, lossy,"));
    assert_eq!(
        error(&["queue=deep"]),
        "`queue`: `deep` (expected a factor: 0.5, 2)"
    );
    assert!(error(&["queue=-1"]).starts_with("`queue`: "));
    assert_eq!(error(&["rate=0"]), "`rate`: it must be above zero");
}
