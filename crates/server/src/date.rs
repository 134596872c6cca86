//! The `date` of responses, formatted once a second (RFC 9110 §6.6.1).

use lastbyte_driver::Clock;

use crate::representation::validator::http_date;

/// The date as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Date {
    second: u64,
    text: String,
}

impl Date {
    pub(crate) fn now(&mut self) -> &str {
        let now = Clock::since_epoch();
        if self.second != now.as_secs() || self.text.is_empty() {
            self.second = now.as_secs();
            self.text = http_date(now);
        }
        &self.text
    }
}
