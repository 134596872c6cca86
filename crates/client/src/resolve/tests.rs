use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect(text)
}

#[test]
fn families_are_interleaved_without_duplicates() {
    let found = [
        "[::1]:1",
        "[::2]:1",
        "[::2]:1",
        "1.0.0.1:1",
        "1.0.0.2:1",
        "[::3]:1",
    ];
    let sorted = interleave(found.into_iter().map(address));
    let expected = ["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"];
    assert_eq!(sorted, expected.map(address));
}

fn origin(host: &str) -> Origin {
    Origin {
        scheme: crate::url::Scheme::Https,
        host: host.to_owned(),
        port: 4433,
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn start(host: &str, family: Family, overrides: &[Override]) -> (Resolution, Vec<Family>) {
    let mut queried = Vec::new();
    let second = Duration::from_secs(1);
    let origin = origin(host);
    let resolution = Resolution::start(at(0), &origin, family, overrides, second, false, |what| {
        if let Query::Addresses(family) = what {
            queried.push(family);
        }
    });
    (resolution, queried)
}

#[test]
fn fixed_addresses_take_precedence_over_the_resolver() {
    let host = "no-such-name.invalid";
    let overrides = [Override {
        host: host.to_owned(),
        port: 4433,
        addresses: vec![address("127.0.0.9:0").ip(), address("[::9]:0").ip()],
    }];
    let (mut found, queried) = start(host, Family::Ipv4, &overrides);
    assert!(queried.is_empty());
    assert!(matches!(found.state(at(0)), State::Found));
    assert_eq!(found.lookup.addresses, [address("127.0.0.9:4433")]);
    let any = [Override {
        host: "*".to_owned(),
        ..overrides[0].clone()
    }];
    let (found, queried) = start("other.invalid", Family::Any, &any);
    assert_eq!((found.lookup.addresses.len(), queried.len()), (2, 0));
    let (_, queried) = start("other.invalid", Family::Any, &overrides);
    assert_eq!(queried, [Family::Ipv6, Family::Ipv4]);
    let (mut none, queried) = start("127.0.0.1", Family::Ipv6, &[]);
    assert!(queried.is_empty(), "an address is not resolved");
    assert!(matches!(
        none.state(at(0)),
        State::Failed(Failure::Resolve(_))
    ));
}

/// RFC 8305 §3: after the first answer, the other family is waited for, but only for the resolution delay.
#[test]
fn rfc8305_3_one_family_does_not_wait_long_for_the_other() {
    let ip = |text: &str| Ok(vec![address(text).ip()]);
    let (mut one, _) = start("a", Family::Any, &[]);
    assert!(matches!(one.state(at(10)), State::Pending(until) if until == at(1000)));
    one.on_answer(at(20), "a", Family::Ipv4, ip("1.0.0.1:0"));
    assert!(matches!(one.state(at(20)), State::Pending(until) if until == at(70)));
    assert!(matches!(one.state(at(70)), State::Found));
    one.on_answer(at(80), "a", Family::Ipv6, ip("[::1]:0"));
    let expected = [address("1.0.0.1:4433"), address("[::1]:4433")];
    assert_eq!(one.lookup.addresses, expected);
    assert_eq!(one.lookup.end, Some(at(70)));
    assert_eq!(one.lookup.aaaa.map(|answer| answer.at), Some(at(80)));

    let (mut both, _) = start("a", Family::Any, &[]);
    both.on_answer(at(20), "a", Family::Ipv4, Err("none".to_owned()));
    assert!(matches!(both.state(at(300)), State::Pending(_)));
    both.on_answer(at(301), "a", Family::Ipv6, ip("[::1]:0"));
    assert!(matches!(both.state(at(301)), State::Found));

    let (mut none, _) = start("a", Family::Any, &[]);
    none.on_answer(at(20), "a", Family::Ipv4, Err("none".to_owned()));
    none.on_answer(at(21), "a", Family::Ipv6, Ok(Vec::new()));
    assert!(matches!(
        none.state(at(21)),
        State::Failed(Failure::Resolve(_))
    ));
    let (mut silent, _) = start("a", Family::Any, &[]);
    let late = silent.state(at(1000));
    assert!(matches!(late, State::Failed(Failure::ConnectTimeout(_))));
}

/// A resolution with a query for the HTTPS record, and addresses at 20 ms.
fn with_services() -> Resolution {
    let mut queried = Vec::new();
    let second = Duration::from_secs(1);
    let mut this = Resolution::start(at(0), &origin("a"), Family::Any, &[], second, true, |it| {
        queried.push(it);
    });
    assert_eq!(queried.last(), Some(&Query::Services));
    this.on_answer(at(10), "a", Family::Ipv6, Ok(Vec::new()));
    this.on_answer(
        at(20),
        "a",
        Family::Ipv4,
        Ok(vec![address("1.0.0.1:0").ip()]),
    );
    this
}

fn service(target: Option<&str>) -> Service {
    Service {
        priority: 1,
        target: target.map(str::to_owned),
        port: Some(8443),
        alpn: vec!["h3".to_owned()],
        hints: vec![address("9.0.0.1:0").ip()],
    }
}

fn served(this: &Resolution) -> Vec<SocketAddr> {
    let all = this.endpoints().into_iter();
    all.flat_map(|(_, addresses)| addresses).collect()
}

#[test]
fn an_https_record_is_waited_for_until_the_resolution_delay() {
    let mut late = with_services();
    assert!(matches!(late.state(at(20)), State::Pending(until) if until == at(70)));
    assert!(matches!(late.state(at(70)), State::Found));
    assert_eq!(
        late.on_services(at(71), Some(Ok(vec![service(Some("b"))]))),
        [""; 0]
    );
    assert_eq!((served(&late), late.lookup.end), (Vec::new(), Some(at(70))));
    assert!(late.lookup.https.is_some(), "a late answer is reported");

    let mut good = with_services();
    assert_eq!(
        good.on_services(at(30), Some(Ok(vec![service(None)]))),
        [""; 0]
    );
    assert!(matches!(good.state(at(31)), State::Found));
    assert_eq!(good.lookup.end, Some(at(30)));
    assert_eq!(served(&good), [address("1.0.0.1:8443")]);

    for nothing in [None, Some(Err("refused".to_owned())), Some(Ok(Vec::new()))] {
        let mut none = with_services();
        none.on_services(at(5), nothing);
        assert!(matches!(none.state(at(21)), State::Found));
        assert_eq!((served(&none), none.lookup.end), (Vec::new(), Some(at(20))));
    }
}

/// RFC 9460 §7.3: resolved addresses of a target take precedence over hints.
#[test]
fn rfc9460_7_3_hints_are_used_until_a_target_is_resolved() {
    let mut slow = with_services();
    assert_eq!(
        slow.on_services(at(30), Some(Ok(vec![service(Some("b"))]))),
        ["b"]
    );
    assert!(matches!(slow.state(at(31)), State::Pending(until) if until == at(70)));
    assert!(matches!(slow.state(at(70)), State::Found));
    assert_eq!(served(&slow), [address("9.0.0.1:8443")]);

    let mut known = with_services();
    known.on_services(at(30), Some(Ok(vec![service(Some("b"))])));
    known.on_answer(
        at(35),
        "b",
        Family::Ipv4,
        Ok(vec![address("2.0.0.1:0").ip()]),
    );
    known.on_answer(at(36), "b", Family::Ipv6, Err("none".to_owned()));
    assert!(matches!(known.state(at(36)), State::Found));
    assert_eq!(served(&known), [address("2.0.0.1:8443")]);
    assert_eq!(
        known.lookup.addresses,
        [address("1.0.0.1:4433")],
        "unchanged"
    );
}

#[test]
fn a_host_without_addresses_can_be_reached_through_a_target() {
    let mut elsewhere = with_services();
    elsewhere.lookup.addresses.clear();
    elsewhere.on_services(at(25), Some(Ok(vec![service(Some("b"))])));
    elsewhere.on_answer(
        at(30),
        "b",
        Family::Ipv4,
        Ok(vec![address("2.0.0.1:0").ip()]),
    );
    elsewhere.on_answer(at(30), "b", Family::Ipv6, Ok(Vec::new()));
    assert!(matches!(elsewhere.state(at(30)), State::Found));
}

#[test]
fn connect_to_matches_host_and_port() {
    let text = |text: &str| Some(text.to_owned());
    let connect_to = [
        ConnectTo {
            host: text("a"),
            port: Some(1),
            to_host: text("unused"),
            to_port: None,
        },
        ConnectTo {
            host: text("a"),
            port: Some(4433),
            to_host: text("b"),
            to_port: Some(2),
        },
        ConnectTo {
            host: None,
            port: None,
            to_host: None,
            to_port: Some(3),
        },
    ];
    let at = |host| {
        let target = connect_target(&origin(host), &connect_to);
        (target.host, target.port)
    };
    assert_eq!(at("a"), ("b".to_owned(), 2));
    assert_eq!(at("c"), ("c".to_owned(), 3));
}

#[test]
fn rfc6761_6_3_localhost_is_never_queried() {
    let loopback = [address("[::1]:4433"), address("127.0.0.1:4433")];
    for host in ["localhost", "localhost.", "a.localhost", "a.b.localhost."] {
        let (mut found, queried) = start(host, Family::Any, &[]);
        assert!(queried.is_empty(), "{host}: {queried:?}");
        assert!(matches!(found.state(at(0)), State::Found), "{host}");
        assert_eq!(found.lookup.addresses, loopback, "{host}");
    }
    let (found, _) = start("localhost", Family::Ipv4, &[]);
    assert_eq!(found.lookup.addresses, loopback[1..]);
    for host in ["localhost.example", "nolocalhost", "localhost-1"] {
        let (_, queried) = start(host, Family::Any, &[]);
        assert_eq!(queried.len(), 2, "{host}");
    }
    let fixed = [Override {
        host: "a.localhost".to_owned(),
        port: 4433,
        addresses: vec![address("192.0.2.1:0").ip()],
    }];
    let (found, _) = start("a.localhost", Family::Any, &fixed);
    assert_eq!(found.lookup.addresses, [address("192.0.2.1:4433")]);
}
