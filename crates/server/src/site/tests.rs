use super::*;

fn peer() -> Peer {
    Peer {
        remote: "192.0.2.1:5000".parse().expect("an address"),
        version: super::super::handler::Version::Http3,
        is_early: false,
    }
}

fn ask_with(site: &Site, method: &str, path: &str, fields: &[(&str, &str)]) -> FullResponse {
    let mut request = Request::new(method, "https", "localhost", path);
    for (name, value) in fields {
        request = request.with(name, value);
    }
    match site.handle(&request, &peer()) {
        HandlerResponse::Now(answer) => answer,
        HandlerResponse::After(_, later) => later(),
        HandlerResponse::Hinted(..) | HandlerResponse::Task(_) => {
            panic!("a site answers by itself")
        }
    }
}

fn ask(site: &Site, method: &str, path: &str) -> FullResponse {
    ask_with(site, method, path, &[])
}

fn field(answer: &FullResponse, name: &str) -> Option<String> {
    let value = answer.response.fields().get(name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn text(answer: &FullResponse) -> String {
    let mut bytes = vec![0; answer.body_len() as usize];
    if let Some(body) = &answer.body {
        body.read_at(0, &mut bytes).expect("it has them");
    }
    String::from_utf8(bytes).expect("text")
}

#[test]
fn an_object_has_the_length_in_its_name() {
    let site = Site::generated();
    for path in ["/32k", "/32k?x=1m"] {
        let answer = ask(&site, "GET", path);
        assert_eq!((answer.response.status(), answer.body_len()), (200, 32_768));
        assert_eq!(field(&answer, "content-length").as_deref(), Some("32768"));
    }
    let answer = ask(&site, "HEAD", "/32k");
    assert_eq!((answer.response.status(), answer.body_len()), (200, 0));
    assert_eq!(field(&answer, "content-length").as_deref(), Some("32768"));
    let tag = field(&answer, "etag").expect("a tag");
    let answer = ask_with(&site, "GET", "/32k", &[("if-none-match", &tag)]);
    assert_eq!((answer.response.status(), answer.body_len()), (304, 0));
    assert_eq!(field(&answer, "etag"), Some(tag));
}

#[test]
fn unknown_paths_are_404_and_other_methods_405() {
    let site = Site::generated();
    assert_eq!(ask(&site, "GET", "/nothing").response.status(), 404);
    assert_eq!(ask(&site, "HEAD", "/nothing").body_len(), 0);
    for method in ["POST", "DELETE", "get", "TRACE"] {
        let answer = ask(&site, method, "/1k");
        assert_eq!(answer.response.status(), 405, "{method}");
        let allowed = field(&answer, "allow");
        assert_eq!(allowed.as_deref(), Some("GET, HEAD, OPTIONS"));
    }
    for path in ["*", "/1k"] {
        let answer = ask(&site, "OPTIONS", path);
        assert_eq!((answer.response.status(), answer.body_len()), (204, 0));
        assert_eq!(
            field(&answer, "allow").as_deref(),
            Some("GET, HEAD, OPTIONS")
        );
    }
}

#[test]
fn a_directory_has_no_generated_objects_unless_asked_for() {
    let directory = Temporary::new("plain");
    let site = Site::directory(&directory.0).expect("a directory");
    for path in ["/1k", "/status/200", "/delay/1ms/1k"] {
        assert_eq!(ask(&site, "GET", path).response.status(), 404, "{path}");
        let site = site.clone().with_generated(true);
        assert_eq!(ask(&site, "GET", path).response.status(), 200, "{path}");
    }
}

/// A delayed request must not hold a descriptor for a minute.
#[test]
fn a_delayed_response_opens_its_file_after_the_delay() {
    let directory = Temporary::new("late");
    let site = Site::directory(&directory.0)
        .expect("a directory")
        .with_generated(true)
        .with_open_files(1);
    let request = Request::new("GET", "https", "localhost", "/delay/60s/late");
    let HandlerResponse::After(_, later) = site.handle(&request, &peer()) else {
        panic!("it is put off");
    };
    directory.file("late", "here by now");
    assert_eq!(text(&later()), "here by now");
}

#[test]
fn more_files_than_may_be_open_are_answered_with_503() {
    let directory = Temporary::new("many");
    for name in ["a", "b", "c"] {
        directory.file(name, name);
    }
    let site = Site::directory(&directory.0)
        .expect("a directory")
        .with_open_files(2);
    let held = ["/a", "/b", "/a", "/b"].map(|path| ask(&site, "GET", path));
    assert!(held.iter().all(|answer| answer.response.status() == 200));
    let refused = ask(&site, "GET", "/c");
    assert_eq!(refused.response.status(), 503);
    assert_eq!(field(&refused, "retry-after").as_deref(), Some("1"));
    drop(held);
    assert_eq!(text(&ask(&site, "GET", "/c")), "c");
}

#[test]
fn a_directory_without_a_slash_redirects_on_the_same_host() {
    let directory = Temporary::new("moved");
    let inner = directory.0.join("a b").join("c");
    std::fs::create_dir_all(inner).expect("room");
    let site = Site::directory(&directory.0).expect("a directory");
    for (path, expected) in [
        ("/a%20b", "/a%20b/"),
        ("/a%20b?x=/y", "/a%20b/?x=/y"),
        ("//a%20b", "/a%20b/"),
        ("/./a%20b//c", "/a%20b/c/"),
    ] {
        let answer = ask(&site, "GET", path);
        assert_eq!(answer.response.status(), 301, "{path}");
        assert_eq!(field(&answer, "location").as_deref(), Some(expected));
    }
}

#[test]
fn a_directory_is_listed_if_enabled() {
    let directory = Temporary::new("listed");
    std::fs::create_dir(directory.0.join("z")).expect("room");
    directory.file("<b>&.txt", "12345");
    directory.file("a:b?", "");
    directory.file(".hidden", "");
    let site = Site::directory(&directory.0).expect("a directory");
    assert_eq!(ask(&site, "GET", "/").response.status(), 404);
    let page = text(&ask(&site.clone().with_listings(true), "GET", "/"));
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}: {page}"));
    let folder = at("<a href=\"./z/\">z/</a>");
    let file =
        at("<a href=\"./%3Cb%3E&amp;.txt\">&lt;b&gt;&amp;.txt</a></td><td align=\"right\">5</td>");
    assert!(folder < file, "directories come first");
    at("<a href=\"./a:b%3F\">a:b?</a>");
    assert!(!page.contains("hidden") && !page.contains("../"));
    let page = text(&ask(&site.with_listings(true), "GET", "/z/"));
    assert!(
        page.contains("<h1>/z/</h1>") && page.contains("../"),
        "{page}"
    );
}

#[test]
fn compressed_siblings_are_sent_by_accept_encoding() {
    let directory = Temporary::new("coded");
    directory.file("f.js", "identity");
    directory.file("f.js.gz", "gzip");
    directory.file("f.js.br", "br");
    directory.file("plain.js", "plain");
    let site = Site::directory(&directory.0)
        .expect("a directory")
        .with_field("cache-control", "max-age=60");
    let get = |path, accepted: Option<&str>| {
        let fields: Vec<_> = accepted
            .map(|text| ("accept-encoding", text))
            .into_iter()
            .collect();
        let answer = ask_with(&site, "GET", path, &fields);
        assert_eq!(
            field(&answer, "cache-control").as_deref(),
            Some("max-age=60")
        );
        assert_eq!(
            field(&answer, "content-type").as_deref(),
            Some("text/javascript")
        );
        (
            text(&answer),
            field(&answer, "content-encoding"),
            field(&answer, "vary"),
            field(&answer, "etag"),
        )
    };
    let mut tags = Vec::new();
    for (accepted, expected) in [
        (None, "identity"),
        (Some("gzip, br"), "br"),
        (Some("gzip"), "gzip"),
    ] {
        let (text, coding, vary, tag) = get("/f.js", accepted);
        assert_eq!(text, expected);
        assert_eq!(
            coding.as_deref(),
            Some(expected).filter(|text| *text != "identity")
        );
        assert_eq!(vary.as_deref(), Some("accept-encoding"));
        tags.push(tag);
    }
    tags.dedup();
    assert_eq!(tags.len(), 3, "other bytes, other tags");
    assert_eq!(
        get("/plain.js", Some("br")).2,
        None,
        "it is always the same"
    );
}

#[test]
fn delays_and_statuses_follow_the_path() {
    let site = Site::generated();
    let delay = |path| {
        let request = Request::new("GET", "https", "localhost", path);
        match site.handle(&request, &peer()) {
            HandlerResponse::After(span, later) => {
                let answer = later();
                let (status, len) = (answer.response.status(), answer.body_len());
                Some((span.as_millis(), status, len))
            }
            HandlerResponse::Now(answer) => {
                assert_eq!(answer.response.status(), 404);
                None
            }
            HandlerResponse::Hinted(..) | HandlerResponse::Task(_) => {
                panic!("a site answers by itself")
            }
        }
    };
    assert_eq!(delay("/delay/50ms/1k"), Some((50, 200, 1024)));
    assert_eq!(delay("/delay/2s/status/503"), Some((2000, 503, 11)));
    assert_eq!(delay("/delay/0ms"), Some((0, 404, 10)));
    for path in [
        "/delay/61s/1k",
        "/delay/-1s/1k",
        "/delay/5/1k",
        "/delay/ms/1k",
        "/status/99",
        "/status/600",
        "/status/x",
    ] {
        assert_eq!(delay(path), None, "{path}");
    }
    for (path, status, len) in [
        ("/status/204", 204, 0),
        ("/status/304", 304, 0),
        ("/status/205", 205, 0),
    ] {
        let answer = ask(&site, "GET", path);
        assert_eq!((answer.response.status(), answer.body_len()), (status, len));
    }
}

#[test]
fn each_response_with_several_ranges_has_a_boundary_of_its_own() {
    let site = Site::generated();
    let content_type = || {
        let answer = ask_with(&site, "GET", "/1000", &[("range", "bytes=0-0,9-9")]);
        assert_eq!(answer.response.status(), 206);
        field(&answer, "content-type").expect("a type")
    };
    let types = [content_type(), content_type()];
    let start = "multipart/byteranges; boundary=";
    assert!(types.iter().all(|it| it.starts_with(start)), "{types:?}");
    assert_ne!(types[0], types[1]);
}
