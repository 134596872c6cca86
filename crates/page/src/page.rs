//! The description of a page.

use core::time::Duration;

/// A page: the resources that a browser requests, their hosts, and what triggers each request.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The name of the page in its corpus.
    pub name: String,
    /// The hosts, of which the first serves the document.
    pub hosts: Vec<Host>,
    /// The resources, of which the first is the document. A trigger names an earlier resource.
    pub resources: Vec<Resource>,
}

/// A host of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The name, as in URLs.
    pub name: String,
    /// Whose it is.
    pub party: Party,
    /// The hosts with the same number share address and certificate, so that HTTP/2 and 3 use one connection for all of them
    /// (RFC 9113 §9.1.1, RFC 9114 §3.3).
    pub group: u16,
    /// Whether it serves HTTP/3, in a partial deployment.
    pub has_http3: bool,
    /// The time that it is farther away than the first host: added to the round-trip time of the path. Negative when nearer.
    pub rtt_extra_us: i32,
}

/// Whose a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The site's own.
    First,
    /// Another's: analytics, advertisements, libraries.
    Third,
}

/// A resource of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The index of its host.
    pub host: u16,
    /// The kind.
    pub kind: Kind,
    /// Bytes of the request's header as HTTP/1.1 would write it.
    pub request_header: u32,
    /// Bytes of the response's header as HTTP/1.1 would write it.
    pub response_header: u32,
    /// Bytes of the response's body as transferred, that is with its content coding.
    pub body: u64,
    /// Time of the server before its first byte.
    pub wait: Duration,
    /// What makes the browser request it. `None` for the document.
    pub trigger: Option<Trigger>,
    /// Delay between trigger and request.
    pub delay: Duration,
    /// Time of the main thread to parse or execute it, once it is complete.
    pub work: Duration,
    /// Whether it blocks rendering until it is complete and executed.
    pub is_blocking: bool,
    /// The priority that Chromium gives it.
    pub priority: Priority,
    /// Whether the repeat view finds it in the cache.
    pub is_cacheable: bool,
    /// Whether a 103 (Early Hints) response of the document names it (RFC 8297).
    pub is_hinted: bool,
}

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The document, or that of a frame.
    Document,
    /// A style sheet.
    Stylesheet,
    /// A script.
    Script,
    /// A font.
    Font,
    /// An image.
    Image,
    /// Audio or video.
    Media,
    /// A fetch of a script.
    Fetch,
    /// Anything else.
    Other,
}

/// A priority (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Urgency, 0 (first) to 7 (last).
    pub urgency: u8,
    /// Whether parts of the response are useful by themselves.
    pub is_incremental: bool,
}

/// What makes a browser request a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The first `offset` bytes of the body of resource `of` have arrived: the preload scanner found it.
    Bytes {
        /// The index of the resource.
        of: u16,
        /// The number of bytes.
        offset: u64,
    },
    /// Resource `of` is complete.
    Complete {
        /// The index of the resource.
        of: u16,
    },
    /// The main thread has parsed or executed resource `of`.
    Executed {
        /// The index of the resource.
        of: u16,
    },
}

/// Which visit it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// With an empty cache.
    First,
    /// With the cache of the first view.
    Repeat,
}

/// Why a page is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PageError(String);

impl Page {
    /// The largest number of resources.
    pub const RESOURCES_MAX: usize = 10_000;
    /// The largest body, in bytes.
    pub const BODY_MAX: u64 = 1 << 30;
    /// The largest header of a request or response, in bytes.
    pub const HEADER_MAX: u32 = 1 << 16;

    /// Checks that indices, sizes and triggers are valid.
    ///
    /// # Errors
    ///
    /// [`PageError`] when there is no host or no resource, when the first resource is not a document, when there are more than [`Self::RESOURCES_MAX`] of either, when an
    /// index is out of range, when a trigger names a resource that does not come earlier, when the document has a trigger or
    /// another resource has none, or when a size is beyond its limit.
    pub fn check(&self) -> Result<(), PageError> {
        let error = |text: String| Err(PageError(format!("page `{}`: {text}", self.name)));
        if self.hosts.is_empty() || self.hosts.len() > Self::RESOURCES_MAX {
            return error(format!(
                "{} hosts (expected 1 to {})",
                self.hosts.len(),
                Self::RESOURCES_MAX
            ));
        }
        if self.resources.is_empty() || self.resources.len() > Self::RESOURCES_MAX {
            return error(format!(
                "{} resources (expected 1 to {})",
                self.resources.len(),
                Self::RESOURCES_MAX
            ));
        }
        if self.resources[0].kind != Kind::Document {
            return error(format!(
                "resource 0: kind `{}` (expected `document`)",
                self.resources[0].kind.name()
            ));
        }
        for (index, resource) in self.resources.iter().enumerate() {
            if usize::from(resource.host) >= self.hosts.len() {
                return error(format!(
                    "resource {index}: host {} (expected 0 to {})",
                    resource.host,
                    self.hosts.len() - 1
                ));
            }
            match resource.trigger {
                None if index > 0 => return error(format!("resource {index}: no trigger")),
                Some(_) if index == 0 => {
                    return error("resource 0: a trigger (the document has none)".to_owned());
                }
                Some(trigger) if usize::from(trigger.of()) >= index => {
                    return error(format!(
                        "resource {index}: trigger {} (expected an earlier resource)",
                        trigger.of()
                    ));
                }
                Some(Trigger::Bytes { of, offset })
                    if offset > self.resources[usize::from(of)].body =>
                {
                    return error(format!(
                        "resource {index}: trigger at byte {offset} of resource {of}, which has {}",
                        self.resources[usize::from(of)].body
                    ));
                }
                _ => {}
            }
            if resource.body > Self::BODY_MAX {
                return error(format!(
                    "resource {index}: body of {} bytes (expected at most {})",
                    resource.body,
                    Self::BODY_MAX
                ));
            }
            if resource.request_header.max(resource.response_header) > Self::HEADER_MAX {
                return error(format!(
                    "resource {index}: header of {} bytes (expected at most {})",
                    resource.request_header.max(resource.response_header),
                    Self::HEADER_MAX
                ));
            }
            if resource.priority.urgency > 7 {
                return error(format!(
                    "resource {index}: urgency {} (expected 0 to 7)",
                    resource.priority.urgency
                ));
            }
        }
        Ok(())
    }
}

