//! A fetch under way: its present request, what has come of it, what becomes of its response.
//!
//! Owns what is the same for all versions of HTTP: redirects, resumption, decompression, refusals, and what the listener
//! hears. Never: knows a connection.

use core::time::Duration;

use lastbyte_driver::Clock;
use lastbyte_http3::{Fields, Request};
use lastbyte_quic::Time;

use crate::{
    base64::basic,
    decode::{ACCEPTED, Decoder},
    failure::Failure,
    fetch::{Fetch, Outcome, Timing},
    follow,
    head::{Head, Version},
    listener::Listener,
    memory::Memory,
    retry::Retry,
    url::{Origin, Scheme},
};

/// How much of a redirect's own body is read, so that its connection can be used again.
const IGNORED_MAX: u64 = 1 << 20;

/// How many cookies are taken from one response, as curl has it.
const SET_COOKIES_MAX: usize = 50;
/// Interim responses that one request may receive. RFC 9110 §15.2 sets no limit; a server that never sends its final response would
/// otherwise keep the client busy for ever.
pub(crate) const INTERIM_MAX: u32 = 100;

/// One fetch.
pub(crate) struct FetchState {
    /// The request, which redirects change.
    pub(crate) current: Fetch,
    /// The request as it was asked for, if it may be made anew.
    original: Option<Box<Fetch>>,
    /// When its first attempt began.
    first_start: Option<Time>,
    /// How often it was begun again.
    attempts: u32,
    /// The pause before it is begun again.
    pause: Option<Duration>,
    /// How much had moved when its speed was looked at last, and when that was.
    pub(crate) pace: Option<(Time, u64)>,
    /// Whom the first request went to.
    first: Origin,
    /// Which of the client's servers the request goes to.
    pub(crate) server: Option<usize>,
    pub(crate) outcome: Outcome,
    /// Where a redirect leads.
    next: Option<Fetch>,
    decoder: Option<Decoder>,
    /// What comes is of no interest.
    is_ignored: bool,
    /// Interim responses to the request that is in flight.
    interim_count: u32,
}

/// Why no more of a response is wanted.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It failed.
    Failed(Failure),
    /// All is known that is needed.
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

/// What comes after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// The fetch is over.
    Done,
    /// It goes on with another request.
    FollowRedirect,
    /// It is begun again after this pause.
    RetryAfter(Duration),
}

/// All of them, and who hears of them.
pub(crate) struct FetchStates<'a> {
    pub(crate) all: Vec<FetchState>,
    pub(crate) listener: &'a mut dyn Listener,
    pub(crate) memory: &'a Memory,
}

impl FetchState {
    fn new(fetch: Fetch) -> Self {
        Self {
            original: fetch.retry.is_some().then(|| Box::new(fetch.clone())),
            first_start: None,
            attempts: 0,
            pause: None,
            pace: None,
            first: fetch.url.origin().clone(),
            current: fetch,
            server: None,
            outcome: Outcome::default(),
            next: None,
            decoder: None,
            is_ignored: false,
            interim_count: 0,
        }
    }

    /// How long to wait before it is begun again; `None` if it is not to be.
    fn next_pause(&self, now: Time, asked: Option<Duration>) -> Option<Duration> {
        let first = self.original.as_ref()?;
        if matches!(first.upload, Some(crate::fetch::Upload::Stream(_))) {
            // It is read already.
            return None;
        }
        let spent = self
            .first_start
            .map_or(Duration::ZERO, |begin| now.since(begin));
        first.retry?.pause(self.attempts, spent, asked)
    }

    /// How long to wait before it is begun again after a failure; `None` if it is not to be.
    pub(crate) fn pause_after(&self, now: Time, failure: &Failure) -> Option<Duration> {
        let retry = self.original.as_ref()?.retry?;
        retry
            .is_retryable(failure)
            .then(|| self.next_pause(now, None))?
    }

    /// It is begun again, with its first request.
    fn reset_for_retry(&mut self) {
        if let Some(first) = &self.original {
            self.current = Fetch::clone(first);
        }
        self.attempts += 1;
        self.outcome = Outcome {
            retries: self.outcome.retries + 1,
            ..Outcome::default()
        };
        self.server = None;
        self.reset_attempt();
    }

