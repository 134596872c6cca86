//! The builtins of a stage: how each is called, and whether it reduces. What they do is in [`crate::builtins`].

use crate::tree::Builtin;
use std::ops::RangeInclusive;

/// What a call may have between braces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockUse {
    Refused,
    Optional,
    Required,
}

/// Whether the value of a call is known at the end of the input only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduces {
    Never,
    /// If its block calls reducers.
    AsItsBlock,
    Always,
}

/// How a builtin is called.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) builtin: Builtin,
    /// As a hint writes it.
    pub(crate) written: &'static str,
    /// Number of arguments beside keywords.
    pub(crate) counts: RangeInclusive<usize>,
    pub(crate) keywords: &'static [&'static str],
    /// `name: value` without braces is an argument, a Hash.
    pub(crate) takes_pairs: bool,
    pub(crate) block: BlockUse,
    pub(crate) reduces: Reduces,
    /// jrf does not have it: a helper of the same name replaces it.
    pub(crate) is_own: bool,
    /// Keywords and blocks that other languages have, and what is meant; the empty name is a block.
    pub(crate) instead: &'static [(&'static [&'static str], &'static str)],
}

const ORDERS: &[&str] = &[
    "reverse",
    "desc",
    "descending",
    "order",
    "ascending",
    "asc",
    "dir",
];
const KEYS: &[&str] = &["by", "key", "on"];
const CONDITIONS: &[&str] = &["", "if", "where", "filter"];
const WEIGHTS: &[&str] = &["weight", "weights", "w", "by"];
const NUMBERS: &[&str] = &["limit", "n", "first", "top", "head"];

/// Whether a note is that of this first letter.
const fn is(note: &str, first: u8) -> bool {
    note.as_bytes()[0] == first
}

/// A line is: name, builtin, least and most arguments, whether it reduces, its block, how a hint writes it, keywords, and
/// notes: `pairs` for [`Form::takes_pairs`], `own` for [`Form::is_own`]. Behind it stands what is meant by other forms.
macro_rules! forms {
    ($($name:literal $builtin:ident $least:literal $most:literal $reduces:ident $block:ident $written:literal
        $([$($keyword:literal)+])? $($note:ident)* { $($names:expr => $meant:literal,)* })+) => {
        /// All builtins but `limit`, which is part of the order of rows.
        pub(crate) static FORMS: &[Form] = &[$(Form {
            name: $name,
            builtin: Builtin::$builtin,
            written: $written,
            counts: $least..=$most,
            keywords: &[$($($keyword,)+)?],
            takes_pairs: false $(|| is(stringify!($note), b'p'))*,
            block: BlockUse::$block,
            reduces: Reduces::$reduces,
            is_own: false $(|| is(stringify!($note), b'o'))*,
            instead: &[$(($names, $meant),)*],
        },)+];
    };
}

