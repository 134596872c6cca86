use proptest::prelude::*;

use super::*;

const NOW: Duration = Duration::from_secs(1_800_000_000);

fn url(text: &str) -> Url {
    text.parse().expect(text)
}

fn jar(from: &str, values: &[&str]) -> CookieJar {
    let mut jar = CookieJar::default();
    for value in values {
        jar.put(&url(from), value, NOW);
    }
    jar
}

fn sent(jar: &CookieJar, to: &str) -> String {
    jar.header(&url(to), NOW).unwrap_or_default()
}

#[test]
fn rfc6265_5_1_3_domains_match_as_suffixes_at_dots() {
    let own = jar("https://a.example/", &["x=1"]);
    assert_eq!(sent(&own, "https://a.example/"), "x=1");
    assert_eq!(sent(&own, "https://b.a.example/"), "");
    let wide = jar("https://a.b.example/", &["x=1; Domain=.B.example"]);
    for host in [
        "b.example",
        "a.b.example",
        "c.b.example",
        "d.c.b.example:444",
    ] {
        assert_eq!(sent(&wide, &format!("https://{host}/")), "x=1", "{host}");
    }
    for host in ["example", "xb.example", "b.example.org"] {
        assert_eq!(sent(&wide, &format!("https://{host}/")), "", "{host}");
    }
    for (from, domain) in [
        ("a.example", "b.example"),
        ("a.example", "b.a.example"),
        ("a.example", "example"),
        ("127.0.0.1", "0.0.1"),
        ("127.0.0.1", "127.0.0.2"),
    ] {
        let value = format!("x=1; domain={domain}");
        assert!(
            jar(&format!("https://{from}/"), &[&value]).is_empty(),
            "{domain}"
        );
    }
    let address = jar("https://127.0.0.1/", &["x=1; domain=127.0.0.1"]);
    assert_eq!(sent(&address, "https://127.0.0.1/"), "x=1");
}

#[test]
fn rfc6265_5_1_4_paths_match_at_slashes_and_the_longest_is_first() {
    let jar = jar(
        "https://a.example/b/c?d=/e",
        &[
            "own=1",
            "root=2; path=/",
            "folder=3; Path=/b/c",
            "odd=4; path=b",
        ],
    );
    assert_eq!(
        sent(&jar, "https://a.example/b/c/d"),
        "folder=3; own=1; odd=4; root=2"
    );
    assert_eq!(sent(&jar, "https://a.example/b/cc"), "own=1; odd=4; root=2");
    assert_eq!(sent(&jar, "https://a.example/b"), "own=1; odd=4; root=2");
    assert_eq!(sent(&jar, "https://a.example/bb"), "root=2");
}

#[test]
fn rfc6265_5_3_cookies_expire_and_are_replaced() {
    let from = "https://a.example/";
    let later = NOW + Duration::from_secs(61);
    let mut cookies = jar(
        from,
        &[
            "a=1; max-age=60",
            "b=1; expires=Fri, 01 Jan 2100 00:00:00 GMT; Max-Age=60",
            "c=1; expires=Fri, 01-Jan-2100 00:00:00 GMT",
            "d=1",
            "e=1; expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "f=1; max-age=x; expires=never",
        ],
    );
    assert_eq!(sent(&cookies, from), "a=1; b=1; c=1; d=1; f=1");
    let header = cookies.header(&url(from), later);
    assert_eq!(header.as_deref(), Some("c=1; d=1; f=1"));
    cookies.put(&url(from), "d=2", NOW);
    cookies.put(&url(from), "a=; max-age=0", NOW);
    cookies.put(&url(from), "f=; max-age=-1", NOW);
    assert_eq!(sent(&cookies, from), "b=1; c=1; d=2");
    cookies.end_session();
    assert_eq!(sent(&cookies, from), "b=1; c=1");
}

