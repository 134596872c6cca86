//! A page load over real connections: the client fetches what [`Load`], the browser of the simulator, requests.
//!
//! Requests over HTTP/2 and 3 go to the client as the browser discovers them. Over HTTP/1.1 they wait in the pools of the
//! simulator ([`Pool`]), except that a request is bound to a connection when it is opened, not when it is open.

use core::time::Duration;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use lastbyte_client::{
    Failure, Fetch, Handshake, Head, Listener, Memory, Next, Outcome, RunError, Settings, Url,
    Version, Versions, run,
};
use lastbyte_driver::Clock;
use lastbyte_page::{InFlight, Load, Moment, Page, Pool, View};
use lastbyte_scenario::HttpVersion;
use lastbyte_sim::{PageOutcome, browser};
use lastbyte_units::Time;

use crate::jobs::Interrupt;

/// What to load, and how.
pub(super) struct Visit<'a> {
    pub(super) page: &'a Page,
    /// The URL of each resource.
    pub(super) urls: &'a [Url],
    pub(super) view: View,
    pub(super) version: HttpVersion,
    /// When the load is given up.
    pub(super) limit: Duration,
    /// Whether to wait for all that the page requests, not only until `onload`.
    pub(super) is_whole: bool,
}

/// How a load went.
pub(super) struct Visited {
    /// Times since the start of the load. What only a simulator counts is zero.
    pub(super) outcome: PageOutcome,
    /// Responses by protocol: the names of ALPN (RFC 7301).
    pub(super) protocols: BTreeMap<&'static str, u32>,
    /// Handshakes by kind.
    pub(super) handshakes: BTreeMap<&'static str, u32>,
    /// The first failure.
    pub(super) error: Option<String>,
    /// Whether the document arrived.
    pub(super) has_document: bool,
}

/// The URLs of the resources of a page, as `serve --pages` names them: `https://HOST[:PORT]/PAGE/RESOURCE`.
pub(super) fn urls(page: &Page, index: usize, port: u16) -> Result<Vec<Url>, String> {
    let port = match port {
        443 => String::new(),
        port => format!(":{port}"),
    };
    let resources = page.resources.iter().enumerate();
    let urls = resources.map(|(number, resource)| {
        let host = &page.hosts[usize::from(resource.host)].name;
        let url = format!("https://{host}{port}/{index}/{number}");
        let url: Result<Url, _> = url.parse();
        url.map_err(|error| format!("page `{}`: host `{host}`: {error}", page.name))
    });
    urls.collect()
}

impl Visit<'_> {
    /// Loads the page. `None` if interrupted.
    pub(super) fn load(
        &self,
        settings: &Settings,
        memory: &Memory,
        interrupt: &Interrupt,
    ) -> Result<Option<Visited>, RunError> {
        let mut settings = settings.clone();
        settings.versions = match self.version {
            HttpVersion::Http1 => Versions::Http11,
            HttpVersion::Http2 => Versions::Http2Only,
            HttpVersion::Http3 => Versions::Http3,
        };
        if self.version == HttpVersion::Http3 {
            let others = self.page.hosts.iter().filter(|host| !host.has_http3);
            let others = others.map(|host| (host.name.to_lowercase(), Versions::Http2Only));
            settings.versions_by_host = others.collect();
        }
        settings.connections_per_host = Pool::CONNECTIONS_MAX;
        // The browser decides how many requests are in flight.
        settings.parallel = Page::RESOURCES_MAX;
        // The page describes which hosts share a connection: `serve` cannot know, because all have the same address.
        settings.coalesces = false;
        settings.connect_timeout = self.limit;
        let clock = Clock::new();
        let mut driver = Driver::new(self, clock, interrupt);
        run(&settings, memory, clock, Vec::new(), &mut driver)?;
        Ok((!driver.is_interrupted).then(|| driver.finish()))
    }
}

