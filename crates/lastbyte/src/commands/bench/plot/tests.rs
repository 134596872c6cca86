use super::*;

#[test]
fn the_command_has_no_secrets() {
    let of = |words: &[&str]| command_of(words.iter().map(OsString::from));
    assert_eq!(
        of(&["bench", "-H", "accept: a b"]),
        "lastbyte bench -H 'accept: a b'"
    );
    for words in [
        &["bench", "-H", "Authorization: Bearer secret", "https://a/"][..],
        &["bench", "-kHCookie:a=secret", "https://a/"],
        &["bench", "--header=proxy-authorization:secret", "https://a/"],
    ] {
        let command = of(words);
        assert!(!command.contains("secret"), "{command}");
        assert!(command.ends_with("…' https://a/"), "{command}");
    }
}
