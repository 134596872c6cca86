use clap::Parser;

use core::net::IpAddr;

use super::*;
use crate::commands::credentials::pin;

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
fn resolve_accepts_addresses_of_both_families() {
    let found = resolve("Example.com:8443:127.0.0.1,[::1]").expect("a place");
    assert_eq!((&*found.host, found.port), ("example.com", 8443));
    let expected = ["127.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().expect("an address"));
    assert_eq!(found.addresses, expected);
    let found = resolve("[::2]:443:::1").expect("a place");
    assert_eq!((&*found.host, found.port), ("::2", 443));
    for wrong in [
        "example.com",
        "example.com:443",
        "example.com:443:there",
        "a:b:127.0.0.1",
    ] {
        assert!(resolve(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn request_bodies_keep_the_order_of_the_command_line() {
    let words = ["-d", "a=1", "-d", "d", "--data-binary", "@e", "u"];
    let expected = [
        Datum::Text("a=1".to_owned()),
        Datum::Text("d".to_owned()),
        Datum::Binary("@e".to_owned()),
    ];
    assert_eq!(parse(&words).request.data.0, expected);
}

#[test]
fn pins_and_wildcards_are_checked() {
    let good = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    assert_eq!(pin(good), Ok(good.to_owned()));
    for wrong in ["", "x", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF=="] {
        assert!(pin(wrong).is_err(), "{wrong}");
    }
    let any = resolve("*:443:127.0.0.1").expect("a place");
    assert_eq!(any.host, "*");
}

#[test]
fn connect_to_is_parsed_as_in_curl() {
    let text = |text: &str| Some(text.to_owned());
    let found = connect_to("A.example:443:[::1]:8443").expect("a redirection");
    let expected = ConnectTo {
        host: text("a.example"),
        port: Some(443),
        to_host: text("::1"),
        to_port: Some(8443),
    };
    assert_eq!(found, expected);
    let nothing = ConnectTo {
        host: None,
        port: None,
        to_host: None,
        to_port: None,
    };
    assert_eq!(connect_to(":::"), Ok(nothing));
    for wrong in ["a:1:b", "a:x:b:1", "a:1:b:70000", "a:1:b:2:3"] {
        assert!(connect_to(wrong).is_err(), "{wrong}");
    }
}