/// The browser as a listener of the client.
struct Driver<'a> {
    visit: &'a Visit<'a>,
    clock: Clock,
    interrupt: &'a Interrupt,
    /// The page and the start of its load, once the client runs.
    started: Option<(Load<'a>, Time)>,
    pools: BTreeMap<u16, Pool>,
    in_flight: InFlight,
    /// Requests for the client.
    ready: VecDeque<u16>,
    /// The resource of each fetch, and the bytes of its body so far.
    fetches: Vec<(u16, u64)>,
    failed: u32,
    protocols: BTreeMap<&'static str, u32>,
    handshakes: BTreeMap<&'static str, u32>,
    error: Option<String>,
    is_stopped: bool,
    is_interrupted: bool,
}

impl<'a> Driver<'a> {
    fn new(visit: &'a Visit<'a>, clock: Clock, interrupt: &'a Interrupt) -> Self {
        Self {
            visit,
            clock,
            interrupt,
            started: None,
            pools: BTreeMap::new(),
            in_flight: InFlight::default(),
            ready: VecDeque::new(),
            fetches: Vec::new(),
            failed: 0,
            protocols: BTreeMap::new(),
            handshakes: BTreeMap::new(),
            error: None,
            is_stopped: false,
            is_interrupted: false,
        }
    }

    /// Reports the progress of a fetch to the browser.
    fn on_progress(&mut self, fetch: usize, report: impl FnOnce(&mut Load<'a>, (u16, u64), Time)) {
        if let Some((load, _)) = &mut self.started
            && let Some(progress) = self.fetches.get(fetch)
        {
            report(load, *progress, self.clock.now());
        }
    }

    /// Takes what the browser requests.
    fn take_requests(&mut self, now: Time) {
        let Some((load, _)) = &mut self.started else {
            return;
        };
        load.on_deadline(now);
        let has_rendered = load.first_render().is_some();
        while let Some(resource) = load.next_request() {
            if self.visit.version == HttpVersion::Http1 {
                let description = &self.visit.page.resources[usize::from(resource)];
                let pool = self.pools.entry(description.host);
                let pool = pool.or_insert_with(Pool::of_idle);
                pool.push(resource, description.priority.urgency);
            } else {
                self.ready.push_back(resource);
            }
        }
        for pool in self.pools.values_mut() {
            while let Some((_, resource)) = pool.assign(&mut self.in_flight, has_rendered) {
                self.ready.push_back(resource);
            }
        }
    }

    fn fetch(&mut self, resource: u16) -> Fetch {
        self.fetches.push((resource, 0));
        let page = self.visit.page;
        let description = &page.resources[usize::from(resource)];
        let host = &page.hosts[usize::from(description.host)].name;
        let mut fetch = Fetch::get(self.visit.urls[usize::from(resource)].clone());
        fetch.fields = browser::request_fields(description, host);
        fetch.fails_on_error_status = true;
        fetch
    }

    fn finish(self) -> Visited {
        let page = self.visit.page;
        let started = self.started.as_ref();
        let since_start = |at: Option<Time>| {
            let (_, start) = started?;
            Some(at?.since(*start))
        };
        let moments = (0..page.resources.len()).map(|resource| {
            let at = |at| since_start(at).map(|span| Time::ZERO + span);
            let moment = started.map(|(load, _)| load.moment(resource as u16));
            let moment = moment.unwrap_or_default();
            Moment {
                requested: at(moment.requested),
                first_byte: at(moment.first_byte),
                complete: at(moment.complete),
                executed: at(moment.executed),
            }
        });
        let resources: Vec<Moment> = moments.collect();
        let load = started.map(|(load, _)| load);
        let loaded = load.and_then(Load::loaded);
        let limit = self.visit.limit;
        let late = || format!("not loaded after {} s", limit.as_secs_f64());
        Visited {
            has_document: resources[usize::from(page.document())].complete.is_some(),
            error: self.error.or_else(|| loaded.is_none().then(late)),
            outcome: PageOutcome {
                first_render: since_start(load.and_then(Load::first_render)),
                loaded: since_start(loaded),
                byte_index: load.and_then(Load::byte_index),
                resources,
                connections: self.handshakes.values().sum(),
                failed: self.failed,
                packets: 0,
                bytes_down: 0,
                bytes_up: 0,
                drops_down: 0,
            },
            protocols: self.protocols,
            handshakes: self.handshakes,
        }
    }
}

impl Listener for Driver<'_> {
    fn next(&mut self) -> Next {
        let now = self.clock.now();
        let visit = self.visit;
        // Not before: the client reads certificates at its start.
        let (_, start) = self
            .started
            .get_or_insert_with(|| (Load::new(visit.page, visit.view, now), now));
        let end = *start + visit.limit;
        self.take_requests(now);
        let Some((load, _)) = &self.started else {
            return Next::Stop;
        };
        let is_done = load.finished().is_some() || (load.loaded().is_some() && !visit.is_whole);
        if is_done || now >= end || self.is_stopped {
            self.is_stopped = true;
            return Next::Stop;
        }
        let until = load.deadline().map_or(end, |deadline| deadline.min(end));
        match self.ready.pop_front() {
            Some(resource) => Next::Fetch(Box::new(self.fetch(resource))),
            None => Next::Wait(Some(until)),
        }
    }

