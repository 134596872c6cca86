//! The progress of a fetch: its current request, the processing of its response, and its outcome.
//!
//! Responsible for everything that does not depend on the version of HTTP: redirects, resumption, decompression, rejected
//! statuses, and calls to the listener. Knows nothing about connections.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use lastbyte_driver::Clock;
use lastbyte_http3::{Fields, Request};
use lastbyte_quic::Time;

use crate::{
    base64::basic,
    decode::{ACCEPTED, Decoder},
    failure::Failure,
    fetch::{Fetch, Outcome, Timing, Upload},
    follow,
    head::{Head, Version},
    listener::Listener,
    memory::Memory,
    url::{Origin, Scheme},
};

/// The most bytes of a discarded body, such as that of a redirect, which are read so that the connection can be reused.
const DISCARDED_MAX: u64 = 1 << 20;

/// Uploads larger than this are announced with `expect: 100-continue` over HTTP/1.1 (RFC 9110 §10.1.1); the same limit as curl's.
const EXPECT_LEN: u64 = 1 << 20;

/// The most interim responses to one request. RFC 9110 §15.2 sets no limit, but a server that never sends a final response
/// would otherwise keep the client busy forever.
pub(crate) const INTERIM_MAX: u32 = 100;

/// The progress of one fetch.
pub(crate) struct FetchState {
    /// The current request: the original, as changed by redirects.
    pub(crate) current: Fetch,
    /// The origin of the first request.
    first: Origin,
    /// The index of the server to which the request is sent.
    pub(crate) server: Option<usize>,
    pub(crate) outcome: Outcome,
    /// The request to which the response redirects.
    next: Option<Fetch>,
    decoder: Option<Decoder>,
    /// The number of interim responses to the current request.
    interim_count: u32,
    /// Bytes of the request's body that were sent over HTTP/3, if it has a length.
    pub(crate) upload_sent: Option<Arc<AtomicU64>>,
}

/// The reason to stop reading a response.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The fetch failed.
    Failed(Failure),
    /// The rest of the body is not needed.
    Complete,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(Failure::Write(error))
    }
}

/// The next step after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// The fetch is complete.
    Done,
    /// Send the request to which the response redirects.
    FollowRedirect,
}

/// All fetches, and the listener.
pub(crate) struct FetchStates<'a> {
    pub(crate) all: Vec<FetchState>,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) memory: &'a Memory,
}

impl FetchState {
    fn new(fetch: Fetch) -> Self {
        Self {
            first: fetch.url.origin().clone(),
            current: fetch,
            server: None,
            outcome: Outcome::default(),
            next: None,
            decoder: None,
            interim_count: 0,
            upload_sent: None,
        }
    }

    /// Resets all state of the current attempt.
    pub(crate) fn reset_attempt(&mut self) {
        self.outcome.status = None;
        self.outcome.timing = Timing {
            start: self.outcome.timing.start,
            redirected: self.outcome.timing.redirected,
            ..Timing::default()
        };
        self.outcome.is_early = false;
        self.upload_sent = None;
        self.decoder = None;
        self.next = None;
    }

    /// The request for this version of HTTP, in the form of HTTP/2 and HTTP/3.
    pub(crate) fn http_request(&self, version: Version) -> Request {
        let fetch = &self.current;
        let authority = fetch.url.origin().authority();
        let host = fetch.fields.get("host");
        let authority = host
            .and_then(|host| core::str::from_utf8(host).ok())
            .unwrap_or(&authority);
        let scheme = fetch.url.origin().scheme.name();
        let mut request = Request::new(&fetch.method, scheme, authority, fetch.url.path());
        add_fields(request.fields_mut(), fetch, version);
        request
    }
}

/// Adds the fields of the fetch and those derived from it: credentials and others.
fn add_fields(fields: &mut Fields, fetch: &Fetch, version: Version) {
    let lacks = |name| {
        fetch.fields.get(name).is_none() && fetch.omitted.iter().all(|omitted| omitted != name)
    };
    if let Some(credentials) = fetch.url.credentials()
        && lacks("authorization")
    {
        fields.push_sensitive("authorization", basic(credentials));
    }
    let len = fetch.upload.as_ref().map(Upload::len);
    let has_content = len.is_some_and(|len| len != Some(0));
    for line in &fetch.fields {
        let is_sent = match line.name {
            "host" => false,
            // Without content there is nothing to wait with (RFC 9110 §10.1.1).
            "expect" => has_content || !is_100_continue(line.value),
            // Of a connection of HTTP/1.1 (RFC 9113 §8.2.2, RFC 9114 §4.2).
            "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => {
                version <= Version::Http11
            }
            _ => true,
        };
        if !is_sent {
            continue;
        }
        if line.is_sensitive || line.name == "authorization" {
            fields.push_sensitive(line.name, line.value);
        } else {
            fields.push(line.name, line.value);
        }
    }
    if fetch.is_decoded && lacks("accept-encoding") {
        fields.push("accept-encoding", ACCEPTED);
    }
    if let Some(Some(len)) = len
        && fetch.fields.get("content-length").is_none()
    {
        fields.push("content-length", len.to_string());
    }
    let is_long = len.is_some_and(|len| len.is_none_or(|len| len > EXPECT_LEN));
    if version <= Version::Http11 && is_long && lacks("expect") {
        fields.push("expect", "100-continue");
    }
}

