//! The state machine of a browser that loads a page.
//!
//! # The life of a resource
//!
//! 1. Its trigger fires, and after its delay the page *wants* it.
//! 2. It is requested then, or earlier if a 103 response named it (RFC 8297). In the repeat view a cacheable resource is not
//!    requested but read from the cache.
//! 3. It completes, or fails.
//! 4. Once it is complete and wanted, the main thread parses or executes it.
//!
//! It triggers nothing before the page wants it: a browser does not scan preloaded resources.
//!
//! # `onload`
//!
//! The load event waits for the document and for the resources to which it, its style sheets, scripts and frames refer ([`Kind::delays_onload`]).
//! It does not wait for fetches of scripts, for media, and for resources wanted only after the event. A delay after a script or a
//! fetch is a timer, for which the event does not wait; a delay after anything else is parsing or layout, for which it does.
//! Sources: HTML Standard §13.2.7 "the end" and "delay the load event"; `Resource::IsLoadEventBlockingResourceType` of Chromium.
//!
//! # First render
//!
//! Nothing is rendered before bytes of the document are there, while a render-blocking resource is open, or while the main
//! thread works. Render-blocking resources which the document's own bytes trigger are open from the beginning, because they are
//! in its head, which precedes all that can be rendered; others are open from the moment from which the load event waits for
//! them.

use core::{cmp::Reverse, time::Duration};
use std::collections::{BinaryHeap, VecDeque};

use lastbyte_units::Time;

use crate::{
    curve::Curve,
    page::{Kind, Page, Trigger, View},
};

/// A page that is being loaded.
///
/// The driver calls [`Self::next_request`] until it returns `None`, after the start and after each event, and
/// [`Self::on_deadline`] at [`Self::deadline`]. Events of resources that are not being loaded, or not part of the page, have no
/// effect. Each event costs time in proportion to what it triggers, however large the page is.
#[derive(Debug)]
pub struct Load<'a> {
    page: &'a Page,
    view: View,
    /// [`Page::document`].
    document: u16,
    started: Time,
    states: Vec<State>,
    /// The resources that each resource triggers, in the order of the stages at which it does.
    triggered: Vec<Vec<(Stage, u16)>>,
    timers: BinaryHeap<Reverse<(Time, u64, Timer)>>,
    timers_started: u64,
    /// Requests that the driver has not taken yet, in order of discovery.
    requests: VecDeque<u16>,
    /// Resources that a hint requested, that are now wanted, and whose triggers may fire.
    preloaded: VecDeque<u16>,
    /// The resources that wait for the main thread, in order of completion.
    main_thread: VecDeque<u16>,
    /// When the first of them is done, if the main thread has begun with it.
    main_thread_done: Option<Time>,
    /// Resources whose trigger has fired and that are not closed.
    open: usize,
    /// Those of them for which the load event waits.
    delaying: usize,
    /// Render-blocking resources that are open.
    blocking: usize,
    are_hints_used: bool,
    first_render: Option<Time>,
    loaded: Option<Time>,
    finished: Option<Time>,
    curve: Curve,
}

/// The times of a resource's stages. Stages that have not happened are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When it was discovered, and requested from the driver or the cache.
    pub requested: Option<Time>,
    /// When the first byte of its response arrived. What comes from the cache has none.
    pub first_byte: Option<Time>,
    /// When its last byte arrived.
    pub complete: Option<Time>,
    /// When the main thread was done with it.
    pub executed: Option<Time>,
}

/// What of a resource has happened, as the number of bytes of its body that have arrived.
type Stage = u64;
const COMPLETE: Stage = u64::MAX - 1;
const EXECUTED: Stage = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// The delay of a resource has passed.
    Want(u16),
    /// The cache has delivered a resource.
    Cached(u16),
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    moment: Moment,
    transfer: Transfer,
    received: u64,
    /// The number of its resources that have been triggered.
    fired: usize,
    is_wanted: bool,
    is_counted: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Transfer {
    #[default]
    Unknown,
    /// The driver has not taken the request.
    Queued,
    Loading,
    FromCache,
    Complete,
    Failed,
}

