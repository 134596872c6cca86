use super::*;

fn address(text: &str) -> SocketAddr {
    text.parse().expect(text)
}

#[test]
fn families_come_by_turns_and_each_address_once() {
    let found = [
        "[::1]:1",
        "[::2]:1",
        "[::2]:1",
        "1.0.0.1:1",
        "1.0.0.2:1",
        "[::3]:1",
    ];
    let sorted = in_turn(found.into_iter().map(address));
    let expected = ["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"];
    assert_eq!(sorted, expected.map(address));
}

fn origin(host: &str) -> Origin {
    Origin {
        scheme: crate::Scheme::Https,
        host: host.to_owned(),
        port: 4433,
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn begin(host: &str, family: Family, said: &[Override]) -> (Resolution, Vec<Family>) {
    let mut asked = Vec::new();
    let second = Duration::from_secs(1);
    let resolution = Resolution::begin(at(0), &origin(host), family, said, second, |family| {
        asked.push(family);
    });
    (resolution, asked)
}

#[test]
fn what_was_said_beforehand_goes_before_the_resolver() {
    let host = "no-such-name.invalid";
    let said = [Override {
        host: host.to_owned(),
        port: 4433,
        addresses: vec![address("127.0.0.9:0").ip(), address("[::9]:0").ip()],
    }];
    let (mut found, asked) = begin(host, Family::Ipv4, &said);
    assert!(asked.is_empty());
    assert!(matches!(found.state(at(0)), State::Found));
    assert_eq!(found.lookup.addresses, [address("127.0.0.9:4433")]);
    let any = [Override {
        host: "*".to_owned(),
        ..said[0].clone()
    }];
    let (found, asked) = begin("other.invalid", Family::Any, &any);
    assert_eq!((found.lookup.addresses.len(), asked.len()), (2, 0));
    let (_, asked) = begin("other.invalid", Family::Any, &said);
    assert_eq!(asked, [Family::Ipv6, Family::Ipv4]);
    let (mut none, asked) = begin("127.0.0.1", Family::Ipv6, &[]);
    assert!(asked.is_empty(), "it is an address itself");
    assert!(matches!(
        none.state(at(0)),
        State::Failed(Failure::Resolve(_))
    ));
}

/// RFC 8305 §3: what answers first is waited with for the other, but not for long.
#[test]
fn rfc8305_3_one_family_is_not_held_up_by_the_other() {
    let ip = |text: &str| Ok(vec![address(text).ip()]);
    let (mut one, _) = begin("a", Family::Any, &[]);
    assert!(matches!(one.state(at(10)), State::Waits(until) if until == at(1000)));
    one.on_answer(at(20), Family::Ipv4, ip("1.0.0.1:0"));
    assert!(matches!(one.state(at(20)), State::Waits(until) if until == at(70)));
    assert!(matches!(one.state(at(70)), State::Found));
    one.on_answer(at(80), Family::Ipv6, ip("[::1]:0"));
    let expected = [address("1.0.0.1:4433"), address("[::1]:4433")];
    assert_eq!(one.lookup.addresses, expected);
    assert_eq!(one.lookup.end, Some(at(70)));
    assert_eq!(one.lookup.aaaa.map(|answer| answer.at), Some(at(80)));

    let (mut both, _) = begin("a", Family::Any, &[]);
    both.on_answer(at(20), Family::Ipv4, Err("none".to_owned()));
    assert!(matches!(both.state(at(300)), State::Waits(_)));
    both.on_answer(at(301), Family::Ipv6, ip("[::1]:0"));
    assert!(matches!(both.state(at(301)), State::Found));

    let (mut none, _) = begin("a", Family::Any, &[]);
    none.on_answer(at(20), Family::Ipv4, Err("none".to_owned()));
    none.on_answer(at(21), Family::Ipv6, Ok(Vec::new()));
    assert!(matches!(
        none.state(at(21)),
        State::Failed(Failure::Resolve(_))
    ));
    let (mut silent, _) = begin("a", Family::Any, &[]);
    let late = silent.state(at(1000));
    assert!(matches!(late, State::Failed(Failure::ConnectTimeout(_))));
}
