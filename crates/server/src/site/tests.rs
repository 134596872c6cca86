use super::*;

fn ask(site: &Site, method: &str, path: &str) -> Answer {
    site.answer(&Request::new(method, "https", "localhost", path))
}

fn field(answer: &Answer, name: &str) -> Option<String> {
    let value = answer.response.fields().get(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[test]
fn an_object_is_as_long_as_its_name_says() {
    let site = Site::generated();
    for path in ["/32k", "/32k?x=1m"] {
        let answer = ask(&site, "GET", path);
        assert_eq!((answer.response.status(), answer.body_len), (200, 32_768));
        assert_eq!(field(&answer, "content-length").as_deref(), Some("32768"));
    }
    let answer = ask(&site, "HEAD", "/32k");
    assert_eq!((answer.response.status(), answer.body_len), (200, 0));
    assert_eq!(field(&answer, "content-length").as_deref(), Some("32768"));
    assert!(matches!(answer.body, Body::Empty));
}

#[test]
fn what_is_not_there_is_404_and_other_methods_are_405() {
    let site = Site::generated();
    assert_eq!(ask(&site, "GET", "/x").response.status(), 404);
    let answer = ask(&site, "POST", "/32k");
    assert_eq!(answer.response.status(), 405);
    assert_eq!(field(&answer, "allow").as_deref(), Some("GET, HEAD"));
}
