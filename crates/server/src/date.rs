//! The `date` of responses over TCP, formatted once a second (RFC 9110 §6.6.1).

use std::sync::{Mutex, PoisonError};

use http::HeaderValue;
use lastbyte_driver::Clock;

use lastbyte_origin::representation::validator::http_date;

/// The date as the value of a field, for the tasks of a thread.
#[derive(Debug)]
pub(crate) struct DateField(Mutex<(u64, HeaderValue)>);

impl Default for DateField {
    fn default() -> Self {
        // Replaced before it is used, unless the clock is at its beginning.
        let value = HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
        Self(Mutex::new((0, value)))
    }
}

impl DateField {
    pub(crate) fn now(&self) -> HeaderValue {
        let now = Clock::since_epoch();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != now.as_secs()
            && let Ok(value) = http_date(now).try_into()
        {
            *known = (now.as_secs(), value);
        }
        known.1.clone()
    }
}