forms! {
    "select" Select 1 1 Never Refused "select(p)" { &[""] => "`select(p)` with `_` as the row", }
    "flat" Flat 0 0 Never Refused "flat" {}
    "map" Map 0 1 AsItsBlock Required "map(list) { |x| … }" pairs {}
    "map_values" MapValues 0 1 AsItsBlock Required "map_values(hash) { |x| … }" pairs {}
    "apply" Apply 0 1 Never Required "apply(list) { |x| … }" {}
    "bucket" Bucket 2 2 Never Refused "bucket(e, width)" own { &["width", "size", "by"] => "`bucket(e, width)`", }
    "lookup" Lookup 2 2 Never Refused "lookup(\"file.csv\", e)" ["on"] own {
        &["key", "by", "column", "col"] => "`lookup(\"file.csv\", e, on: \"column\")`",
    }
    "group_by" GroupBy 1 1 Always Optional "group_by(key)" pairs { NUMBERS => "`group_by(key) { top(n, e) }`", }
    "group" Group 0 1 Always Refused "group(e)" pairs {
        NUMBERS => "`limit(n) >> group(e)`",
        KEYS => "`group_by(key)`",
    }
    "distinct" Distinct 1 1 Always Refused "distinct(e)" pairs own {}
    "top" Top 1 2 Always Refused "top(n, key)" pairs own {
        KEYS => "`top(n, key)`",
        ORDERS => "`top(n, -key)`",
    }
    "histogram" Histogram 1 2 Always Refused "histogram(e, width)" own {
        &["width", "bin", "step"] => "`histogram(e, width)`",
        WEIGHTS => "`group_by(key) { sum(weight) }`",
    }
    "sort" Sort 0 1 Always Optional "sort(key)" {
        ORDERS => "`sort(-key)`, or `sort { |a, b| b <=> a }`",
        KEYS => "`sort(key)`",
        NUMBERS => "`sort(key) >> limit(n)`",
    }
    "sum" Sum 1 1 Always Refused "sum(e)" ["initial"] {
        CONDITIONS => "`sum(p ? e : nil)`",
        WEIGHTS => "`sum(e * weight)`",
    }
    "count" Count 0 1 Always Refused "count()" {
        &["distinct", "uniq", "unique"] => "`distinct(e) >> _.length`",
        CONDITIONS => "`count_if(p)`",
        KEYS => "`group_by(key) { count() }`",
    }
    "count_if" CountIf 1 1 Always Refused "count_if(p)" { &[""] => "`count_if(p)` with `_` as the row", }
    "min" Min 1 1 Always Refused "min(e)" { KEYS => "`top(1, -key)`", CONDITIONS => "`min(p ? e : nil)`", }
    "max" Max 1 1 Always Refused "max(e)" { KEYS => "`top(1, key)`", CONDITIONS => "`max(p ? e : nil)`", }
    "first" First 1 1 Always Refused "first(e)" own { KEYS => "`top(1, -key)`", CONDITIONS => "`first(p ? e : nil)`", }
    "last" Last 1 1 Always Refused "last(e)" own { KEYS => "`top(1, key)`", CONDITIONS => "`last(p ? e : nil)`", }
    "mode" Mode 1 1 Always Refused "mode(e)" pairs own {}
    "corr" Corr 2 2 Always Refused "corr(x, y)" own {}
    "average" Average 1 1 Always Refused "average(e)" {
        WEIGHTS => "`[sum(e * weight), sum(weight)] >> _[0].fdiv(_[1])`",
        CONDITIONS => "`average(p ? e : nil)`",
    }
    "stdev" Stdev 1 1 Always Refused "stdev(e)" ["sample"] {
        &["ddof", "population"] => "`stdev(e, sample: true)` for n - 1",
        CONDITIONS => "`stdev(p ? e : nil)`",
    }
    "percentile" Percentile 1 2 Always Refused "percentile(e, p)" ["error" "weight"] {
        &["p", "q", "percentile", "quantile"] => "`percentile(e, p)`",
        CONDITIONS => "`percentile(c ? e : nil, p)`",
        &["weights", "w", "by"] => "`percentile(e, p, weight: w)`",
    }
    "reduce" Reduce 1 1 Always Required "reduce(start) { |value, row| … }" pairs {
        &["initial", "init", "start"] => "`reduce(start) { |value, row| … }`",
    }
}

impl Form {
    pub(crate) fn find(name: &str) -> Option<&'static Form> {
        FORMS.iter().find(|form| form.name == name)
    }

    pub(crate) fn of(builtin: Builtin) -> &'static Form {
        FORMS
            .iter()
            .find(|form| form.builtin == builtin)
            .unwrap_or(&FORMS[0])
    }

    /// Whether it takes one value of the row first, and not a list, a number or a start.
    pub(crate) fn takes_value_of_row(&self) -> bool {
        !matches!(
            self.builtin,
            Builtin::Map
                | Builtin::MapValues
                | Builtin::Apply
                | Builtin::Group
                | Builtin::Top
                | Builtin::Reduce
                | Builtin::Flat
                | Builtin::Lookup
        )
    }

    /// What to write instead of a keyword that it does not have, or of a block (the empty name).
    pub(crate) fn instead_of(&self, keyword: &str) -> String {
        let meant = self
            .instead
            .iter()
            .find(|(names, _)| names.contains(&keyword));
        match meant {
            Some((_, form)) => format!("; write {form}"),
            None => format!(" (expected `{}`)", self.written),
        }
    }
}
