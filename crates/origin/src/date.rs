//! The `date` of responses, formatted once a second (RFC 9110 §6.6.1).

use core::time::Duration;

use crate::representation::validator::http_date;

/// The date as text.
#[derive(Clone, Debug, Default)]
pub struct Date {
    second: u64,
    text: String,
}

impl Date {
    /// The date at this time since the Unix epoch.
    pub fn at(&mut self, now: Duration) -> &str {
        if self.second != now.as_secs() || self.text.is_empty() {
            self.second = now.as_secs();
            self.text = http_date(now);
        }
        &self.text
    }
}