    /// The request is made anew.
    pub(crate) fn reset_attempt(&mut self) {
        self.outcome.status = None;
        self.outcome.timing = Timing {
            start: self.outcome.timing.start,
            redirected: self.outcome.timing.redirected,
            ..Timing::default()
        };
        self.outcome.is_early = false;
        self.decoder = None;
        self.is_ignored = false;
        self.next = None;
        self.pause = None;
        self.pace = None;
    }

    /// The request, as HTTP/2 and 3 have it.
    pub(crate) fn http_request(&self, memory: &Memory) -> Request {
        let fetch = &self.current;
        let authority = fetch.url.origin().authority();
        let host = fetch.fields.get("host");
        let authority = host
            .and_then(|host| core::str::from_utf8(host).ok())
            .unwrap_or(&authority);
        let scheme = fetch.url.origin().scheme.name();
        let mut request = Request::new(&fetch.method, scheme, authority, fetch.url.path());
        add_fields(request.fields_mut(), fetch, memory);
        request
    }
}

/// What was asked for, and what follows from the rest.
fn add_fields(fields: &mut Fields, fetch: &Fetch, memory: &Memory) {
    let lacks = |name| fetch.fields.get(name).is_none();
    if let Some(credentials) = fetch.url.credentials()
        && lacks("authorization")
    {
        fields.push_sensitive("authorization", basic(credentials));
    }
    let now = Clock::since_epoch();
    let kept = memory.cookies_for(&fetch.url, now);
    let kept = kept.filter(|_| fetch.sends_cookies);
    if let Some(kept) = &kept {
        // In one field: not every server takes several.
        let said = fetch.fields.get("cookie").map(String::from_utf8_lossy);
        let said = said.map(|said| format!("; {said}")).unwrap_or_default();
        fields.push_sensitive("cookie", format!("{kept}{said}"));
    }
    for line in &fetch.fields {
        if line.name == "host" || (line.name == "cookie" && kept.is_some()) {
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
    if let Some(from) = fetch.resume_from
        && from > 0
        && lacks("range")
    {
        fields.push("range", format!("bytes={from}-"));
    }
    let len = fetch.upload.as_ref().and_then(crate::fetch::Upload::len);
    if let Some(len) = len
        && lacks("content-length")
    {
        fields.push("content-length", len.to_string());
    }
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

    pub(crate) fn interim(&mut self, fetch: usize, head: &Head<'_>) -> Result<(), Stop> {
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
    pub(crate) fn head(&mut self, now: Time, fetch: usize, head: &Head<'_>) -> Result<(), Stop> {
        let Some(it) = self.all.get_mut(fetch) else {
            return Ok(());
        };
        let status = head.response.status();
        it.outcome.status = Some(status);
        it.outcome.version = Some(head.version);
        it.outcome.timing.head = Some(now);
        it.interim_count = 0;
        let origin = it.current.url.origin();
        if let Some(value) = head.text("alt-svc")
            && origin.scheme == Scheme::Https
        {
            // RFC 7838 §2.1: only what is authenticated is believed.
            self.memory
                .put_alternatives(origin, value, Clock::since_epoch());
        }
        let cookies = head.response.fields().iter();
        let cookies = cookies.filter(|line| line.name == "set-cookie");
        for line in cookies.take(SET_COOKIES_MAX) {
            let value = String::from_utf8_lossy(line.value);
            let now = Clock::since_epoch();
            self.memory.put_cookie(&it.current.url, &value, now);
        }
        let location = head.response.fields().get("location");
        let redirects = it.outcome.redirects;
        let next = follow::next(&it.current, &it.first, status, location, redirects);
        self.listener.on_head(fetch, head)?;
        it.next = next?;
        if it.next.is_some() {
            return Ok(());
        }
        if Retry::is_transient(status) {
            let asked = head.text("retry-after");
            let asked = asked.and_then(|text| text.trim().parse().ok());
            it.pause = it.next_pause(now, asked.map(Duration::from_secs));
            if it.pause.is_some() {
                it.is_ignored = true;
                return Ok(());
            }
        }
        if it.current.fails_on_error_status && status >= 400 {
            return Err(Failure::Status(status).into());
        }
        let length = head.text("content-length");
        let length = length.and_then(|text| text.trim().parse::<u64>().ok());
        let has_body = it.current.method != "HEAD" && !matches!(status, 204 | 304);
        if has_body {
            it.is_ignored = is_complete_already(&it.current, head, length)?;
        }
        if let (Some(max), Some(length)) = (it.current.size_max, length)
            && length > max
            && has_body
        {
            return Err(Failure::TooLarge(max).into());
        }
        if it.current.is_decoded && has_body {
            let coding = head.text("content-encoding").unwrap_or_default();
            let decoder = Decoder::new(coding)?;
            it.decoder = decoder.map(|decoder| decoder.with_limit(it.current.size_max));
        }
        Ok(())
    }

    /// Part of the body.
    pub(crate) fn body(&mut self, fetch: usize, bytes: &[u8]) -> Result<(), Stop> {
        let Some(it) = self.all.get_mut(fetch) else {
            return Ok(());
        };
        it.outcome.received += bytes.len() as u64;
        if it.next.is_some() || it.is_ignored {
            return if it.outcome.received > IGNORED_MAX {
                Err(Stop::Complete)
            } else {
                Ok(())
            };
        }
        if let Some(max) = it.current.size_max
            && it.outcome.received > max
        {
            return Err(Failure::TooLarge(max).into());
        }
        let listener = &mut *self.listener;
        match &mut it.decoder {
            None => Ok(listener.on_body(fetch, bytes)?),
            Some(decoder) => Ok(decoder.push(bytes, &mut |bytes| {
                listener.on_body(fetch, bytes).map_err(Failure::Write)
            })?),
        }
    }

    pub(crate) fn trailers(&mut self, fetch: usize, fields: &Fields) -> Result<(), Stop> {
        Ok(self.listener.on_trailers(fetch, fields)?)
    }

    /// The response is there as a whole, or as far as it matters.
    pub(crate) fn end(&mut self, now: Time, fetch: usize) -> Result<NextStep, Failure> {
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
        if let Some(pause) = it.pause {
            return Ok(NextStep::RetryAfter(pause));
        }
        let listener = &mut *self.listener;
        if let Some(mut decoder) = it.decoder.take() {
            decoder.finish(&mut |bytes| listener.on_body(fetch, bytes).map_err(Failure::Write))?;
        }
        listener.on_end(fetch).map_err(Failure::Write)?;
        Ok(NextStep::Done)
    }

    /// It is begun again, after a pause.
    pub(crate) fn schedule_retry(
        &mut self,
        fetch: usize,
        pause: Duration,
        failure: Option<&Failure>,
    ) -> Result<(), Failure> {
        let Some(it) = self.all.get_mut(fetch) else {
            return Ok(());
        };
        let told = self.listener.on_retry(fetch, pause, &it.outcome, failure);
        it.reset_for_retry();
        told.map_err(Failure::Write)
    }

    /// Its turn has come.
    pub(crate) fn start(&mut self, now: Time, fetch: usize) {
        let it = &mut self.all[fetch];
        it.first_start.get_or_insert(now);
        it.outcome.timing.start = Some(now);
    }

    /// It is over, well or not.
    pub(crate) fn close(&mut self, now: Time, fetch: usize, failure: Option<Failure>) {
        if let Some(it) = self.all.get_mut(fetch) {
            it.outcome.timing.end = Some(now);
            it.outcome.failure = failure;
            self.listener.on_done(fetch, &it.outcome);
        }
    }

    /// A request is sent.
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

/// Whether the rest that was asked for is nothing (RFC 9110 §15.5.17), so that what comes is to be ignored.
fn is_complete_already(
    fetch: &Fetch,
    head: &Head<'_>,
    length: Option<u64>,
) -> Result<bool, Failure> {
    let Some(from) = fetch.resume_from.filter(|from| *from > 0) else {
        return Ok(false);
    };
    let range = head
        .text("content-range")
        .and_then(|text| text.strip_prefix("bytes "));
    let status = head.response.status();
    if status == 206 {
        let begin = range.and_then(|text| text.split('-').next()?.trim().parse::<u64>().ok());
        return match begin {
            Some(begin) if begin == from => Ok(false),
            _ => Err(Failure::Range(format!(
                "asked for what comes from byte {from} on, the server sends `{}`",
                range.unwrap_or("no content-range").escape_debug()
            ))),
        };
    }
    // Either says how long the whole is.
    let whole = match status {
        416 => range.and_then(|text| text.strip_prefix("*/")?.parse::<u64>().ok()),
        _ => length,
    };
    if whole == Some(from) || (status == 416 && whole.is_none()) {
        return Ok(true);
    }
    Err(Failure::Range(format!(
        "the server cannot go on from byte {from}: it answers {status} and not 206"
    )))
}
