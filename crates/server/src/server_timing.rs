//! The `Server-Timing` field (W3C Server Timing §2), for responses of another handler.
//!
//! Times of a server can reveal what it does for others, such as whether something is cached. So no response has the field
//! unless the server is configured to send it: to all clients, or to those whose request has a certain field. A field of the
//! upstream server is kept, and this one follows it.

use std::{fmt, fmt::Write as _, sync::Arc, time::Duration};

use lastbyte_driver::Clock;
use lastbyte_http3::{Request, Response};
use lastbyte_quic::Time;

use crate::handler::{FullResponse, Handler, HandlerResponse, Peer};

/// The requests whose responses have the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    /// All.
    All,
    /// Those with a field of this name, in lower case, and value.
    Field(String, String),
}

impl Asks {
    fn has(&self, request: &Request) -> bool {
        let Self::Field(name, expected) = self else {
            return true;
        };
        // Its time does not depend on how much of the value is right.
        let is_expected = |value: &[u8]| {
            aws_lc_rs::constant_time::verify_slices_are_equal(
                value.trim_ascii(),
                expected.as_bytes(),
            )
        };
        let mut values = request.fields().get_all(name);
        values.any(|value| is_expected(value).is_ok())
    }
}

/// A handler whose responses have the field.
pub struct ServerTiming {
    asks: Asks,
    clock: Clock,
    handler: Arc<dyn Handler>,
}

impl ServerTiming {
    /// For the responses of this handler.
    #[must_use]
    pub fn new(asks: Asks, handler: Arc<dyn Handler>) -> Self {
        Self {
            asks,
            clock: Clock::new(),
            handler,
        }
    }
}

impl fmt::Debug for ServerTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTiming").finish_non_exhaustive()
    }
}

impl Handler for ServerTiming {
    fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
        self.handle_routed(request, peer).0
    }

    fn takes_tunnel(&self, request: &Request) -> bool {
        self.handler.takes_tunnel(request)
    }

    fn routes(&self) -> &[String] {
        self.handler.routes()
    }

    fn handle_routed(&self, request: &Request, peer: &Peer) -> (HandlerResponse, usize) {
        if !self.asks.has(request) {
            return self.handler.handle_routed(request, peer);
        }
        let began = self.clock.now();
        let (reply, route) = self.handler.handle_routed(request, peer);
        let timer = Timer {
            clock: self.clock,
            began,
            route: self.handler.routes().get(route).cloned(),
        };
        let reply = match reply {
            HandlerResponse::Now(answer) => timer.stop(answer).into(),
            HandlerResponse::After(span, later) => {
                HandlerResponse::After(span, Box::new(move || timer.stop(later())))
            }
            HandlerResponse::Hinted(hint, span, later) => {
                HandlerResponse::Hinted(hint, span, Box::new(move || timer.stop(later())))
            }
            HandlerResponse::Task(task) => HandlerResponse::Task(Box::new(move |mut exchange| {
                exchange
                    .outgoing
                    .amend(move |response, notes| timer.add_to(response, notes.upstream()));
                task(exchange);
            })),
        };
        (reply, route)
    }
}

/// A request whose response has the field.
struct Timer {
    clock: Clock,
    began: Time,
    /// The name of its route, if there are routes.
    route: Option<String>,
}

impl Timer {
    fn stop(&self, mut answer: FullResponse) -> FullResponse {
        self.add_to(&mut answer.response, None);
        answer
    }

    fn add_to(&self, response: &mut Response, upstream: Option<Duration>) {
        let total = self.clock.now().since(self.began);
        let value = value(total, upstream, self.route.as_deref());
        response.fields_mut().push("server-timing", value);
    }
}

/// The time until the header of the response, the part of it that an upstream server took, and the route.
fn value(total: Duration, upstream: Option<Duration>, route: Option<&str>) -> String {
    let millis = |span: Duration| span.as_secs_f64() * 1000.0;
    let mut value = format!("lastbyte;dur={:.3}", millis(total));
    // Writing to a String cannot fail.
    if let Some(upstream) = upstream {
        let _ = write!(value, ", upstream;dur={:.3}", millis(upstream));
    }
    if let Some(route) = route {
        let _ = write!(value, ", route;desc=\"{}\"", quotable(route));
    }
    value
}

/// What a quoted string can have of a text (RFC 9110 §5.6.4, RFC 8941 §3.3.3): printable characters, two of them escaped.
pub(crate) fn quotable(text: &str) -> String {
    let mut quotable = String::with_capacity(text.len());
    for character in text.chars().filter(|c| matches!(c, ' '..='~')) {
        if matches!(character, '"' | '\\') {
            quotable.push('\\');
        }
        quotable.push(character);
    }
    quotable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_times_in_milliseconds_and_a_quoted_route() {
        let span = Duration::from_micros;
        assert_eq!(value(span(52), None, None), "lastbyte;dur=0.052");
        let route = Some("/a\"b\\c\u{7f}é\r\n");
        assert_eq!(
            value(span(13_204), Some(span(12_871)), route),
            "lastbyte;dur=13.204, upstream;dur=12.871, route;desc=\"/a\\\"b\\\\c\""
        );
    }

    #[test]
    fn only_a_request_with_the_field_asks() {
        let asks = Asks::Field("x-timing".to_owned(), "4711".to_owned());
        let with = |values: &[&str]| {
            let mut request = Request::new("GET", "https", "localhost", "/");
            for value in values {
                request.fields_mut().push("x-timing", value);
            }
            asks.has(&request)
        };
        assert!(with(&["4711"]) && with(&["1", "4711"]));
        assert!(!with(&[]) && !with(&[""]) && !with(&["471"]) && !with(&["47110"]));
        assert!(Asks::All.has(&Request::new("GET", "https", "localhost", "/")));
    }
}
