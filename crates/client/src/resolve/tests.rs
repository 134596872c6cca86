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

#[test]
fn what_was_said_beforehand_goes_before_the_resolver() {
    let origin = Origin {
        host: "no-such-name.invalid".to_owned(),
        port: 4433,
    };
    let said = [Override {
        origin: origin.clone(),
        addresses: vec![address("127.0.0.9:0").ip(), address("[::9]:0").ip()],
    }];
    let second = Duration::from_secs(1);
    let found = resolve(&origin, Family::Ipv4, &said, second).expect("an address");
    assert_eq!(found, [address("127.0.0.9:4433")]);
    let none = resolve(&origin, Family::Ipv6, &said[..0], Duration::from_secs(5));
    assert!(matches!(none, Err(Failure::Resolve(_))), "{none:?}");
}