impl<'a> Load<'a> {
    /// Time to read a resource from the cache (assumed).
    pub const CACHE_TIME: Duration = Duration::from_millis(2);

    /// Starts to load `page` at `now`. Its document is the first request.
    ///
    /// # Panics
    ///
    /// If the page does not pass [`Page::check`] because it has no resource or an index is out of range.
    #[must_use]
    pub fn new(page: &'a Page, view: View, now: Time) -> Self {
        let document = page.document();
        let mut triggered = vec![Vec::new(); page.resources.len()];
        let mut blocking = 0;
        for (index, resource) in (0..).zip(&page.resources) {
            if let Some(trigger) = resource.trigger {
                triggered[usize::from(trigger.of())].push((stage(trigger), index));
            }
            blocking += usize::from(resource.is_blocking && is_in(document, resource.trigger));
        }
        for list in &mut triggered {
            list.sort_unstable();
        }
        let mut load = Self {
            page,
            view,
            document,
            started: now,
            states: vec![State::default(); page.resources.len()],
            triggered,
            timers: BinaryHeap::new(),
            timers_started: 0,
            requests: VecDeque::new(),
            preloaded: VecDeque::new(),
            main_thread: VecDeque::new(),
            main_thread_done: None,
            open: 0,
            delaying: 0,
            blocking,
            are_hints_used: false,
            first_render: None,
            loaded: None,
            finished: None,
            curve: Curve::new(),
        };
        load.on_trigger(0, now);
        load
    }

    /// The index of the resource to request now, if any. In order of discovery.
    pub fn next_request(&mut self) -> Option<u16> {
        let resource = self.requests.pop_front()?;
        self.states[usize::from(resource)].transfer = Transfer::Loading;
        Some(resource)
    }

    /// A 103 (Early Hints) response to the request of the document arrived: the resources that it names are requested now.
    /// They are executed, trigger others, and block rendering and the load event, only once the page wants them. Only the first 103 response of
    /// a document has an effect, and none after its last byte.
    pub fn on_early_hints(&mut self, now: Time) {
        self.advance(now);
        let document = self.states[usize::from(self.document)];
        if self.are_hints_used || document.transfer != Transfer::Loading {
            return;
        }
        self.are_hints_used = true;
        for (resource, description) in (0..).zip(&self.page.resources) {
            if description.is_hinted {
                self.request(resource, now);
            }
        }
    }

    /// The first byte of the response to the request of `resource` arrived.
    pub fn on_first_byte(&mut self, resource: u16, now: Time) {
        self.advance(now);
        if self.is_loading(resource) {
            self.receive(resource, 0, now);
            self.render(now);
            self.work(now);
        }
    }

    /// `received` bytes of the body of `resource` have arrived in order, counted from its beginning.
    pub fn on_body(&mut self, resource: u16, received: u64, now: Time) {
        self.advance(now);
        if self.is_loading(resource) {
            self.receive(resource, received, now);
            self.render(now);
            self.work(now);
        }
    }

    /// The last byte of `resource` arrived.
    pub fn on_complete(&mut self, resource: u16, now: Time) {
        self.advance(now);
        if self.is_loading(resource) {
            self.complete(resource, now);
            self.work(now);
        }
    }

    /// The request of `resource` failed. A browser continues without it and the resources that it would have triggered. Without
    /// the document there is no page: [`Self::loaded`] stays `None`.
    pub fn on_failed(&mut self, resource: u16, now: Time) {
        self.advance(now);
        if !self.is_loading(resource) {
            return;
        }
        let state = &mut self.states[usize::from(resource)];
        state.transfer = Transfer::Failed;
        if resource <= self.document {
            self.requests.clear();
            self.timers.clear();
            self.main_thread.clear();
            self.main_thread_done = None;
            self.finished = Some(now);
        } else if state.is_wanted {
            self.close(resource, now);
        }
    }

    /// When [`Self::on_deadline`] is due.
    pub fn deadline(&self) -> Option<Time> {
        let timer = self.timers.peek().map(|Reverse((time, _, _))| *time);
        Time::earlier(timer, self.main_thread_done)
    }

    /// Time has passed.
    pub fn on_deadline(&mut self, now: Time) {
        self.advance(now);
    }

