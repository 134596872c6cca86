use core::time::Duration;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::{
    budget::{Budget, Limits},
    exchange::{ResponsePart, exchange},
    handler::Version,
};

fn peer() -> Peer {
    Peer {
        remote: "192.0.2.1:5000".parse().expect("an address"),
        version: Version::Http3,
        is_early: false,
    }
}

/// Responds with its name, at once or from a task.
struct Named(&'static str, Kind);

/// When it responds.
#[derive(Clone, Copy)]
enum Kind {
    Now,
    After,
    Task,
}

impl Handler for Named {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let answer = FullResponse::text(200, self.0);
        match self.1 {
            Kind::Now => answer.into(),
            Kind::After => HandlerResponse::After(Duration::ZERO, Box::new(|| answer)),
            Kind::Task => HandlerResponse::Task(Box::new(move |exchange| {
                let mut outgoing = Box::pin(exchange.outgoing.respond(answer));
                let context = &mut Context::from_waker(Waker::noop());
                let sent = Future::poll(outgoing.as_mut(), context);
                assert!(sent.is_ready());
            })),
        }
    }
}

fn routes(places: &[&'static str]) -> Routes {
    let handler = |name| Arc::new(Named(name, Kind::Now)) as Arc<dyn Handler>;
    let routes = places.iter().map(|place| {
        let parsed = place.parse().expect("a place");
        (parsed, handler(place))
    });
    Routes::new(routes.collect(), handler("fallback"))
}

/// The status and text of the response.
fn ask(routes: &Routes, authority: &str, path: &str) -> (u16, String) {
    let request = Request::new("GET", "https", authority, path);
    let HandlerResponse::Now(answer) = routes.handle(&request, &peer()) else {
        panic!("an answer");
    };
    let mut text = vec![0; answer.body_len() as usize];
    let body = answer.body.as_ref().expect("a text");
    body.read_at(0, &mut text).expect("it has them");
    let text = String::from_utf8(text).expect("text");
    (answer.response.status(), text)
}

#[test]
fn the_most_specific_place_answers_whatever_the_order() {
    let mut places = [
        "/",
        "/api",
        "/api/v2",
        "*.example.com",
        "*.b.example.com",
        "a.example.com",
        "a.example.com/api",
    ];
    for _ in 0..2 {
        let routes = routes(&places);
        for (authority, path, expected) in [
            ("other", "/x", "/"),
            ("other", "/api", "/api"),
            ("other", "/api?x=/api/v2", "/api"),
            ("other", "/apix", "/"),
            ("other", "/api/v2/x", "/api/v2"),
            ("a.example.com", "/", "a.example.com"),
            ("A.Example.COM.:4433", "/api/", "a.example.com/api"),
            ("a.example.com", "/%61pi", "a.example.com/api"),
            ("x.example.com", "/api", "*.example.com"),
            ("x.b.example.com:443", "/", "*.b.example.com"),
            ("example.com", "/", "/"),
            ("[2001:db8::1]:443", "/api", "/api"),
        ] {
            let answer = ask(&routes, authority, path);
            assert_eq!(answer, (200, expected.to_owned()), "{authority}{path}");
        }
        places.reverse();
    }
    assert_eq!(ask(&routes(&["a"]), "b", "/").1, "fallback");
    assert_eq!(
        ask(&routes(&["[2001:db8::1]"]), "[2001:db8::1]:443", "/").1,
        "[2001:db8::1]"
    );
}

/// A server behind a route may resolve them, and then serve the paths of another route.
#[test]
fn dot_segments_do_not_cross_routes() {
    let routes = routes(&["/open", "/secret"]);
    for path in [
        "/open/../secret",
        "/open/%2e%2e/secret",
        "/open/..;/secret",
        "/./secret",
    ] {
        assert_eq!(ask(&routes, "a", path).0, 400, "{path}");
    }
    assert_eq!(ask(&routes, "a", "/secret..x/y").1, "fallback");
}

/// Servers merge slashes, drop parameters, or take `\` and encoded separators for slashes, and others do not.
#[test]
fn paths_that_servers_read_as_different_routes_are_refused() {
    let routes = routes(&["/admin", "/a", "/a/b", "x.example/only"]);
    for path in [
        "//admin/x",
        "/%2fadmin/x",
        "/%2Fadmin/x",
        "/admin%2fx",
        "/admin;a=b/x",
        "/admin;",
        "/admin%3b/x",
        "/admin%5cx",
        "/admin\\x",
        "\\admin/x",
        "/;/admin",
        "/x/..%2fadmin",
        "/a//b",
        "/a;x/b",
        "/a%3bx/b",
        "/a/;/b",
        // A parameter with a separator, which is dropped before it is decoded.
        "/;%2fx/admin",
        "/;%5cx/admin",
        "/a;%2fx/b",
        "/admin%00/x",
        "/x%00",
    ] {
        assert_eq!(ask(&routes, "host", path).0, 400, "{path}");
    }
    for (path, expected) in [
        ("/%61dmin/x", "/admin"),
        ("/admin/", "/admin"),
        // Whatever a server makes of these, they stay in one route.
        ("/admin//x", "/admin"),
        ("/admin/x;a=b", "/admin"),
        ("/admin/group%2fproject", "/admin"),
        ("/x//admin", "fallback"),
        ("/x;a=b/c", "fallback"),
        ("/group%2fproject", "fallback"),
        ("/x?y=//admin;%2f%00", "fallback"),
        ("/a/b//c", "/a/b"),
        ("/only//x", "fallback"),
        // As documented.
        ("/ADMIN/x", "fallback"),
        ("/%252fadmin", "fallback"),
        ("*", "fallback"),
    ] {
        let answer = ask(&routes, "host", path);
        assert_eq!(answer, (200, expected.to_owned()), "{path}");
    }
    assert_eq!(ask(&routes, "x.example", "//only").0, 400);
}

#[test]
fn invalid_places_are_refused() {
    let long = format!("/{}", "x".repeat(PLACE_LEN_MAX));
    for text in [
        "", "a b", "a:443", "*", "*a", "a.*", "*.", "/a%20", "/a/../b", "/a?b", "a//b", &long,
    ] {
        let error = text.parse::<Place>().expect_err(text).to_string();
        assert!(error.contains("expected"), "{error}");
    }
}

/// The parts of the response to a request for `path`.
fn hinted(path: &str, kind: Kind) -> Vec<(u16, usize)> {
    let link = |path: &str| (path.to_owned(), "</a.css>; rel=preload".to_owned());
    let handler = Arc::new(Named("slow", kind));
    let hints = Hints::new([link("/a"), link("/a"), link("/b")], handler);
    let request = Request::new("GET", "https", "a", path);
    let of = |response: &Response| {
        let links = response.fields().iter().filter(|line| line.name == "link");
        (response.status(), links.count())
    };
    match hints.handle(&request, &peer()) {
        HandlerResponse::Now(answer) => vec![of(&answer.response)],
        HandlerResponse::After(_, later) => vec![of(&later().response)],
        HandlerResponse::Hinted(hint, _, later) => vec![of(&hint), of(&later().response)],
        HandlerResponse::Task(task) => {
            let budget = Budget::new(Limits::default()).connection();
            let (exchange, channels) = exchange(&budget);
            task(exchange);
            let context = &mut Context::from_waker(Waker::noop());
            let mut parts = Vec::new();
            while let Poll::Ready(Some(part)) = channels.outgoing.poll_next(context) {
                parts.push(match part {
                    ResponsePart::Interim(response) => of(&response),
                    ResponsePart::Whole(answer) => of(&answer.response),
                    _ => panic!("a whole answer"),
                });
            }
            parts
        }
    }
}

/// RFC 8297 §2.
#[test]
fn hints_precede_a_slow_response_and_are_part_of_one_known_at_once() {
    assert_eq!(hinted("/a?x", Kind::Task), [(103, 2), (200, 0)]);
    assert_eq!(hinted("/a", Kind::After), [(103, 2), (200, 2)]);
    assert_eq!(hinted("/a", Kind::Now), [(200, 2)]);
    assert_eq!(hinted("/c", Kind::Task), [(200, 0)]);
    assert_eq!(hinted("/c", Kind::After), [(200, 0)]);
}

#[test]
fn requests_have_the_index_of_the_name_of_their_route() {
    let places = ["www.example.com/a", "/a", "*.example.com", "/"];
    let routes = routes(&places);
    let hints = Hints::new([], Arc::new(routes));
    let names = hints.routes();
    assert_eq!(names.first().map(String::as_str), Some("*"));
    let mut sorted = names[1..].to_vec();
    sorted.sort();
    assert_eq!(sorted, ["*.example.com", "/", "/a", "www.example.com/a"]);
    let name_of = |authority, path| {
        let request = Request::new("GET", "https", authority, path);
        let (_, route) = hints.handle_routed(&request, &peer());
        names[route].as_str()
    };
    assert_eq!(name_of("www.example.com", "/a/b"), "www.example.com/a");
    assert_eq!(name_of("x.example.com", "/b"), "*.example.com");
    assert_eq!(name_of("other", "/a"), "/a");
    assert_eq!(name_of("other", "/../a"), "*", "it is refused");
}
