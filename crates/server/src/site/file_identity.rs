//! The attributes by which a change of a file is detected, and its entity tag.

use std::time::Duration;

use rustix::fs::Stat;

use crate::representation::validator::EntityTag;

/// A file changed so recently may change again without another date: its tag is weak.
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

    /// Whether the last change is long enough ago that another one would have another date.
    pub(super) fn is_settled(self, now: Duration) -> bool {
        now >= self.modified + UNSETTLED
    }

    /// The entity tag of the content. Servers with the same copy, including its times, generate the same tag.
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