    /// The times of a resource.
    pub fn moment(&self, resource: u16) -> Moment {
        self.states[usize::from(resource)].moment
    }

    /// Whether `resource` came, or comes, from the cache.
    pub fn is_cached(&self, resource: u16) -> bool {
        self.view == View::Repeat && self.page.resources[usize::from(resource)].is_cacheable
    }

    /// When all render-blocking resources known by then were complete and executed and bytes of the document had arrived.
    pub const fn first_render(&self) -> Option<Time> {
        self.first_render
    }

    /// When the load event happened (`onload`).
    pub const fn loaded(&self) -> Option<Time> {
        self.loaded
    }

    /// When nothing was left to do: at `onload`, or later if there is more that `onload` does not wait for, or when the
    /// document failed.
    pub const fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// The mean time, from the start of the load, at which a byte of a visible resource ([`Kind::is_visible`]) was shown: the integral of the share of visible bytes
    /// not yet shown, until the load event. Like the Speed Index, with bytes in place of pixels.
    pub fn byte_index(&self) -> Option<Duration> {
        Some(self.curve.index(self.started, self.loaded?))
    }

    fn is_loading(&self, resource: u16) -> bool {
        self.states
            .get(usize::from(resource))
            .is_some_and(|state| state.transfer == Transfer::Loading)
            && (self.finished.is_none() || self.loaded.is_some())
    }

    /// Handles all timers and ends of work until `now`, in the order of their times.
    fn advance(&mut self, now: Time) {
        while let Some(at) = self.deadline()
            && at <= now
        {
            if self.main_thread_done == Some(at) {
                self.main_thread_done = None;
                if let Some(resource) = self.main_thread.pop_front() {
                    self.on_executed(resource, at);
                }
            } else if let Some(Reverse((_, _, timer))) = self.timers.pop() {
                match timer {
                    Timer::Want(resource) => self.want(resource, at),
                    Timer::Cached(resource) => self.complete(resource, at),
                }
            }
            self.work(at);
        }
    }

    fn start_timer(&mut self, at: Time, timer: Timer) {
        self.timers.push(Reverse((at, self.timers_started, timer)));
        self.timers_started += 1;
    }

    /// Triggers what `of` triggers until `stage`, if the page wants `of`.
    fn fire(&mut self, of: u16, stage: Stage, now: Time) {
        let of = usize::from(of);
        while self.states[of].is_wanted
            && let Some(&(at, resource)) = self.triggered[of].get(self.states[of].fired)
            && at <= stage
        {
            self.states[of].fired += 1;
            self.on_trigger(resource, now);
        }
    }

    fn on_trigger(&mut self, resource: u16, now: Time) {
        let description = &self.page.resources[usize::from(resource)];
        self.open += 1;
        if !self.is_timer(description.trigger) {
            self.count(resource);
        }
        if description.delay.is_zero() {
            self.want(resource, now);
        } else {
            self.start_timer(now + description.delay, Timer::Want(resource));
        }
    }

    /// Whether a delay after `trigger` is a timer of a script.
    fn is_timer(&self, trigger: Option<Trigger>) -> bool {
        trigger.is_some_and(|trigger| {
            let of = self.page.resources[usize::from(trigger.of())].kind;
            matches!(trigger, Trigger::Executed { .. }) && matches!(of, Kind::Script | Kind::Fetch)
        })
    }

    /// From now on the load event and the first render wait for `resource`, if they do at all.
    fn count(&mut self, resource: u16) {
        let description = &self.page.resources[usize::from(resource)];
        let state = &mut self.states[usize::from(resource)];
        if !state.is_counted {
            state.is_counted = true;
            self.delaying += usize::from(description.delays_onload());
            self.blocking +=
                usize::from(description.is_blocking && !is_in(self.document, description.trigger));
        }
    }

    fn want(&mut self, resource: u16, now: Time) {
        self.states[usize::from(resource)].is_wanted = true;
        self.count(resource);
        self.request(resource, now);
        // If a hint has requested it before, it may be there already.
        match self.states[usize::from(resource)].transfer {
            Transfer::Complete => {
                self.main_thread.push_back(resource);
                self.preloaded.push_back(resource);
            }
            Transfer::Loading => self.preloaded.push_back(resource),
            Transfer::Failed => self.close(resource, now),
            Transfer::Unknown | Transfer::Queued | Transfer::FromCache => {}
        }
    }

