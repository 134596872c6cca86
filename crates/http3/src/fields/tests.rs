use super::*;

#[test]
fn fields_keep_their_order_and_their_bytes() {
    let mut fields = Fields::new().with("a", "1").with("b", [0xff, 0x20]);
    fields.push_sensitive("a", "2");
    assert_eq!(fields.len(), 3);
    assert_eq!(fields.get("a"), Some(&b"1"[..]));
    assert_eq!(fields.get("c"), None);
    let values: Vec<_> = fields.get_all("a").collect();
    assert_eq!(values, [b"1", b"2"]);
    let last = fields.iter().last().expect("three");
    assert!(last.is_sensitive && last.name == "a");
    assert_eq!(fields.section_size(), 3 * 32 + 3 + 4);
}

#[test]
fn pseudo_headers_are_not_among_the_fields() {
    let mut fields = Fields::new();
    fields.push_pseudo(":status", b"200");
    fields.push("server", "x");
    assert_eq!(fields.len(), 1);
    assert_eq!(fields.get(":status"), None);
    assert_eq!(fields.all().count(), 2);
}

#[test]
fn rfc9114_4_2_1_cookie_crumbs_are_joined() {
    let fields = Fields::new()
        .with("cookie", "a=b")
        .with("x", "y")
        .with("cookie", "c=d");
    let mut joined = Vec::new();
    assert!(fields.join("cookie", "; ", &mut joined));
    assert_eq!(joined, b"a=b; c=d");
    assert!(!fields.join("via", ", ", &mut joined));
}

#[test]
fn secrets_are_not_shown() {
    let mut fields = Fields::new();
    fields.push_sensitive("authorization", "hunter2");
    assert!(!format!("{fields:?}").contains("hunter2"));
}
