use super::*;

#[test]
fn a_request_belongs_to_the_most_specific_place() {
    let place = |text: &str| text.parse::<Place>().expect("a place");
    let sites = Sites::new(
        Some("fra1".into()),
        vec![
            (place("*.example.com"), "fra1-all".into()),
            (place("api.example.com"), "fra1-api".into()),
            (place("/upload"), "fra1-upload".into()),
        ],
    );
    for (authority, target, site) in [
        ("API.example.com:443", "/upload/1?x=/y", "fra1-api"),
        ("www.example.com", "/", "fra1-all"),
        ("example.com", "/upload", "fra1-upload"),
        ("example.com", "/uploads", "fra1"),
        ("", "", "fra1"),
    ] {
        let found = sites.of(authority, target).map(|site| &**site);
        assert_eq!(found, Some(site), "{authority}{target}");
    }
    assert_eq!(sites.fallback().map(|site| &**site), Some("fra1"));
    assert_eq!(Sites::default().of("a", "/"), None);
}
