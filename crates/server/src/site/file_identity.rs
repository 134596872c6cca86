//! The attributes by which a change of a file is detected, and the entity tag that follows from them.

use std::time::Duration;

use rustix::fs::Stat;

use crate::representation::validator::EntityTag;

/// A file that was changed so recently may be changed again without another date: its tag is weak.
const UNSETTLED: Duration = Duration::from_secs(1);

/// The attributes by which a change of a file is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub(crate) len: u64,
    /// Since the Unix epoch.
    pub(crate) modified: Duration,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        // Before 1970 it is 1970.
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
        Self {
            len: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Duration::new(seconds, nanos.min(999_999_999)),
        }
    }

    /// Whether the last change is long enough ago that another would have another date.
    pub(super) fn is_settled(self, now: Duration) -> bool {
        now >= self.modified + UNSETTLED
    }

    /// The tag of what is in the file. Servers that have the same copy, with its times, give the same.
    pub(super) fn etag(self, now: Duration, coding: Option<&str>) -> EntityTag {
        let Self { len, modified } = self;
        let suffix = coding.map_or(String::new(), |coding| format!("-{coding}"));
        let opaque = format!("{:x}-{len:x}{suffix}", modified.as_nanos());
        if self.is_settled(now) {
            EntityTag::strong(&opaque)
        } else {
            EntityTag::weak(&opaque)
        }
    }
}
