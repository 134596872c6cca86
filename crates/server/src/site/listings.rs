//! Directory listings that requests share.
//!
//! Making a page reads the directory and the date of each file. So pages are cached, making them may take a tenth of one
//! core, after a burst, and the pages that slow clients hold in memory have a limit. Other requests are refused.

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_driver::Clock;
use lastbyte_quic::stream::{Source, SourceError};

/// Time that a page is reused for other requests.
const VALID_FOR: Duration = Duration::from_secs(1);
/// Maximum number of cached pages.
const PAGES_MAX: usize = 64;
/// Maximum size of all pages, cached or in responses, in bytes. The last one may exceed it.
const HELD_MAX: usize = 64 << 20;
/// The time between two pages, as a multiple of the time that the first one took.
const SHARE: u32 = 10;
/// How much of that time may be owed.
const BURST: Duration = Duration::from_secs(1);

/// The pages of a site.
#[derive(Default)]
pub(super) struct Listings {
    clock: Clock,
    state: Mutex<State>,
    held: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    pages: BTreeMap<String, (Page, Time)>,
    /// When the time for the pages made so far is over.
    paid_until: Time,
}

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Unavailable {
    /// The cache has the maximum number of pages.
    Busy,
    /// The directory cannot be read.
    Failed,
}

/// A page. It counts as held until the last clone is dropped.
#[derive(Clone)]
pub(super) struct Page(Arc<Held>);

struct Held {
    text: Vec<u8>,
    held: Arc<AtomicUsize>,
}

impl Listings {
    /// The page for a path: a cached one, or a new one by `make`.
    pub(super) fn page(
        &self,
        path: &str,
        make: impl FnOnce() -> io::Result<String>,
    ) -> Result<Page, Unavailable> {
        let began = self.clock.now();
        {
            let mut state = self.state();
            state.pages.retain(|_, (_, until)| *until > began);
            if let Some((page, _)) = state.pages.get(path) {
                return Ok(page.clone());
            }
            let is_full = self.held.load(Ordering::Relaxed) >= HELD_MAX;
            if is_full || !state.has_time(began) {
                return Err(Unavailable::Busy);
            }
        }
        let text = make().map_err(|_| Unavailable::Failed)?;
        let page = Page::new(text, &self.held);
        self.state()
            .on_made(path, page.clone(), began, self.clock.now());
        Ok(page)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_time(&self, now: Time) -> bool {
        self.paid_until <= now + BURST
    }

    fn on_made(&mut self, path: &str, page: Page, began: Time, now: Time) {
        self.paid_until = self.paid_until.max(began) + now.since(began) * SHARE;
        if self.pages.len() < PAGES_MAX {
            self.pages.insert(path.to_owned(), (page, now + VALID_FOR));
        }
    }
}

impl Page {
    fn new(text: String, held: &Arc<AtomicUsize>) -> Self {
        let mut text = text.into_bytes();
        text.shrink_to_fit();
        held.fetch_add(text.len(), Ordering::Relaxed);
        Self(Arc::new(Held {
            text,
            held: Arc::clone(held),
        }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.held.fetch_sub(self.text.len(), Ordering::Relaxed);
    }
}

impl Source for Page {
    fn len(&self) -> u64 {
        self.0.text.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.0.text.read_at(offset, buffer)
    }
}

impl fmt::Debug for Listings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listings")
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a page, however long that took before.
    fn make(listings: &Listings, path: &str, len: usize) -> Option<Page> {
        listings.state().paid_until = Time::ZERO;
        listings.page(path, || Ok("x".repeat(len))).ok()
    }

    #[test]
    fn a_page_is_made_once_for_requests_within_a_second() {
        let listings = Listings::default();
        let first = make(&listings, "/a/", 5).expect("a page");
        for (_, until) in listings.state().pages.values_mut() {
            *until = Time::MAX;
        }
        let again = listings.page("/a/", || panic!("it is cached"));
        assert_eq!(again.expect("a page").len(), first.len());
        let mut state = listings.state();
        state.pages.clear();
        for number in 0..100 {
            let page = Page::new(String::new(), &listings.held);
            state.on_made(&number.to_string(), page, Time::ZERO, Time::ZERO);
        }
        assert_eq!(state.pages.len(), PAGES_MAX);
    }

    #[test]
    fn a_page_is_made_again_after_a_second() {
        let listings = Listings::default();
        let before = listings.clock.now();
        make(&listings, "/a/", 5).expect("a page");
        let after = listings.clock.now();
        let (_, until) = listings.state().pages["/a/"];
        assert!((before + VALID_FOR..=after + VALID_FOR).contains(&until));
        // As if it was over.
        for (_, until) in listings.state().pages.values_mut() {
            *until = after;
        }
        let again = make(&listings, "/a/", 6).expect("a page");
        assert_eq!(again.len(), 6);
        assert_eq!(listings.state().pages["/a/"].0.len(), 6);
    }

    #[test]
    fn making_pages_takes_a_tenth_of_the_time() {
        let mut state = State::default();
        let took = Duration::from_millis(50);
        let (mut now, mut made) = (Time::ZERO, 0);
        while now < Time::ZERO + Duration::from_secs(100) {
            if state.has_time(now) {
                let page = Page::new(String::new(), &Arc::default());
                state.on_made("/", page, now, now + took);
                made += 1;
                now = now + took;
            } else {
                now = now + Duration::from_millis(1);
            }
        }
        // 200 in a tenth of 100 s, and the burst.
        assert!((200..=204).contains(&made), "{made}");
    }

    #[test]
    fn pages_in_responses_have_a_limit() {
        let listings = Listings::default();
        let half = make(&listings, "/a/", HELD_MAX / 2).expect("a page");
        let rest = make(&listings, "/b/", HELD_MAX / 2).expect("a page");
        // They are no longer cached, but clients have not read them.
        listings.state().pages.clear();
        assert!(make(&listings, "/c/", 1).is_none());
        drop(half);
        assert!(make(&listings, "/c/", 1).is_some());
        drop(rest);
        listings.state().pages.clear();
        assert_eq!(listings.held.load(Ordering::Relaxed), 0);
    }
}
