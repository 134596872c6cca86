//! Looks for the constant keys of a query in the rows, to report those that no row has. A key is looked for until a row has
//! it, which mostly is the first.

use crate::error::AbsentKey;
use crate::names::nearest;
use crate::plan::constant_keys::{KeyGroup, KeyPath};
use crate::value::Value;
use lastbyte_json::Value as Plain;
use lastbyte_json::parse::{Keys, Parser, Projection};
use lastbyte_json::scan::{Kind, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The names of keys are collected from rows in this number of bytes at the start of the input.
const NAMES_BYTES: usize = 64 << 10;

/// What the rows of a part have.
pub(super) struct Seen {
    pub(super) rows: u64,
    /// Keys by their place among those that are looked for; `None` if no row is an object.
    keys: Option<Vec<usize>>,
}

/// A key that is looked for.
struct Wanted {
    path: KeyPath,
    /// The place of its first part among the fields of the reader.
    field: Option<usize>,
    /// The last part, as rows mostly write it.
    literal: String,
}

pub(super) struct KeySearch {
    /// Paths of which one must be there, by their place in `wanted`, and the built-in helper that reads them.
    groups: Vec<(Vec<usize>, Option<String>)>,
    /// The paths of the groups and what leads to them.
    wanted: Vec<Wanted>,
    /// Those that no row had so far.
    open: Vec<usize>,
    /// Number of rows.
    pub(super) rows: u64,
    /// Whether one of them is an object.
    has_objects: bool,
    /// The names of keys by the path of their object.
    names: BTreeMap<KeyPath, BTreeSet<String>>,
    /// Paths that rows have in place of a key with dots: `["a", "b"]` for `a.b`.
    nested: BTreeSet<KeyPath>,
    names_bytes: usize,
}

impl KeySearch {
    pub(super) fn new(groups: Vec<KeyGroup>, read: &Projection) -> KeySearch {
        let fields = match read {
            Projection::Whole => &[][..],
            Projection::Fields(fields) => fields,
        };
        let mut search = KeySearch {
            groups: Vec::new(),
            wanted: Vec::new(),
            open: Vec::new(),
            rows: 0,
            has_objects: false,
            names: BTreeMap::new(),
            nested: BTreeSet::new(),
            names_bytes: NAMES_BYTES,
        };
        for group in groups {
            let mut places = Vec::new();
            for path in group.paths {
                for length in 1..path.len() {
                    search.place(&path[..length], fields);
                }
                places.push(search.place(&path, fields));
            }
            search.groups.push((places, group.helper));
        }
        search.restart();
        search
    }

    /// The place of a path, which is looked for from now on.
    fn place(&mut self, path: &[String], fields: &[(String, Projection)]) -> usize {
        let known = self.wanted.iter().position(|wanted| wanted.path == path);
        known.unwrap_or_else(|| {
            let first = path.first();
            self.wanted.push(Wanted {
                path: path.to_vec(),
                field: fields.iter().position(|(name, _)| Some(name) == first),
                literal: format!("\"{}\"", path.last().map_or("", String::as_str)),
            });
            self.wanted.len() - 1
        })
    }

    /// Forgets which keys rows had.
    pub(super) fn restart(&mut self) {
        self.open.clear();
        self.open.extend(0..self.wanted.len());
        self.rows = 0;
        self.has_objects = false;
    }

    /// Collects no names, since another search does.
    pub(super) fn without_names(&mut self) {
        self.names_bytes = 0;
    }

    /// Whether a key is still looked for.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Looks at the fields that the reader has found in a line.
    pub(super) fn scanned(&mut self, found: &[Option<Span>], bytes: &[u8], line: Range<usize>) {
        self.has_objects = true;
        let wanted = &self.wanted;
        self.open.retain(|at| {
            let Some(span) = wanted[*at].field.and_then(|field| found[field]) else {
                return true;
            };
            !wanted[*at].is_within(span, &bytes[span.start..span.end])
        });
        self.collect_names(&bytes[line]);
    }

    /// Looks at a row that was built from its text.
    pub(super) fn row(&mut self, row: &Value, text: &[u8]) {
        if !matches!(row, Value::Hash(_)) {
            return;
        }
        self.has_objects = true;
        let wanted = &self.wanted;
        self.open.retain(|at| !has(row, &wanted[*at].path));
        self.collect_names(text);
    }

    /// Collects the names of the keys of a row, if it is near the start of the input.
    fn collect_names(&mut self, line: &[u8]) {
        if self.names_bytes == 0 || self.open.is_empty() {
            return;
        }
        self.names_bytes = self.names_bytes.saturating_sub(line.len());
        let Ok(row) = Parser::<Plain>::new(line, &mut Keys::default()).only(&Projection::Whole)
        else {
            return;
        };
        for at in &self.open {
            let Some((name, parents)) = self.wanted[*at].path.split_last() else {
                continue;
            };
            let object = parents.iter().try_fold(&row, |value, key| value.get(key));
            let keys = object.and_then(Plain::as_object).unwrap_or_default();
            if !keys.is_empty() {
                let names = self.names.entry(parents.to_vec()).or_default();
                names.extend(keys.iter().map(|(name, _)| name.clone()));
            }
            let nested = with_dots(parents, name);
            if nested.len() > parents.len() + 1
                && nested
                    .iter()
                    .try_fold(&row, |value, key| value.get(key))
                    .is_some()
            {
                self.nested.insert(nested);
            }
        }
    }

    /// The keys that rows had since the last start.
    pub(super) fn seen(&self) -> Seen {
        let is_seen = |at: &usize| !self.open.contains(at);
        let keys = || (0..self.wanted.len()).filter(is_seen).collect();
        Seen {
            rows: self.rows,
            keys: self.has_objects.then(keys),
        }
    }

    /// Adds what a search in a later part has seen.
    pub(super) fn add(&mut self, seen: &Seen) {
        self.rows += seen.rows;
        if let Some(keys) = &seen.keys {
            self.has_objects = true;
            self.open.retain(|at| !keys.contains(at));
        }
    }

    /// The keys that no row had, if there was a row.
    pub(super) fn absent(&self, is_whole: bool) -> Vec<AbsentKey> {
        let is_absent = |at: &usize| self.open.contains(at);
        let groups = self
            .groups
            .iter()
            .filter(|(group, _)| self.has_objects && group.iter().all(is_absent));
        let mut paths: Vec<AbsentKey> = Vec::new();
        for (at, helper) in groups.flat_map(|(group, helper)| {
            let shown = if helper.is_some() { 1 } else { group.len() };
            group
                .iter()
                .take(shown)
                .map(move |at| (at, helper.as_ref()))
        }) {
            let path = &self.wanted[*at].path;
            // Of `_["a"]["b"]`, `a` may be what is absent.
            let open = self.open.iter().map(|at| &self.wanted[*at].path);
            let leads = open.filter(|open| path.starts_with(open));
            let shortest = leads.min_by_key(|open| open.len()).unwrap_or(path);
            let key = self.absent_key(path, shortest, helper, is_whole);
            if !paths.contains(&key) {
                paths.push(key);
            }
        }
        paths
    }

    /// A path of which no row has `shortest`.
    fn absent_key(
        &self,
        path: &[String],
        shortest: &[String],
        helper: Option<&String>,
        is_whole: bool,
    ) -> AbsentKey {
        let of = |path: &[String], nearest| AbsentKey {
            path: path.to_vec(),
            nearest,
            helper: helper.cloned(),
            is_whole,
        };
        let Some((name, parents)) = shortest.split_last().filter(|_| helper.is_none()) else {
            return of(shortest, None);
        };
        // Keys with dots in place of keys within keys, and the reverse.
        let names = self.names.get(parents);
        let flat = path[parents.len()..].join(".");
        if path.len() > shortest.len() && names.is_some_and(|names| names.contains(&flat)) {
            return of(path, Some([parents, &[flat]].concat()));
        }
        let nested = with_dots(parents, name);
        if self.nested.contains(&nested) {
            return of(shortest, Some(nested));
        }
        let nearest = names.and_then(|names| similar(name, names));
        of(
            shortest,
            nearest.map(|it| [parents, &[it.to_owned()]].concat()),
        )
    }
}

/// The path of a key with dots, as if each of its parts were a key.
fn with_dots(parents: &[String], name: &str) -> KeyPath {
    let parts = name.split('.').map(str::to_owned);
    parents.iter().cloned().chain(parts).collect()
}

/// The name with the fewest edits, or the shortest one of which this is the start or the end: `rtt.minimum` for `rtt.min`.
fn similar<'a>(name: &str, names: &'a BTreeSet<String>) -> Option<&'a str> {
    let all = || names.iter().map(String::as_str);
    let is_part = |it: &&str| {
        let end = it.strip_suffix(name);
        it.starts_with(name) || end.is_some_and(|before| before.ends_with(['.', '-', '_']))
    };
    nearest(name, all()).or_else(|| {
        let parts = all().filter(|_| name.len() > 2).filter(is_part);
        parts.min_by_key(|it| it.len())
    })
}

