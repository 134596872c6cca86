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

const FORM: Form = Form {
    name: "",
    builtin: Builtin::Select,
    written: "",
    counts: 1..=1,
    keywords: &[],
    takes_pairs: false,
    block: BlockUse::Refused,
    reduces: Reduces::Always,
    is_own: false,
    instead: &[],
};

const ORDERS: &[&str] = &[
    "reverse",
    "desc",
    "descending",
    "order",
    "ascending",
    "asc",
    "dir",
    "direction",
];
const KEYS: &[&str] = &["by", "key", "on"];
const CONDITIONS: &[&str] = &["", "if", "where", "filter"];
const WEIGHTS: &[&str] = &["weight", "weights", "w", "by"];
const NUMBERS: &[&str] = &["limit", "n", "first", "top", "head"];

/// All builtins but `limit`, which is part of the order of rows.
pub(crate) static FORMS: &[Form] = &[
    Form {
        name: "select",
        builtin: Builtin::Select,
        written: "select(p)",
        reduces: Reduces::Never,
        instead: &[(&[""], "`select(p)` with `_` as the row")],
        ..FORM
    },
    Form {
        name: "flat",
        builtin: Builtin::Flat,
        written: "flat",
        counts: 0..=0,
        reduces: Reduces::Never,
        ..FORM
    },
    Form {
        name: "map",
        builtin: Builtin::Map,
        written: "map(list) { |x| … }",
        counts: 0..=1,
        takes_pairs: true,
        block: BlockUse::Required,
        reduces: Reduces::AsItsBlock,
        ..FORM
    },
    Form {
        name: "map_values",
        builtin: Builtin::MapValues,
        written: "map_values(hash) { |x| … }",
        counts: 0..=1,
        takes_pairs: true,
        block: BlockUse::Required,
        reduces: Reduces::AsItsBlock,
        ..FORM
    },
    Form {
        name: "apply",
        builtin: Builtin::Apply,
        written: "apply(list) { |x| … }",
        counts: 0..=1,
        block: BlockUse::Required,
        reduces: Reduces::Never,
        ..FORM
    },
    Form {
        name: "group_by",
        builtin: Builtin::GroupBy,
        written: "group_by(key)",
        takes_pairs: true,
        block: BlockUse::Optional,
        instead: &[(NUMBERS, "`group_by(key) { top(n, e) }`")],
        ..FORM
    },
    Form {
        name: "group",
        builtin: Builtin::Group,
        written: "group(e)",
        counts: 0..=1,
        takes_pairs: true,
        instead: &[
            (NUMBERS, "`limit(n) >> group(e)`"),
            (KEYS, "`group_by(key)`"),
        ],
        ..FORM
    },
    Form {
        name: "distinct",
        builtin: Builtin::Distinct,
        written: "distinct(e)",
        takes_pairs: true,
        is_own: true,
        ..FORM
    },
    Form {
        name: "top",
        builtin: Builtin::Top,
        written: "top(n, key)",
        counts: 1..=2,
        takes_pairs: true,
        is_own: true,
        instead: &[(KEYS, "`top(n, key)`"), (ORDERS, "`top(n, -key)`")],
        ..FORM
    },
    Form {
        name: "histogram",
        builtin: Builtin::Histogram,
        written: "histogram(e, width)",
        counts: 1..=2,
        is_own: true,
        instead: &[
            (&["width", "bin", "step"], "`histogram(e, width)`"),
            (WEIGHTS, "`group_by(key) { sum(weight) }`"),
        ],
        ..FORM
    },
    Form {
        name: "sort",
        builtin: Builtin::Sort,
        written: "sort(key)",
        counts: 0..=1,
        block: BlockUse::Optional,
        instead: &[
            (ORDERS, "`sort(-key)`, or `sort { |a, b| b <=> a }`"),
            (KEYS, "`sort(key)`"),
            (NUMBERS, "`sort(key) >> limit(n)`"),
        ],
        ..FORM
    },
    Form {
        name: "sum",
        builtin: Builtin::Sum,
        written: "sum(e)",
        keywords: &["initial"],
        instead: &[
            (CONDITIONS, "`sum(p ? e : nil)`"),
            (WEIGHTS, "`sum(e * weight)`"),
        ],
        ..FORM
    },
    Form {
        name: "count",
        builtin: Builtin::Count,
        written: "count()",
        counts: 0..=1,
        instead: &[
            (&["distinct", "uniq", "unique"], "`distinct(e) >> _.length`"),
            (CONDITIONS, "`count_if(p)`"),
            (KEYS, "`group_by(key) { count() }`"),
        ],
        ..FORM
    },
    Form {
        name: "count_if",
        builtin: Builtin::CountIf,
        written: "count_if(p)",
        instead: &[(&[""], "`count_if(p)` with `_` as the row")],
        ..FORM
    },
    Form {
        name: "min",
        builtin: Builtin::Min,
        written: "min(e)",
        instead: &[(KEYS, "`top(1, -key)`"), (CONDITIONS, "`min(p ? e : nil)`")],
        ..FORM
    },
    Form {
        name: "max",
        builtin: Builtin::Max,
        written: "max(e)",
        instead: &[(KEYS, "`top(1, key)`"), (CONDITIONS, "`max(p ? e : nil)`")],
        ..FORM
    },
    Form {
        name: "average",
        builtin: Builtin::Average,
        written: "average(e)",
        instead: &[
            (
                WEIGHTS,
                "`[sum(e * weight), sum(weight)] >> _[0].fdiv(_[1])`",
            ),
            (CONDITIONS, "`average(p ? e : nil)`"),
        ],
        ..FORM
    },
    Form {
        name: "stdev",
        builtin: Builtin::Stdev,
        written: "stdev(e)",
        keywords: &["sample"],
        instead: &[
            (
                &["ddof", "population"],
                "`stdev(e, sample: true)` for n - 1",
            ),
            (CONDITIONS, "`stdev(p ? e : nil)`"),
        ],
        ..FORM
    },
    Form {
        name: "percentile",
        builtin: Builtin::Percentile,
        written: "percentile(e, p)",
        counts: 1..=2,
        instead: &[
            (&["p", "q", "percentile", "quantile"], "`percentile(e, p)`"),
            (CONDITIONS, "`percentile(c ? e : nil, p)`"),
        ],
        ..FORM
    },
    Form {
        name: "first",
        builtin: Builtin::First,
        written: "first(e)",
        is_own: true,
        instead: &[
            (KEYS, "`top(1, -key)`"),
            (CONDITIONS, "`first(p ? e : nil)`"),
        ],
        ..FORM
    },
    Form {
        name: "last",
        builtin: Builtin::Last,
        written: "last(e)",
        is_own: true,
        instead: &[(KEYS, "`top(1, key)`"), (CONDITIONS, "`last(p ? e : nil)`")],
        ..FORM
    },
    Form {
        name: "mode",
        builtin: Builtin::Mode,
        written: "mode(e)",
        takes_pairs: true,
        is_own: true,
        ..FORM
    },
    Form {
        name: "corr",
        builtin: Builtin::Corr,
        written: "corr(x, y)",
        counts: 2..=2,
        is_own: true,
        ..FORM
    },
    Form {
        name: "bucket",
        builtin: Builtin::Bucket,
        written: "bucket(e, width)",
        counts: 2..=2,
        reduces: Reduces::Never,
        is_own: true,
        instead: &[(&["width", "size", "by"], "`bucket(e, width)`")],
        ..FORM
    },
    Form {
        name: "reduce",
        builtin: Builtin::Reduce,
        written: "reduce(start) { |value, row| … }",
        takes_pairs: true,
        block: BlockUse::Required,
        instead: &[(
            &["initial", "init", "start"],
            "`reduce(start) { |value, row| … }`",
        )],
        ..FORM
    },
];

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
