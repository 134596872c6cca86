use core::time::Duration;

use super::*;

/// A dash would be a file of this name.
#[test]
fn a_log_is_not_a_dash() {
    assert!(not_a_dash("-".into()).is_err_and(|error| error.contains("/dev/stdout")));
    assert_eq!(not_a_dash("a-".into()), Ok("a-".into()));
}

#[test]
fn listeners_that_cannot_be_bound_at_the_same_time_are_refused() {
    let check = |one: &str, two: &str| {
        let [one, two] = [one, two].map(|text| text.parse().ok());
        check_listeners(&[("--listen", one), ("--other", None), ("--metrics", two)])
    };
    for (one, two) in [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("0.0.0.0:1", "127.0.0.1:1"),
        ("127.0.0.1:1", "[::]:1"),
        ("[::ffff:127.0.0.1]:1", "127.0.0.1:1"),
    ] {
        let Err(Failure::Usage(error)) = check(one, two) else {
            panic!("{one} {two}");
        };
        let (one, two): (SocketAddr, SocketAddr) =
            (one.parse().expect("one"), two.parse().expect("two"));
        assert_eq!(
            error,
            format!("--metrics `{two}`: --listen has `{one}` (expected another port)")
        );
    }
    for (one, two) in [
        ("127.0.0.1:1", "127.0.0.1:2"),
        ("127.0.0.1:1", "127.0.0.2:1"),
        ("0.0.0.0:1", "[::1]:1"),
        ("127.0.0.1:0", "127.0.0.1:0"),
    ] {
        assert!(check(one, two).is_ok(), "{one} {two}");
    }
}

#[test]
fn a_port_alone_is_an_address() {
    for text in ["4433", ":4433"] {
        let any = any_by_default(text).map(|address| address.to_string());
        assert_eq!(any, Ok("[::]:4433".to_owned()));
        let loopback = loopback_by_default(text).map(|address| address.to_string());
        assert_eq!(loopback, Ok("127.0.0.1:4433".to_owned()));
    }
    let one = any_by_default("192.0.2.1:443").map(|address| address.to_string());
    assert_eq!(one, Ok("192.0.2.1:443".to_owned()));
    for text in ["", "localhost:4433", "70000", "4433x"] {
        let error = any_by_default(text).expect_err(text);
        assert!(
            error.contains("such as 127.0.0.1:4433 or [::]:4433"),
            "{error}"
        );
    }
}

#[test]
fn an_address_reaches_a_socket_that_is_bound_to_it_or_to_all_addresses() {
    let reaches = |to: &str, bound: &str| {
        let [to, bound] = [to, bound].map(|text| text.parse().expect("an address"));
        reaches(to, bound)
    };
    assert!(reaches("127.0.0.1:9", "127.0.0.1:9"));
    assert!(reaches("127.0.0.1:9", "[::]:9"));
    assert!(reaches("[::1]:9", "0.0.0.0:9"));
    assert!(reaches("[::ffff:127.0.0.1]:9", "127.0.0.1:9"));
    assert!(!reaches("127.0.0.1:9", "127.0.0.1:8"));
    assert!(!reaches("192.0.2.1:9", "[::]:9"));
    assert!(!reaches("127.0.0.2:9", "127.0.0.1:9"));
}

#[test]
fn a_time_limit_that_has_passed_at_once_is_refused() {
    for text in ["0s", "1ns", "99us"] {
        assert!(time_limit(text).is_err(), "{text}");
    }
    assert_eq!(time_limit("100us"), Ok(Duration::from_micros(100)));
}
