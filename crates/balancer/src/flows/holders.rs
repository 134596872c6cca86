//! The flows in a state by the prefix of their client's address.
//!
//! Owns which prefix has most, and the order of each prefix's flows. A prefix has an entry as long as it has a flow in the
//! state, so there are never more than flows. A flow is added or removed in O(log n); its activity costs O(1) and allocates
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use lastbyte_units::AddressPrefix;

use super::list::{Linked, List, Which};

pub(super) type HolderIndex = u32;

struct Holder {
    prefix: AddressPrefix,
    /// By activity.
    flows: List,
}

#[derive(Default)]
pub(super) struct Holders {
    by_prefix: BTreeMap<AddressPrefix, HolderIndex>,
    /// The number of flows of each prefix, and its index.
    by_count: BTreeSet<(usize, HolderIndex)>,
    entries: Vec<Holder>,
    /// Indices without a prefix.
    free: Vec<HolderIndex>,
}

impl Holders {
    /// The flows of a prefix.
    pub(super) fn count(&self, prefix: AddressPrefix) -> usize {
        let holder = self.by_prefix.get(&prefix);
        let holder = holder.and_then(|at| self.entries.get(*at as usize));
        holder.map_or(0, |holder| holder.flows.len)
    }

    /// The least active flow of the prefix that has most, and their number.
    pub(super) fn largest(&self) -> Option<(u32, usize)> {
        let (count, at) = *self.by_count.last()?;
        let oldest = self.entries.get(at as usize)?.flows.oldest?;
        Some((oldest, count))
    }

    /// Adds a flow to a prefix, as its most active.
    pub(super) fn add(
        &mut self,
        prefix: AddressPrefix,
        flows: &mut [impl Linked],
        flow: u32,
    ) -> HolderIndex {
        let known = self.by_prefix.get(&prefix).copied();
        let at = known.unwrap_or_else(|| self.create(prefix));
        if let Some(holder) = self.entries.get_mut(at as usize) {
            let before = holder.flows.len;
            holder.flows.append(flows, Which::OfHolder, flow);
            self.count_changed(at, before, before + 1);
        }
        at
    }

    /// Makes a flow the most active of its prefix.
    pub(super) fn refresh(&mut self, at: HolderIndex, flows: &mut [impl Linked], flow: u32) {
        if let Some(holder) = self.entries.get_mut(at as usize) {
            holder.flows.remove(flows, Which::OfHolder, flow);
            holder.flows.append(flows, Which::OfHolder, flow);
        }
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, at: HolderIndex, flows: &mut [impl Linked], flow: u32) {
        let Some(holder) = self.entries.get_mut(at as usize) else {
            return;
        };
        let (prefix, before) = (holder.prefix, holder.flows.len);
        holder.flows.remove(flows, Which::OfHolder, flow);
        self.count_changed(at, before, before - 1);
        if before == 1 {
            self.by_prefix.remove(&prefix);
            self.free.push(at);
        }
    }

    fn create(&mut self, prefix: AddressPrefix) -> HolderIndex {
        let holder = Holder {
            prefix,
            flows: List::default(),
        };
        let free = self.free.pop();
        let at = free.unwrap_or(self.entries.len() as HolderIndex);
        match self.entries.get_mut(at as usize) {
            Some(place) => *place = holder,
            None => self.entries.push(holder),
        }
        self.by_prefix.insert(prefix, at);
        at
    }

    fn count_changed(&mut self, at: HolderIndex, from: usize, to: usize) {
        self.by_count.remove(&(from, at));
        if to > 0 {
            self.by_count.insert((to, at));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.by_prefix.len(), self.by_count.len());
        assert_eq!(self.by_prefix.len(), self.entries.len() - self.free.len());
        self.by_prefix.len()
    }
}
