//! The constant keys that a query reads of its rows, such as `ttlb` of `_["ttlb"]`: what to look for in the rows, to report
//! a key that no row has.
//!
//! Every key counts, also where a condition kept its expression from running, or where the query handles its absence, as
//! in `_["arm"] || "none"`. Exceptions are keys that the query asks for (`_.key?("arm")`) or writes (`_["sum"] = …`).

use crate::names::M;
use std::collections::BTreeSet;

/// A path of keys from a row: `["a", "b"]` for `_["a"]["b"]`.
pub(crate) type KeyPath = Vec<String>;

/// Keys of which rows have one, or none is reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyGroup {
    /// The operands of `||`, mostly a single one, or all keys of a built-in helper.
    pub(crate) paths: Vec<KeyPath>,
    /// The name of the built-in helper, whose keys the query does not name.
    pub(crate) helper: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct ConstantKeys {
    groups: Vec<KeyGroup>,
    /// The built-in helper that is being walked.
    helper: Option<KeyGroup>,
    asked: BTreeSet<KeyPath>,
    written: BTreeSet<String>,
    /// While it is above zero, what is read is not known to be a key of the row.
    pub(super) paused: usize,
}

impl ConstantKeys {
    pub(super) fn read_one_of(&mut self, paths: Vec<KeyPath>) {
        let group: Vec<KeyPath> = paths.into_iter().filter(|path| !path.is_empty()).collect();
        if self.paused > 0 || group.is_empty() {
            return;
        }
        match &mut self.helper {
            Some(helper) => helper.paths.extend(group),
            None => self.add(KeyGroup {
                paths: group,
                helper: None,
            }),
        }
    }

    fn add(&mut self, group: KeyGroup) {
        if !group.paths.is_empty() && !self.groups.contains(&group) {
            self.groups.push(group);
        }
    }

    /// What is read until [`Self::leave`] is of this built-in helper. Returns whether it is within no other.
    pub(super) fn enter(&mut self, helper: &str) -> bool {
        let is_outer = self.helper.is_none();
        self.helper.get_or_insert_with(|| KeyGroup {
            paths: Vec::new(),
            helper: Some(helper.to_owned()),
        });
        is_outer
    }

    pub(super) fn leave(&mut self) {
        if let Some(helper) = self.helper.take() {
            self.add(helper);
        }
    }

    pub(super) fn asked(&mut self, path: KeyPath) {
        self.asked.insert(path);
    }

    pub(super) fn written(&mut self, key: String) {
        self.written.insert(key);
    }

    /// A method is called on a row or on a part of it.
    pub(super) fn called(&mut self, method: M) {
        let writes = matches!(method, M::Delete) || method.name().ends_with('!');
        self.paused += usize::from(writes);
    }

    /// The groups that are looked for.
    pub(crate) fn groups(self) -> Vec<KeyGroup> {
        let is_known = |path: &KeyPath| {
            let is_asked = self.asked.iter().any(|asked| path.starts_with(asked));
            !is_asked && !path.iter().any(|key| self.written.contains(key))
        };
        let groups = self.groups.into_iter();
        groups
            .filter(|group| group.paths.iter().all(is_known))
            .collect()
    }
}
