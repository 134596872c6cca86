//! Paths of routes, by clients over each version of HTTP.

use std::sync::Arc;

use lastbyte_http3::Request;
use lastbyte_server::{FullResponse, Handler, HandlerResponse, Peer, routes::Routes};

use crate::{
    http3,
    limits::{DATA, get, http2, next_frame},
    serving::{Serving, settings},
};

/// Responds with its name.
struct Named(&'static str);

impl Handler for Named {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        FullResponse::text(200, self.0).into()
    }
}

#[test]
fn ambiguous_paths_reach_no_handler_over_any_version() {
    let routes = vec![(
        "/admin".parse().expect("a place"),
        Arc::new(Named("guard")) as Arc<dyn Handler>,
    )];
    let serving = Serving::start(settings(Routes::new(routes, Arc::new(Named("site")))));
    let dots = "The path has `.` or `..` segments\n";
    let ambiguous = "The path is ambiguous (expected no `//`, `;`, `\\` or encoded separators before a route)\n";
    for (path, expected) in [
        ("//admin/x", ambiguous),
        ("/%2fadmin/x", ambiguous),
        ("/admin;a=b/x", ambiguous),
        ("/admin%3b/x", ambiguous),
        ("/admin%5cx", ambiguous),
        ("/admin%00/x", "The path has a null byte\n"),
        ("/x/..%2fadmin", dots),
        ("/x/%2e%2e/admin", dots),
        ("/%61dmin/x", "guard"),
        ("/admin/a//b;c", "guard"),
        // Names of routes are case-sensitive.
        ("/ADMIN/x", "site"),
        ("/x//y;z", "site"),
    ] {
        let over_http1 = serving.get(path, "");
        assert_eq!(
            String::from_utf8_lossy(&over_http1.body),
            expected,
            "{path}"
        );
        let is_found = matches!(expected, "guard" | "site");
        assert_eq!(over_http1.status, if is_found { 200 } else { 400 });
        let mut client = http2(&serving);
        client.send(&get(1, path));
        let body = loop {
            let (kind, _, payload) = next_frame(&mut client, |_| true).expect("it stays open");
            if kind == DATA {
                break payload;
            }
        };
        assert_eq!(
            String::from_utf8_lossy(&body),
            expected,
            "{path} over HTTP/2"
        );
        let over_http3 = http3::get(&serving, path, &[]);
        let body = String::from_utf8_lossy(&over_http3.body);
        assert_eq!(body, expected, "{path} over HTTP/3");
    }
    serving.end();
}