#[test]
fn rfc6265bis_secure_cookies_are_only_sent_over_secure_connections() {
    let (safe, clear) = ("https://a.example/", "http://a.example/");
    let mut both = jar(safe, &["s=1; Secure; HttpOnly", "t=1"]);
    assert_eq!(sent(&both, safe), "s=1; t=1");
    assert_eq!(sent(&both, clear), "t=1");
    assert!(jar(clear, &["s=1; secure"]).is_empty());
    both.put(&url(clear), "s=forged", NOW);
    assert_eq!(sent(&both, safe), "s=1; t=1");
    // A connection to this machine counts as secure.
    let here = jar("http://localhost:8080/", &["s=1; secure"]);
    assert_eq!(sent(&here, "http://localhost:8081/"), "s=1");
    for (value, is_kept) in [
        ("__Secure-a=1", false),
        ("__Secure-a=1; secure", true),
        ("__Host-a=1; secure", false),
        ("__Host-a=1; secure; path=/", true),
        ("__Host-a=1; secure; path=/; domain=a.example", false),
    ] {
        let jar = jar("https://a.example/b/", &[value]);
        assert_eq!(!jar.is_empty(), is_kept, "{value}");
    }
}

#[test]
fn invalid_cookies_are_ignored() {
    let long = format!("a={}", "x".repeat(4096));
    let from = "https://a.example/";
    assert!(jar(from, &["", "a", "=b", "a=\tb", "a=\u{1}", &long]).is_empty());
    let odd = jar(from, &[" a = b c ; path", "e=\"q\"; ;secure=x"]);
    assert_eq!(sent(&odd, from), "a=b c; e=\"q\"");
}

#[test]
fn the_file_has_the_netscape_format() {
    let mut jar = jar(
        "https://a.b.example/c/d",
        &[
            "own=1",
            "all=2; domain=b.example; path=/; secure; httponly; max-age=60",
        ],
    );
    let text = jar.to_text(NOW);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains('\t')).collect();
    let expected = [
        "a.b.example\tFALSE\t/c/\tFALSE\t0\town\t1",
        "#HttpOnly_.b.example\tTRUE\t/\tTRUE\t1800000060\tall\t2",
    ];
    assert_eq!(lines, expected);
    let mut again = CookieJar::default();
    assert_eq!(again.read(&text, NOW), 0);
    assert_eq!(again, jar);
    let lines = "a.example\tFALSE\t/\tFALSE\t0\tempty\n# remark\n\nnothing\n\
                 a.example\tyes\t/\tFALSE\t0\ta\tb\na.example\tFALSE\t/\tFALSE\t5\told\tb\r\n\
                 a.example\tFALSE\t/\tFALSE\t0\tfolded\tb\rset: c\n";
    assert_eq!(again.read(lines, NOW), 3);
    assert_eq!(again.len(), 3);
    jar.put(&url("https://a.b.example/c/"), "own=; max-age=0", NOW);
    assert_eq!(jar.len(), 1);
}

/// As browser extensions write it.
#[test]
fn the_file_may_have_small_letters_and_fractions_of_seconds() {
    let mut read = CookieJar::default();
    let lines =
        "a.example\tfalse\t/\tTrue\t1800000060.25\ta\tb\na.example\tfalse\t/\tfalse\tx.1\tc\td\n";
    assert_eq!(read.read(lines, NOW), 1);
    let text = read.to_text(NOW);
    assert!(
        text.contains("a.example\tFALSE\t/\tTRUE\t1800000060\ta\tb\n"),
        "{text}"
    );
}

#[test]
fn the_number_of_cookies_is_bounded() {
    let mut jar = CookieJar::default();
    for number in 0..4000 {
        let from = url(&format!("https://h{}.example/", number % 30));
        jar.put(&from, &format!("c{number}={}", "x".repeat(200)), NOW);
    }
    assert_eq!(jar.len(), COOKIES_MAX);
    let sent = sent(&jar, "https://h1.example/");
    assert!(
        sent.len() <= SENT_LEN_MAX && sent.len() > 7000,
        "{}",
        sent.len()
    );
    for number in 0..400 {
        jar.put(&url("https://one.example/"), &format!("d{number}=1"), NOW);
    }
    let of_one = jar.cookies.iter().filter(|it| it.domain == "one.example");
    assert_eq!(of_one.count(), PER_DOMAIN_MAX);
}

proptest! {
    /// The file round-trips for arbitrary values.
    #[test]
    fn arbitrary_cookies_round_trip_through_the_file(values in prop::collection::vec("[ -~\\t]{0,60}", 0..20)) {
        let mut jar = CookieJar::default();
        for value in &values {
            jar.put(&url("https://a.example/b/c"), value, NOW);
            jar.put(&url("https://a.example/"), &format!("{value}; domain=a.example; secure"), NOW);
        }
        let mut again = CookieJar::default();
        prop_assert_eq!(again.read(&jar.to_text(NOW), NOW), 0);
        prop_assert_eq!(again, jar);
    }
}