    fn request(&mut self, resource: u16, now: Time) {
        let is_cached = self.is_cached(resource);
        let state = &mut self.states[usize::from(resource)];
        if state.transfer != Transfer::Unknown {
            return;
        }
        state.moment.requested = Some(now);
        if is_cached {
            state.transfer = Transfer::FromCache;
            self.start_timer(now + Self::CACHE_TIME, Timer::Cached(resource));
        } else {
            state.transfer = Transfer::Queued;
            self.requests.push_back(resource);
        }
    }

    fn receive(&mut self, resource: u16, received: u64, now: Time) {
        let description = &self.page.resources[usize::from(resource)];
        let is_cached = self.is_cached(resource);
        let state = &mut self.states[usize::from(resource)];
        if !is_cached {
            state.moment.first_byte.get_or_insert(now);
        }
        let added = received
            .min(description.body)
            .saturating_sub(state.received);
        state.received += added;
        let received = state.received;
        if description.kind.is_visible() && self.loaded.is_none() {
            self.curve.add(added, now);
        }
        self.fire(resource, received, now);
    }

    fn complete(&mut self, resource: u16, now: Time) {
        let state = &mut self.states[usize::from(resource)];
        state.transfer = Transfer::Complete;
        state.moment.complete = Some(now);
        if state.is_wanted {
            self.main_thread.push_back(resource);
        }
        let body = self.page.resources[usize::from(resource)].body;
        self.receive(resource, body, now);
        self.fire(resource, COMPLETE, now);
        self.render(now);
    }

    /// Triggers the resources that wait for preloaded ones, and starts pending work of the main thread.
    fn work(&mut self, now: Time) {
        loop {
            if let Some(resource) = self.preloaded.pop_front() {
                let preloaded = self.states[usize::from(resource)];
                let stage = if preloaded.transfer == Transfer::Complete {
                    COMPLETE
                } else {
                    preloaded.received
                };
                self.fire(resource, stage, now);
            } else if self.main_thread_done.is_none()
                && let Some(&resource) = self.main_thread.front()
            {
                let work = self.page.resources[usize::from(resource)].work;
                if work.is_zero() {
                    self.main_thread.pop_front();
                    self.on_executed(resource, now);
                } else {
                    self.main_thread_done = Some(now + work);
                }
            } else {
                break;
            }
        }
    }

    fn on_executed(&mut self, resource: u16, at: Time) {
        self.states[usize::from(resource)].moment.executed = Some(at);
        self.fire(resource, EXECUTED, at);
        self.close(resource, at);
    }

    /// `resource` is executed, or failed and wanted.
    fn close(&mut self, resource: u16, at: Time) {
        let description = &self.page.resources[usize::from(resource)];
        self.open -= 1;
        self.blocking -= usize::from(description.is_blocking);
        self.delaying -= usize::from(description.delays_onload());
        self.render(at);
        if self.delaying == 0 && self.loaded.is_none() {
            self.curve.extend(at);
            self.loaded = Some(at);
        }
        if self.open == 0 {
            self.finished = Some(at);
        }
    }

    fn render(&mut self, at: Time) {
        let document = self.states[usize::from(self.document)].moment;
        if self.first_render.is_none()
            && self.blocking == 0
            && self.main_thread_done.is_none()
            && document.first_byte.or(document.complete).is_some()
        {
            self.first_render = Some(at);
            self.curve.show(at);
        }
    }
}

const fn stage(trigger: Trigger) -> Stage {
    match trigger {
        Trigger::Bytes { offset, .. } => offset,
        Trigger::Complete { .. } => COMPLETE,
        Trigger::Executed { .. } => EXECUTED,
    }
}

/// Whether the bytes of `document` trigger a resource.
fn is_in(document: u16, trigger: Option<Trigger>) -> bool {
    matches!(trigger, Some(Trigger::Bytes { of, .. }) if of == document)
}

#[cfg(test)]
mod tests;