impl Page {
    /// The index of the document: the first resource, or the target of its redirects. A redirect is a document at whose completion the
    /// next resource, a document too, is requested.
    pub fn document(&self) -> u16 {
        let redirects = (0..).zip(self.resources.iter().skip(1));
        redirects
            .take_while(|(index, next)| {
                next.kind == Kind::Document
                    && next.trigger == Some(Trigger::Complete { of: *index })
            })
            .count() as u16
    }

    /// Moves all resources to the host of the document.
    pub fn move_to_one_host(&mut self) {
        let host = self.resources[usize::from(self.document())].host;
        self.hosts = vec![self.hosts.swap_remove(usize::from(host))];
        for resource in &mut self.resources {
            resource.host = 0;
        }
    }
}

impl Host {
    /// A host of the site itself, with HTTP/3, at the round-trip time of the path.
    #[must_use]
    pub fn first_party(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            party: Party::First,
            group: 0,
            has_http3: true,
            rtt_extra_us: 0,
        }
    }
}

impl Resource {
    /// A resource with headers of usual size, without a trigger.
    #[must_use]
    pub fn new(host: u16, kind: Kind, body: u64) -> Self {
        Self {
            host,
            kind,
            request_header: 450,
            response_header: 400,
            body,
            wait: Duration::ZERO,
            trigger: None,
            delay: Duration::ZERO,
            work: Duration::ZERO,
            is_blocking: matches!(kind, Kind::Stylesheet),
            priority: kind.priority(),
            is_cacheable: !matches!(kind, Kind::Document | Kind::Fetch),
            is_hinted: false,
        }
    }

    /// Whether the load event waits for it, if it is wanted before that event.
    pub const fn delays_onload(&self) -> bool {
        self.kind.delays_onload() || self.is_blocking
    }

    /// This resource, requested `delay` after `trigger`.
    #[must_use]
    pub fn triggered(self, trigger: Trigger, delay: Duration) -> Self {
        Self {
            trigger: Some(trigger),
            delay,
            ..self
        }
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Document,
        Self::Stylesheet,
        Self::Script,
        Self::Font,
        Self::Image,
        Self::Media,
        Self::Fetch,
        Self::Other,
    ];

    /// The name in corpus files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Stylesheet => "stylesheet",
            Self::Script => "script",
            Self::Font => "font",
            Self::Image => "image",
            Self::Media => "media",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }

    /// The priority that Chromium gives a resource of this kind unless something raises or lowers it.
    ///
    /// Chromium derives a load priority from the kind (`TypeToPriority` in Blink's `resource_fetcher.cc`) and sends it as urgency:
    /// "very high" is 0, "high" 1, "medium" 2, "low" 3 and "very low" 4. `ShouldLoadIncremental` in `resource_request_utils.cc`
    /// says what is incremental.
    pub const fn priority(self) -> Priority {
        let (urgency, is_incremental) = match self {
            Self::Document => (0, true),
            Self::Stylesheet | Self::Font => (0, false),
            Self::Script => (1, false),
            Self::Fetch => (1, true),
            Self::Image | Self::Media => (3, true),
            Self::Other => (4, true),
        };
        Priority {
            urgency,
            is_incremental,
        }
    }

    /// Whether the load event waits for a resource of this kind that is wanted before it: not for what scripts fetch, media, and
    /// the rest (prefetches, manifests, beacons, icons).
    pub const fn delays_onload(self) -> bool {
        !matches!(self, Self::Fetch | Self::Media | Self::Other)
    }

    /// Whether a user sees it, so that it counts in the curve of bytes shown.
    pub const fn is_visible(self) -> bool {
        matches!(
            self,
            Self::Document | Self::Stylesheet | Self::Font | Self::Image
        )
    }
}

impl Trigger {
    /// The index of the resource that it names.
    pub const fn of(self) -> u16 {
        match self {
            Self::Bytes { of, .. } | Self::Complete { of } | Self::Executed { of } => of,
        }
    }
}

#[cfg(test)]
mod tests;
