use super::*;

fn no_trace(name: &str) -> Result<String, String> {
    Err(format!("{name} is not asked for"))
}

fn path(text: &str) -> Result<Path, SettingError> {
    PathText::parse(text)?.path(&mut no_trace)
}

#[test]
fn every_named_network_is_valid() {
    for (name, _) in NAMED {
        let text = PathText::named(name).expect(name);
        assert!(
            text.description.is_some() && text.source.is_some(),
            "{name}"
        );
        let path = text.path(&mut no_trace).expect(name);
        assert!(
            matches!(path.down.capacity, Capacity::Constant(_)),
            "{name}"
        );
        assert_eq!(path.down.delay, path.up.delay, "{name}");
        assert!(!path.down.delay.is_zero(), "{name}");
    }
}

#[test]
fn vdsl_matches_the_network_of_the_talk() {
    let path = PathText::named("vdsl").and_then(|text| text.path(&mut no_trace));
    let down = path.expect("a path").down;
    let rate = link::Rate::from_bits_per_second(55_000_000);
    assert_eq!(down.capacity, Capacity::Constant(rate));
    assert_eq!(down.delay, Duration::from_micros(19_500));
    let limit = Limit::Time(Duration::from_millis(50));
    let queue = DropTail {
        limit,
        mark_above: None,
    };
    assert_eq!(down.queue, Queue::DropTail(queue));
}

#[test]
fn every_key_sets_its_value() {
    let text = r#"
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
        delay = "7ms"
        queue = "64kB"
        mark = "10p"
        release = "random 4ms"
    "#;
    let path = path(text).expect("a path");
    let down = &path.down;
    assert!(matches!(down.capacity, Capacity::Schedule(_)));
    assert!(
        matches!(down.queue, Queue::FqCoDel(queue) if queue.codel.ecn && queue.codel.limit == Limit::Packets(100))
    );
    assert_eq!(down.departure, Departure::FirstBit);
    assert!(down.jitter.is_some_and(|jitter| jitter.may_reorder));
    assert_eq!(down.loss.len(), 3);
    assert!((down.duplication - 0.001).abs() < 1e-12);
    assert!(down.reordering.is_some() && down.policer.is_some());
    assert_eq!(down.black_hole.map(|hole| hole.mtu), Some(1428));
    assert_eq!(down.delay, Duration::from_millis(20));
    assert_eq!(path.up.delay, Duration::from_millis(7));
    assert!(matches!(
        path.up.queue,
        Queue::DropTail(DropTail {
            limit: Limit::Bytes(64_000),
            mark_above: Some(Limit::Packets(10))
        })
    ));
    assert!(matches!(path.up.release, Some(Spacing::Random(_))));
}

#[test]
fn a_trace_is_read_by_the_caller() {
    let text = PathText::parse("[down]\ntrace = \"verizon.down\"").expect("a text");
    let path = text.path(&mut |name| {
        assert_eq!(name, "verizon.down");
        Ok("1\n2\n5\n".to_owned())
    });
    assert!(matches!(
        path.expect("a path").down.capacity,
        Capacity::Trace(_)
    ));
    let error = text
        .path(&mut |_| Ok("1\nx\n".to_owned()))
        .expect_err("no trace");
    assert!(error.to_string().contains("verizon.down"), "{error}");
    assert!(error.to_string().contains('2'), "{error}");
}

#[test]
fn overrides_replace_settings_of_the_same_kind() {
    let base = PathText::parse("rtt = \"40ms\"\n[down]\nsteps = [\"0s 1mbit\"]\nqueue = \"50ms\"");
    let over = PathText::parse("[down]\nrate = \"5mbit\"");
    let both = base
        .expect("a base")
        .overridden_by(over.expect("an override"));
    assert_eq!(both.down.steps, None);
    let path = both.path(&mut no_trace).expect("a path");
    assert!(matches!(path.down.capacity, Capacity::Constant(_)));
    assert_eq!(path.down.delay, Duration::from_millis(20));
    assert!(matches!(
        path.down.queue,
        Queue::DropTail(DropTail {
            limit: Limit::Time(_),
            ..
        })
    ));
}

