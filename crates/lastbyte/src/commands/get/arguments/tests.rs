use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

fn parse(words: &[&str]) -> Arguments {
    let words = ["get"].iter().chain(words);
    Line::try_parse_from(words).expect("good usage").arguments
}

#[test]
fn outputs_keep_the_order_of_the_command_line() {
    let arguments = parse(&["a", "-o", "x", "-O", "b", "c", "--output", "-", "d"]);
    let expected = [Output::File("x".into()), Output::RemoteName, Output::Stdout];
    assert_eq!(arguments.outputs.0, expected);
    assert_eq!(arguments.urls, ["a", "b", "c", "d"]);
}

#[test]
fn spans_without_a_unit_are_seconds() {
    assert_eq!(span("1.5"), Ok(Duration::from_millis(1500)));
    assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
    assert!(span("-1").is_err());
    assert!(span("soon").is_err());
}

#[test]
fn places_of_hosts_have_both_families() {
    let found = resolve("Example.com:8443:127.0.0.1,[::1]").expect("a place");
    assert_eq!(found.origin.to_string(), "example.com:8443");
    let expected = ["127.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
    assert_eq!(found.addresses, expected);
    let found = resolve("[::2]:443:::1").expect("a place");
    assert_eq!((&*found.origin.host, found.origin.port), ("::2", 443));
    for wrong in [
        "example.com",
        "example.com:443",
        "example.com:443:there",
        "a:b:127.0.0.1",
    ] {
        assert!(resolve(wrong).is_err(), "{wrong}");
    }
}
