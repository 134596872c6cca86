//! The state machine of a browser that loads a page.

use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

use core::cmp::Reverse;

use lastbyte_units::Time;

use crate::page::{Page, Trigger, View};

/// A page that is being loaded.
///
/// The driver calls [`Self::next_request`] until it returns `None`, after the start and after each event, and
/// [`Self::on_deadline`] at [`Self::deadline`].
#[derive(Debug)]
pub struct Load<'a> {
    page: &'a Page,
    resources: Vec<State>,
    /// The resources that each resource triggers.
    triggered: Vec<Vec<u16>>,
    /// The resources that are requested when their delay has passed.
    due: BinaryHeap<Reverse<(Time, u16)>>,
    /// Requests that the driver has not taken yet, in order of discovery.
    requests: VecDeque<u16>,
    /// The resources that wait for the main thread, in order of completion.
    main_thread: VecDeque<u16>,
    /// When the first of them is done.
    main_thread_done: Option<Time>,
    /// Resources that are known and not yet complete and executed.
    open: usize,
    /// Render-blocking resources that are known and not yet executed, the document's first bytes among them.
    blocking: usize,
    first_render: Option<Time>,
    loaded: Option<Time>,
}

/// When a resource went through its stages. What has not happened is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When it was discovered and given to the driver.
    pub requested: Option<Time>,
    /// When the first byte of its response arrived.
    pub first_byte: Option<Time>,
    /// When its last byte arrived.
    pub complete: Option<Time>,
    /// When the main thread was done with it.
    pub executed: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    moment: Moment,
    received: u64,
    is_due: bool,
}

impl<'a> Load<'a> {
    /// Starts to load `page` at `now`. Its document is the first request. The page must pass [`Page::check`].
    #[must_use]
    pub fn new(page: &'a Page, view: View, now: Time) -> Self {
        let _ = (view, Duration::ZERO);
        let mut triggered = vec![Vec::new(); page.resources.len()];
        for (index, resource) in page.resources.iter().enumerate() {
            if let Some(trigger) = resource.trigger {
                triggered[usize::from(trigger.of())].push(index as u16);
            }
        }
        let mut load = Self {
            page,
            resources: vec![State::default(); page.resources.len()],
            triggered,
            due: BinaryHeap::new(),
            requests: VecDeque::new(),
            main_thread: VecDeque::new(),
            main_thread_done: None,
            open: 0,
            blocking: 0,
            first_render: None,
            loaded: None,
        };
        load.discover(0, now);
        load
    }

    /// The page.
    #[must_use]
    pub const fn page(&self) -> &'a Page {
        self.page
    }

    /// The index of the resource to request now, if any. In order of discovery.
    pub fn next_request(&mut self) -> Option<u16> {
        self.requests.pop_front()
    }

    /// The first byte of the response to the request of `resource` arrived.
    pub fn on_first_byte(&mut self, resource: u16, now: Time) {
        self.resources[usize::from(resource)]
            .moment
            .first_byte
            .get_or_insert(now);
    }

    /// `received` bytes of the body of `resource` have arrived in order, counted from its beginning.
    pub fn on_body(&mut self, resource: u16, received: u64, now: Time) {
        self.on_first_byte(resource, now);
        let state = &mut self.resources[usize::from(resource)];
        state.received = state.received.max(received);
        let received = state.received;
        self.fire(
            resource,
            now,
            |trigger| matches!(trigger, Trigger::Bytes { offset, .. } if offset <= received),
        );
    }

    /// The last byte of `resource` arrived, or its request failed: a browser goes on without it.
    pub fn on_complete(&mut self, resource: u16, now: Time) {
        let index = usize::from(resource);
        if self.resources[index].moment.complete.is_some() {
            return;
        }
        self.resources[index].moment.complete = Some(now);
        self.on_body(resource, self.page.resources[index].body, now);
        self.fire(resource, now, |trigger| {
            matches!(trigger, Trigger::Complete { .. })
        });
        self.main_thread.push_back(resource);
        self.work(now);
    }

    /// When [`Self::on_deadline`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let due = self.due.peek().map(|Reverse((time, _))| *time);
        Time::earlier(due, self.main_thread_done)
    }

    /// Time has passed.
    pub fn on_deadline(&mut self, now: Time) {
        while let Some(Reverse((time, resource))) = self.due.peek().copied()
            && time <= now
        {
            self.due.pop();
            self.requests.push_back(resource);
            self.resources[usize::from(resource)]
                .moment
                .requested
                .get_or_insert(now);
        }
        self.work(now);
    }

    /// The times of a resource.
    #[must_use]
    pub fn moment(&self, resource: u16) -> Moment {
        self.resources[usize::from(resource)].moment
    }

    /// When all render-blocking resources known by then were complete and executed and bytes of the document had arrived.
    #[must_use]
    pub const fn first_render(&self) -> Option<Time> {
        self.first_render
    }

    /// When everything was complete and executed (`onload`).
    #[must_use]
    pub const fn loaded(&self) -> Option<Time> {
        self.loaded
    }

    fn fire(&mut self, of: u16, now: Time, is_met: impl Fn(Trigger) -> bool) {
        for position in 0..self.triggered[usize::from(of)].len() {
            let resource = self.triggered[usize::from(of)][position];
            let trigger = self.page.resources[usize::from(resource)].trigger;
            if trigger.is_some_and(&is_met) {
                self.discover(resource, now);
            }
        }
    }

    fn discover(&mut self, resource: u16, now: Time) {
        let index = usize::from(resource);
        if self.resources[index].is_due {
            return;
        }
        self.resources[index].is_due = true;
        self.open += 1;
        self.blocking += usize::from(self.page.resources[index].is_blocking);
        let delay = self.page.resources[index].delay;
        if delay.is_zero() {
            self.requests.push_back(resource);
            self.resources[index].moment.requested = Some(now);
        } else {
            self.due.push(Reverse((now + delay, resource)));
        }
    }

    fn work(&mut self, now: Time) {
        loop {
            match (self.main_thread_done, self.main_thread.front()) {
                (Some(done), Some(&resource)) if done <= now => {
                    self.main_thread.pop_front();
                    self.main_thread_done = None;
                    self.on_executed(resource, done);
                }
                (None, Some(&resource)) => {
                    self.main_thread_done =
                        Some(now + self.page.resources[usize::from(resource)].work);
                }
                _ => break,
            }
        }
        if self.first_render.is_none()
            && self.blocking == 0
            && self.resources[0].moment.first_byte.is_some()
        {
            self.first_render = Some(now);
        }
    }

    fn on_executed(&mut self, resource: u16, at: Time) {
        let index = usize::from(resource);
        self.resources[index].moment.executed = Some(at);
        self.fire(resource, at, |trigger| {
            matches!(trigger, Trigger::Executed { .. })
        });
        self.open -= 1;
        self.blocking -= usize::from(self.page.resources[index].is_blocking);
        if self.open == 0 {
            self.loaded = Some(at);
        }
    }
}