#[test]
fn errors_name_the_key_and_the_expected_value() {
    for (text, wanted) in [
        (
            "rtt = \"39\"",
            "`rtt`: `39` (expected a span of time with its unit, such as `39s` or `39ms`)",
        ),
        (
            "[down]\nrate = \"55\"",
            "`down.rate`: `55` (expected a rate",
        ),
        (
            "[up]\nloss = \"150%\"",
            "`up.loss`: `150%` (expected a share from 0% to 100%",
        ),
        (
            "[down]\nqueue = \"much\"",
            "`down.queue`: `much` (expected a depth, such as",
        ),
        (
            "[down]\nreorder = \"1%\"",
            "`down.reorder`: `1%` (expected a share and a delay",
        ),
        ("[down]\ndiscipline = \"red\"", "(expected `drop-tail`"),
        ("[down]\nrate = \"1mbit\"\ntrace = \"x\"", "not several"),
        (
            "[down]\nburst-loss = \"1% 0p\"",
            "`down.burst-loss`: `0p` (expected a mean length",
        ),
        ("[down]\nbandwidth = \"1mbit\"", "unknown field `bandwidth`"),
        ("rtt = 39", "expected a string"),
        (
            "[down]\nqueue = \"60\"",
            "`down.queue`: `60` (expected a depth with its unit: `60ms`, `60kB` or `60p`",
        ),
        ("[up]\nloss = \"1\"", "`1%`, or `100%` if 1 is meant"),
        ("[down]\nburst-loss = \"1% 3\"", "such as `3p`"),
        ("[down]\nmark = \"20\"", "`20p` for packets"),
        (
            "[down]\ndiscipline = \"codel\"\nmark = \"5ms\"",
            "`down.mark`: `5ms` (expected `on`",
        ),
        (
            "overhead = 4294967295",
            "`overhead`: 4294967295 (expected at most 65535 bytes)",
        ),
        ("[up]\nperiod = \"1s\"", "`up.period`: it is of `steps`"),
        ("[down]\npolicer = \"10 100kB\"", "`10` (expected a rate"),
        ("[[[", "TOML"),
    ] {
        let error = path(text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
    let error = PathText::named("isdn").expect_err("none").to_string();
    assert!(error.contains("home-wifi"), "{error}");
}

#[test]
fn cross_traffic_is_part_of_a_network_file() {
    let text = "cross = [\"cubic rtt 80ms\", \"pages:bbr 300kB 2s up\"]\nrtt = \"40ms\"";
    let path = PathText::parse(text).expect("a file").path(&mut no_trace);
    let path = path.expect("a path");
    assert_eq!(path.cross.len(), 2);
    assert_eq!(path.cross[0].rtt, Some(Duration::from_millis(80)));
    let text = PathText::parse("cross = [\"cubix\"]").expect("a file");
    let error = text
        .path(&mut no_trace)
        .expect_err("no such preset")
        .to_string();
    assert!(
        error.contains("cross") && error.contains("`cubix`"),
        "{error}"
    );
    let many = PathText {
        cross: Some(vec!["cubic".to_owned(); 1001]),
        ..PathText::default()
    };
    let error = many.path(&mut no_trace).expect_err("too many").to_string();
    assert!(
        error.contains("1001 flows (expected at most 1000)"),
        "{error}"
    );
}

#[test]
fn a_direction_has_further_hops() {
    let text = r#"
        rtt = "40ms"
        overhead = 28
        cross = ["cubic hop 2-3", "cbr:1mbit up hop 1"]
        [down]
        rate = "50mbit"
        [[down.hop]]
        rate = "20mbit"
        burst = "10kB"
        peak-rate = "40mbit"
        queue = "50ms"
        discipline = "codel"
        mtu = 1400
        delay = "4ms"
        [[down.hop]]
        delay = "6ms"
        loss = "1%"
    "#;
    let path = path(text).expect("a path");
    let [second, third] = &path.down.further[..] else {
        panic!("{:?}", path.down.further);
    };
    // The first hop has the rest of the delay.
    let delays = path.down.hops().map(|hop| hop.delay.as_millis());
    assert!(delays.eq([10, 4, 6]));
    assert_eq!(path.rtt(), Duration::from_millis(40));
    assert!(matches!(second.capacity, Capacity::Shaper(_)));
    assert!(matches!(second.queue, Queue::CoDel(_)));
    assert_eq!(second.black_hole.map(|hole| hole.mtu), Some(1428));
    assert_eq!(
        (third.loss.len(), &third.capacity),
        (1, &Capacity::Unlimited)
    );
    assert_eq!(path.down.bottleneck().0, 1);
    assert!(path.up.further.is_empty());

    // Options replace settings of the first hop, and keep the others.
    let rate = PathText::parse("rtt = \"60ms\"\n[down]\nrate = \"1mbit\"").expect("a file");
    let over = PathText::parse(text).expect("a file").overridden_by(rate);
    let over = over.path(&mut no_trace).expect("a path");
    assert_eq!(over.down.bottleneck().0, 0);
    assert_eq!(over.down.further, path.down.further);
    assert_eq!(over.rtt(), Duration::from_millis(60));
}

#[test]
fn errors_of_hops_name_the_hop() {
    let many = "[[up.hop]]\nrate = \"1mbit\"\n".repeat(8);
    for (text, wanted) in [
        (
            "[[down.hop]]\n[[down.hop]]\nrate = \"fast\"",
            "`down.hop[3].rate`: `fast` (expected a rate",
        ),
        (
            "[[down.hop]]\nrate = \"1mbit\"\ntrace = \"x\"",
            "`down.hop[2]`: one of `rate`, `steps` and `trace`",
        ),
        (
            "[[down.hop]]\nspeed = \"fast\"",
            "`down.hop[2].speed`: unknown field `speed`",
        ),
        (
            "[[down.hop]]\n[[down.hop.hop]]",
            "`down.hop[2].hop`: a hop of a hop (expected all hops in `down.hop`)",
        ),
        (
            "rtt = \"20ms\"\n[[up.hop]]\ndelay = \"15ms\"",
            "`rtt`: 20ms, but the hops of `up` delay 15ms (expected at most half",
        ),
        (&many, "`up.hop`: 8 tables (expected at most 7)"),
        (
            "cross = [\"cubic hop 2\"]",
            "`cross`: cross traffic on hop 2 of the downlink (expected 1 to 1)",
        ),
        (
            "cross = [\"cubic hop 0\"]",
            "`cross`: `cubic hop 0`: hop `0` (expected a number from 1",
        ),
        ("[down]\nhop = \"10mbit\"", "expected a sequence"),
    ] {
        let error = path(text).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn disciplines_are_selected_by_name() {
    let queue = |text: &str| path(&format!("[down]\n{text}")).map(|path| path.down.queue);
    assert!(matches!(
        queue("discipline = \"pie\"\nqueue = \"50p\"\nmark = \"on\""),
        Ok(Queue::Pie(pie)) if pie.ecn && pie.limit == Limit::Packets(50)
    ));
    assert!(matches!(
        queue("discipline = \"dualpi2\"\nqueue = \"64kB\""),
        Ok(Queue::DualPi2(dual)) if dual.limit == Limit::Bytes(64_000)
    ));
    let error = queue("discipline = \"red\"").expect_err("there is none");
    assert_eq!(
        error.to_string(),
        "`down.discipline`: `red` (expected `drop-tail`, `codel`, `fq-codel`, `pie`, `dualpi2` or `cake`)"
    );
    assert!(queue("discipline = \"pie\"\nmark = \"5ms\"").is_err());
}

/// As RFC 8290 §5.2.4, `sch_cake` and RFC 9332: a managed queue that finds ECN-capable packets marks them.
#[test]
fn managed_queues_mark_unless_turned_off() {
    let queue = |text: &str| path(&format!("[down]\n{text}")).map(|path| path.down.queue);
    for name in ["codel", "fq-codel", "pie", "cake", "dualpi2"] {
        for (mark, expected) in [
            ("", true),
            ("mark = \"on\"", true),
            ("mark = \"off\"", false),
        ] {
            let found = queue(&format!("discipline = \"{name}\"\n{mark}"));
            match found {
                Ok(found) => assert_eq!(found.marks(), expected, "{name} {mark}"),
                Err(error) => assert_eq!(
                    error.to_string(),
                    "`down.mark`: `off` (expected `on`: `dualpi2` always marks)"
                ),
            }
        }
    }
    for (mark, expected) in [
        ("", false),
        ("mark = \"off\"", false),
        ("mark = \"5ms\"", true),
    ] {
        let found = queue(&format!("rate = \"1mbit\"\n{mark}")).expect("a queue");
        assert_eq!(found.marks(), expected, "{mark}");
    }
    assert!(queue("mark = \"on\"").is_err(), "drop-tail needs a depth");
}

#[test]
fn aggregates_need_a_rate_and_limits() {
    let capacity = |text: &str| path(&format!("[down]\n{text}")).map(|path| path.down.capacity);
    assert_eq!(
        capacity("rate = \"130mbit\"\naggregate = \"64p 4ms\""),
        Ok(Capacity::Wifi(Wifi {
            rate: link::Rate::from_bits_per_second(130_000_000),
            packets: 64,
            airtime: Duration::from_millis(4),
        }))
    );
    for other in [
        "",
        "steps = [\"0s 20mbit\"]",
        "rate = \"20mbit\"\nburst = \"2MB\"\npeak-rate = \"100mbit\"",
        "rate = \"20mbit\"\ndeparture = \"first-bit\"",
    ] {
        let error = capacity(&format!("{other}\naggregate = \"64p 4ms\"")).expect_err(other);
        assert_eq!(
            error.to_string(),
            "`down.aggregate`: it requires `rate`, without `burst` and `departure`"
        );
    }
    for bad in ["64p", "0p 4ms", "1025p 4ms", "64 4ms"] {
        let error = capacity(&format!("rate = \"20mbit\"\naggregate = \"{bad}\""));
        assert_eq!(
            error.expect_err(bad).to_string(),
            format!(
                "`down.aggregate`: `{bad}` (expected 1 to 1024 packets and a duration, such as `64p 4ms`)"
            )
        );
    }
    // Another rate is one of the same medium; a trace is not.
    let file = LinkText {
        rate: Some("130mbit".to_owned()),
        aggregate: Some("64p 4ms".to_owned()),
        ..LinkText::default()
    };
    let slower = LinkText {
        rate: Some("20mbit".to_owned()),
        ..LinkText::default()
    };
    let traced = LinkText {
        trace: Some("lte.down".to_owned()),
        ..LinkText::default()
    };
    assert!(file.clone().overridden_by(slower).aggregate.is_some());
    assert!(file.overridden_by(traced).aggregate.is_none());
}

#[test]
fn a_token_bucket_needs_all_three_of_its_keys() {
    let capacity = |text: &str| path(&format!("[down]\n{text}")).map(|path| path.down.capacity);
    let mbit = |mbit: u64| link::Rate::from_bits_per_second(mbit * 1_000_000);
    assert_eq!(
        capacity("rate = \"20mbit\"\nburst = \"2MB\"\npeak-rate = \"100mbit\""),
        Ok(Capacity::Shaper(Shaper {
            rate: mbit(20),
            burst: 2_000_000,
            peak: mbit(100),
        }))
    );
    for half in [
        "rate = \"20mbit\"\nburst = \"2MB\"",
        "burst = \"2MB\"\npeak-rate = \"100mbit\"",
        "steps = [\"0s 20mbit\"]\nburst = \"2MB\"",
    ] {
        let error = capacity(half).expect_err(half);
        assert_eq!(
            error.to_string(),
            "`down`: `burst` and `peak-rate` require each other and `rate`"
        );
    }
    let error = capacity("rate = \"20mbit\"\nburst = \"2MB\"\npeak-rate = \"10mbit\"");
    assert_eq!(
        error.expect_err("it is slower").to_string(),
        "`down.peak-rate`: `10mbit` (expected at least `rate`, 20mbit)"
    );
}

#[test]
fn keys_of_medium_and_radio_are_parsed() {
    let down = path("[down]\ncontention = \"20% 5ms\"\nwake-up = \"10s 60ms\"")
        .expect("a path")
        .down;
    let ms = Duration::from_millis;
    assert_eq!(
        down.contention,
        Some(Contention {
            share: 0.2,
            busy: ms(5)
        })
    );
    assert_eq!(
        down.wake_up,
        Some(WakeUp {
            after: ms(10_000),
            delay: ms(60)
        })
    );
    for wrong in [
        "contention = \"20%\"",
        "contention = \"120% 5ms\"",
        "contention = \"20% 0ms\"",
        "wake-up = \"10s\"",
        "wake-up = \"10 60ms\"",
    ] {
        assert!(path(&format!("[down]\n{wrong}")).is_err(), "{wrong}");
    }
}
