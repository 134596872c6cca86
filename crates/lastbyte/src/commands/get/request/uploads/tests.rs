use super::*;

#[test]
fn forms_are_escaped_like_in_curl() {
    for (text, expected) in [
        ("a b+", "a+b%2B"),
        ("=a=b", "a%3Db"),
        ("name=a b&c", "name=a+b%26c"),
        ("name=", "name="),
        ("=", ""),
        ("é", "%C3%A9"),
    ] {
        let escaped = form(text).expect("no file");
        assert_eq!(String::from_utf8_lossy(&escaped), expected, "{text}");
    }
    assert_eq!(form("name@/nonexistent").map_err(|(code, _)| code), Err(26));
}

#[test]
fn several_data_options_are_joined() {
    let data = [
        Datum::Text("a=1".to_owned()),
        Datum::Raw("@b".to_owned()),
        Datum::Text(String::new()),
    ];
    assert_eq!(body(&data), Ok(Some(b"a=1&@b&".to_vec())));
    assert_eq!(body(&[]), Ok(None));
}
