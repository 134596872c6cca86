//! The sites of a server: names for its requests and connections on the lines of the logs.
//!
//! Owns which site a request belongs to. A connection belongs to the site of its first request.

use std::sync::Arc;

use super::routes::{Place, Places};

#[cfg(test)]
mod tests;

/// The names of the sites.
#[derive(Clone, Debug)]
pub struct Sites(Arc<Names>);

#[derive(Debug)]
struct Names {
    fallback: Option<Arc<str>>,
    places: Places<Arc<str>>,
}

impl Sites {
    /// The site of places, and of all other requests.
    #[must_use]
    pub fn new(fallback: Option<Arc<str>>, places: Vec<(Place, Arc<str>)>) -> Self {
        Self(Arc::new(Names {
            fallback,
            places: Places::new(places),
        }))
    }

    /// The site of a request; `None` if it has no name.
    pub fn of(&self, authority: &str, target: &str) -> Option<&Arc<str>> {
        let found = self.0.places.find(authority, target);
        found.or_else(|| self.fallback())
    }

    /// The site of a connection without requests.
    pub fn fallback(&self) -> Option<&Arc<str>> {
        self.0.fallback.as_ref()
    }
}

impl Default for Sites {
    /// No names.
    fn default() -> Self {
        Self::new(None, Vec::new())
    }
}
