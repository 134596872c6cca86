use super::*;

const NOW: Duration = Duration::from_secs(1_565_245_117);

fn origin() -> Origin {
    let url: crate::url::Url = "https://example.org/".parse().expect("a URL");
    url.origin().clone()
}

fn parsed(value: &str) -> Vec<(String, String, u16, u64)> {
    let mut cache = AltSvc::default();
    cache.put(&origin(), value, NOW);
    let all = cache.services.into_values().flatten();
    all.map(|it| (it.protocol, it.host, it.port, it.expires_s - NOW.as_secs()))
        .collect()
}

#[test]
fn rfc7838_3_fields_are_parsed() {
    let here = "example.org".to_owned();
    let h3 = "h3".to_owned();
    assert_eq!(
        parsed("h3=\":443\""),
        [(h3.clone(), here.clone(), 443, 86_400)]
    );
    assert_eq!(
        parsed("h3=\"alt.example:8443\"; ma=60; persist=1, h2=\":444\";ma=\"5\""),
        [
            (h3, "alt.example".to_owned(), 8443, 60),
            ("h2".to_owned(), here, 444, 5)
        ]
    );
    // Quoted pairs (RFC 9110 §5.6.4).
    assert_eq!(
        parsed("h3=\"\\a\\:443\"; x=\"a\\\",\"; ma=\"\\60\""),
        [("h3".to_owned(), "a".to_owned(), 443, 60)]
    );
    for invalid in [
        "",
        "h3",
        "h3=443",
        "h3=\":0\"",
        "h3=\":x\"",
        "h3=\":1\"; ma=x",
        "\"\"\",",
    ] {
        assert!(parsed(invalid).is_empty(), "{invalid}");
    }
}

#[test]
fn rfc7838_3_1_large_ages_are_limited_to_ten_years() {
    for age in [
        "315360000",
        "300000000000",
        "18446744073709551615",
        "99999999999999999999",
    ] {
        let mut cache = AltSvc::default();
        cache.put(&origin(), &format!("h3=\":443\"; ma={age}"), NOW);
        let ten_years = NOW + Duration::from_secs(MAX_AGE_MAX_S - 1);
        assert_eq!(cache.of(&origin(), "h3", ten_years).count(), 1, "{age}");
    }
}

#[test]
fn services_with_invalid_names_are_ignored() {
    for value in [
        "=\":443\"",
        "h3=\"a\tb:443\"",
        "h\u{e9}3=\":443\"",
        "h3=\"a\u{b}b:443\"",
    ] {
        assert_eq!(parsed(value), [], "{value}");
    }
}

#[test]
fn the_last_value_is_valid_until_it_expires() {
    let mut cache = AltSvc::default();
    cache.put(&origin(), "h3=\":1\"; ma=10", NOW);
    cache.put(&origin(), "h3=\":2\"; ma=10", NOW);
    let port = |cache: &AltSvc, passed: u64| {
        let now = NOW + Duration::from_secs(passed);
        cache.of(&origin(), "h3", now).map(|it| it.port).next()
    };
    assert_eq!(port(&cache, 9), Some(2));
    assert_eq!(port(&cache, 10), None);
    cache.put(&origin(), "not a value", NOW);
    assert_eq!(port(&cache, 0), Some(2));
    cache.put(&origin(), "clear", NOW);
    assert_eq!(port(&cache, 0), None);
}
