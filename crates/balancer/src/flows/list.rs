//! Lists of flows by activity, which are linked through the entries of the table.

/// An entry's index.
pub(super) type Link = Option<u32>;

/// An entry of the table.
pub(super) trait Linked {
    fn links(&mut self, which: Which) -> &mut Links;
}

/// The flows of a state, or of a prefix.
#[derive(Clone, Copy, Default)]
pub(super) struct List {
    pub(super) oldest: Link,
    newest: Link,
    pub(super) len: usize,
}

/// Which of the two lists that a flow is in.
#[derive(Clone, Copy)]
pub(super) enum Which {
    OfState,
    OfHolder,
}

/// The neighbours of a flow in a list.
#[derive(Clone, Copy)]
pub(super) struct Links {
    older: Link,
    newer: Link,
}

impl Links {
    pub(super) const NONE: Self = Self {
        older: None,
        newer: None,
    };
}

impl List {
    /// Makes a flow the newest.
    pub(super) fn append(&mut self, entries: &mut [impl Linked], which: Which, flow: u32) {
        let older = self.newest.replace(flow);
        self.len += 1;
        if let Some(links) = links(entries, which, Some(flow)) {
            (links.older, links.newer) = (older, None);
        }
        match links(entries, which, older) {
            Some(links) => links.newer = Some(flow),
            None => self.oldest = Some(flow),
        }
    }

    pub(super) fn remove(&mut self, entries: &mut [impl Linked], which: Which, flow: u32) {
        let Some(&mut Links { older, newer }) = links(entries, which, Some(flow)) else {
            return;
        };
        self.len -= 1;
        match links(entries, which, older) {
            Some(links) => links.newer = newer,
            None => self.oldest = newer,
        }
        match links(entries, which, newer) {
            Some(links) => links.older = older,
            None => self.newest = older,
        }
    }
}

fn links(entries: &mut [impl Linked], which: Which, flow: Link) -> Option<&mut Links> {
    let entry = entries.get_mut(flow? as usize)?;
    Some(entry.links(which))
}
