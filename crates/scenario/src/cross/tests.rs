use super::*;

fn parse(text: &str) -> Result<CrossTraffic, SettingError> {
    CrossTraffic::parse(text, &Registry::builtin())
}

#[test]
fn each_kind_of_cross_traffic_is_parsed() {
    let traffic = parse("cubic").expect("a flow");
    assert!(matches!(traffic.kind, CrossKind::Bulk(_)));
    assert_eq!(
        (traffic.direction, traffic.rtt, traffic.start),
        (Direction::Down, None, Duration::ZERO)
    );
    let traffic = parse("bbr up rtt 120ms start 2s").expect("a flow");
    assert!(matches!(traffic.kind, CrossKind::Bulk(_)));
    assert_eq!(traffic.direction, Direction::Up);
    assert_eq!(traffic.rtt, Some(Duration::from_millis(120)));
    assert_eq!(traffic.start, Duration::from_secs(2));
    let traffic = parse("stack:cubic:initial-window=10p rtt 80ms").expect("a connection");
    assert!(matches!(traffic.kind, CrossKind::Stack(_)));
    let traffic = parse("pages:cubic 300kB 2s up").expect("pages");
    let CrossKind::Pages(_, pages) = traffic.kind else {
        panic!("{traffic:?}");
    };
    assert_eq!(
        pages,
        Pages {
            bytes: 300_000,
            every: Duration::from_secs(2)
        }
    );
    let traffic = parse("cbr:5mbit start 1s").expect("a rate");
    assert!(matches!(traffic.kind, CrossKind::Constant(_)));
    let traffic = parse("poisson:bbr 60% of web up").expect("arrivals");
    assert!(matches!(traffic.kind, CrossKind::Arrivals(_, of) if (of.load - 0.6).abs() < 1e-9));
    assert_eq!(traffic.direction, Direction::Up);
    assert_eq!(traffic.hops, None);
    for (text, hops) in [("hop 2", 1..=1), ("hop 1-3", 0..=2), ("hop 255", 254..=254)] {
        let traffic = parse(&format!("cubic {text}")).expect(text);
        assert_eq!(traffic.hops, Some(hops));
    }
}

#[test]
fn errors_of_cross_traffic_name_what_is_expected() {
    for (text, says) in [
        ("", "control ``"),
        ("cubix", "did you mean `cubic`?"),
        ("cbr:5", "`5` (expected a rate"),
        ("pages:cubic", "`pages` without a size"),
        ("pages:cubic 300kB", "`pages` without a span"),
        ("pages:cubic 300kB 0s", "an interval of 0"),
        (
            "poisson:cubic",
            "arrivals without a load (expected `LOAD of SIZES`",
        ),
        ("poisson:cubic 0% of web", "a load of 0"),
        ("poisson:cubic 60% of 0", "a size of 0"),
        ("poisson:cubic 60% web", "arrivals without sizes"),
        ("poisson:cubic 60% of", "arrivals without sizes"),
        ("poisson:cubic 60% of large", "`large` (expected"),
        ("poisson:cubic 60% of web fast", "`fast` (expected `up`"),
        ("cubic rtt", "`rtt` without a span"),
        ("cubic rtt fast", "`fast` (expected"),
        ("cubic down", "`down` (expected `up`"),
        ("stack:cubic up", "exclude each other"),
        ("stack:cubic hop 1", "`stack` and `hop` exclude each other"),
        ("cubic hop", "`hop` without a number"),
        ("cubic hop 0", "hop `0` (expected a number from 1"),
        ("cubic hop 2-1", "hop `2-1` (expected"),
        ("cubic hop 2-", "hop `2-` (expected"),
        ("cubic hop 256", "hop `256` (expected"),
        ("cubic hop up", "hop `up` (expected"),
    ] {
        let error = parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    let error = CrossKind::parse("cubic up", &Registry::builtin())
        .expect_err("no kind")
        .to_string();
    assert!(error.contains("`up` (expected"), "{error}");
}