impl Wanted {
    /// Whether the value of its first key has the others.
    fn is_within(&self, span: Span, raw: &[u8]) -> bool {
        let Some((_, rest @ [_, ..])) = self.path.split_first() else {
            return true;
        };
        if raw.first() != Some(&b'{') {
            return is_other(span, raw);
        }
        // A key may be written with escapes.
        let may_have = memchr::memmem::find(raw, self.literal.as_bytes()).is_some()
            || memchr::memchr(b'\\', raw).is_some();
        let parse = || Parser::<Plain>::new(raw, &mut Keys::default()).only(&Projection::Whole);
        may_have && parse().is_ok_and(|value| has_plain(&value, rest))
    }
}

/// Whether a value is neither an object nor null: what is read of a text by `["b"]` is not a key.
fn is_other(span: Span, raw: &[u8]) -> bool {
    !matches!(span.kind, Kind::Other) || raw != b"null"
}

fn has_plain(value: &Plain, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    match value {
        Plain::Null => false,
        Plain::Object(_) => value.get(first).is_some_and(|inner| has_plain(inner, rest)),
        _ => true,
    }
}

fn has(value: &Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return true;
    };
    match value {
        Value::Nil => false,
        Value::Hash(table) => table.get_str(first).is_some_and(|inner| has(&inner, rest)),
        _ => true,
    }
}