/// Whether a value of `expect` is the expectation of `100 Continue`.
pub(crate) fn is_100_continue(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"100-continue")
}

impl<'a> FetchStates<'a> {
    pub(crate) fn new(
        fetches: Vec<Fetch>,
        listener: &'a mut dyn Listener,
        memory: &'a Memory,
    ) -> Self {
        Self {
            all: fetches.into_iter().map(FetchState::new).collect(),
            listener,
            memory,
        }
    }

    pub(crate) fn on_interim(&mut self, fetch: usize, head: &Head<'_>) -> Result<(), Stop> {
        if head.response.status() == 101 {
            // RFC 9110 §15.2.2: it is the last message of HTTP on the connection, and there is nothing to switch to.
            let why = "the server switched protocols (101), which is not supported";
            return Err(Stop::Failed(Failure::Protocol(why.to_owned())));
        }
        if let Some(it) = self.all.get_mut(fetch) {
            it.interim_count += 1;
            if it.interim_count > INTERIM_MAX {
                let why = format!("more than {INTERIM_MAX} interim responses to one request");
                return Err(Stop::Failed(Failure::Protocol(why)));
            }
        }
        Ok(self.listener.on_interim(fetch, head)?)
    }

    /// The head of a final response.
    pub(crate) fn on_head(&mut self, now: Time, fetch: usize, head: &Head<'_>) -> Result<(), Stop> {
        let Some(it) = self.all.get_mut(fetch) else {
            return Ok(());
        };
        let status = head.response.status();
        it.outcome.status = Some(status);
        it.outcome.version = Some(head.version);
        it.outcome.timing.head = Some(now);
        it.interim_count = 0;
        let origin = it.current.url.origin();
        if let Some(value) = head.list("alt-svc")
            && origin.scheme == Scheme::Https
        {
            // RFC 7838 §2.1: only authenticated origins are trusted.
            self.memory
                .put_alternatives(origin, &value, Clock::since_epoch());
        }
        let location = head.response.fields().get("location");
        let redirects = it.outcome.redirects;
        let next = follow::next(&it.current, &it.first, status, location, redirects);
        self.listener.on_head(fetch, head)?;
        it.next = next?;
        if it.next.is_some() {
            return Ok(());
        }
        if it.current.fails_on_error_status && status >= 400 {
            return Err(Failure::Status(status).into());
        }
        let has_body = it.current.method != "HEAD" && !matches!(status, 204 | 304);
        if it.current.is_decoded && has_body {
            let coding = head.list("content-encoding").unwrap_or_default();
            it.decoder = Decoder::new(&coding)?;
        }
        Ok(())
    }

    /// Processes a part of the body.
    pub(crate) fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> Result<(), Stop> {
        let Some(it) = self.all.get_mut(fetch) else {
            return Ok(());
        };
        it.outcome.received += bytes.len() as u64;
        if it.next.is_some() {
            return if it.outcome.received > DISCARDED_MAX {
                Err(Stop::Complete)
            } else {
                Ok(())
            };
        }
        let listener = &mut *self.listener;
        match &mut it.decoder {
            None => Ok(listener.on_body(fetch, bytes)?),
            Some(decoder) => Ok(decoder.push(bytes, &mut |bytes| {
                listener.on_body(fetch, bytes).map_err(Failure::Write)
            })?),
        }
    }

    pub(crate) fn on_trailers(&mut self, fetch: usize, fields: &Fields) -> Result<(), Stop> {
        Ok(self.listener.on_trailers(fetch, fields)?)
    }

    /// Processes the end of the response, or of the part of it that is needed.
    pub(crate) fn on_end(&mut self, now: Time, fetch: usize) -> Result<NextStep, Failure> {
        let Some(it) = self.all.get_mut(fetch) else {
            return Ok(NextStep::Done);
        };
        if let Some(next) = it.next.take() {
            it.outcome.redirects += 1;
            it.outcome.url = Some(next.url.clone());
            it.outcome.received = 0;
            it.outcome.sent = 0;
            it.outcome.connection = None;
            it.current = next;
            it.server = None;
            it.outcome.timing.redirected = Some(now);
            it.reset_attempt();
            return Ok(NextStep::FollowRedirect);
        }
        let listener = &mut *self.listener;
        if let Some(mut decoder) = it.decoder.take() {
            decoder.finish()?;
        }
        listener.on_end(fetch).map_err(Failure::Write)?;
        Ok(NextStep::Done)
    }

    /// Records the start of an attempt.
    pub(crate) fn start(&mut self, now: Time, fetch: usize) {
        self.all[fetch].outcome.timing.start = Some(now);
    }

    /// Records the end of the fetch, and reports it to the listener.
    pub(crate) fn finish(&mut self, now: Time, fetch: usize, failure: Option<Failure>) {
        if let Some(it) = self.all.get_mut(fetch) {
            it.outcome.timing.end = Some(now);
            if let Some(sent) = it.upload_sent.take() {
                it.outcome.sent = sent.load(Ordering::Relaxed);
            }
            it.outcome.failure = failure;
            self.listener.on_done(fetch, &it.outcome);
        }
    }

    /// Reports to the listener that a request is sent.
    pub(crate) fn on_request(
        &mut self,
        fetch: usize,
        connection: usize,
        version: Version,
        request: &Request,
    ) {
        self.listener
            .on_request(fetch, connection, version, request);
    }
}

#[cfg(test)]
mod tests;