    fn on_interim(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let document = self.visit.page.document();
        if head.response.status() == 103 {
            self.on_progress(fetch, |load, (resource, _), now| {
                if resource == document {
                    load.on_early_hints(now);
                }
            });
        }
        Ok(())
    }

    fn on_head(&mut self, fetch: usize, head: &Head<'_>) -> io::Result<()> {
        if head.response.status() < 400 {
            let version = match head.version {
                Version::Http10 | Version::Http11 => "http/1.1",
                Version::Http2 => "h2",
                Version::Http3 => "h3",
            };
            *self.protocols.entry(version).or_default() += 1;
            self.on_progress(fetch, |load, (resource, _), now| {
                load.on_first_byte(resource, now);
            });
        }
        Ok(())
    }

    fn on_body(&mut self, fetch: usize, bytes: &[u8]) -> io::Result<()> {
        if let Some((_, received)) = self.fetches.get_mut(fetch) {
            *received += bytes.len() as u64;
        }
        self.on_progress(fetch, |load, (resource, received), now| {
            load.on_body(resource, received, now);
        });
        Ok(())
    }

    fn on_done(&mut self, fetch: usize, outcome: &Outcome) {
        let Some(&(resource, _)) = self.fetches.get(fetch) else {
            return;
        };
        let host = self.visit.page.resources[usize::from(resource)].host;
        if let Some(pool) = self.pools.get_mut(&host) {
            pool.release(resource, &mut self.in_flight);
        }
        match &outcome.failure {
            None => self.on_progress(fetch, |load, (resource, _), now| {
                load.on_complete(resource, now);
            }),
            Some(Failure::Interrupted) => {}
            Some(failure) => {
                self.failed += 1;
                let url = &self.visit.urls[usize::from(resource)];
                self.error
                    .get_or_insert_with(|| format!("{url}: {failure}"));
                self.on_progress(fetch, |load, (resource, _), now| {
                    load.on_failed(resource, now);
                });
            }
        }
    }

    fn on_connected(&mut self, _: usize, handshake: &Handshake) {
        let kind = match (handshake.is_resumed, handshake.early_data) {
            (_, Some(true)) => lastbyte_scenario::Handshake::ZeroRtt,
            (true, _) => lastbyte_scenario::Handshake::Resumed,
            (false, _) => lastbyte_scenario::Handshake::Full,
        };
        *self.handshakes.entry(kind.name()).or_default() += 1;
    }

    fn on_tick(&mut self) -> bool {
        self.is_interrupted |= self.interrupt.is_pressed();
        self.is_stopped |= self.is_interrupted;
        !self.is_stopped
    }
}
