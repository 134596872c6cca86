//! What a thread gathered from its part of the input, in a form that crosses threads; and how it joins what was
//! gathered before it. Whether it can is asked first, so that joining never fails half-way.

use super::accumulator::{Accumulator, Wanted};
use super::column::Column;
use super::scope::{Keyed, Reducer, Scope};
use crate::value::Value;
use crate::value::exception::Eval;
use crate::value::table::Table;
use crate::vm::Vm;
use num_bigint::BigInt;

/// A value is packed down to this depth: one that holds itself has no end.
const DEPTH_MAX: usize = 200;

/// A value that is only data.
pub(crate) enum Portable {
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Big(BigInt),
    Symbol(String),
    Str(String),
    Array(Vec<Portable>),
    Hash(Vec<(Portable, Portable)>),
    Token(u32),
    Dropped,
}

impl Portable {
    /// `None` when it is more than data.
    pub(crate) fn pack(value: &Value) -> Option<Portable> {
        Portable::at_depth(value, 0)
    }

    fn at_depth(value: &Value, depth: usize) -> Option<Portable> {
        if depth > DEPTH_MAX {
            return None;
        }
        let inner = |value: &Value| Portable::at_depth(value, depth + 1);
        Some(match value {
            Value::Nil => Portable::Nil,
            Value::Bool(it) => Portable::Bool(*it),
            Value::Int(it) => Portable::Int(*it),
            Value::Float(it) => Portable::Float(*it),
            Value::Big(it) => Portable::Big((**it).clone()),
            Value::Symbol(it) => Portable::Symbol((*it.name()).to_owned()),
            Value::Str(text) => Portable::Str(text.string()),
            Value::Array(list) => {
                Portable::Array(list.borrow().iter().map(inner).collect::<Option<_>>()?)
            }
            Value::Hash(table) if !table.has_fallback() && !table.is_frozen() => Portable::Hash(
                table
                    .borrow()
                    .iter()
                    .map(|(key, value)| Some((inner(key)?, inner(value)?)))
                    .collect::<Option<_>>()?,
            ),
            Value::Token(at) => Portable::Token(*at),
            Value::Dropped => Portable::Dropped,
            _ => return None,
        })
    }

    pub(crate) fn unpack(&self) -> Value {
        match self {
            Portable::Nil => Value::Nil,
            Portable::Bool(it) => Value::Bool(*it),
            Portable::Int(it) => Value::Int(*it),
            Portable::Float(it) => Value::Float(*it),
            Portable::Big(it) => crate::value::number::integer(it.clone()),
            Portable::Symbol(name) => Value::symbol(name),
            Portable::Str(text) => Value::str(text.as_str()),
            Portable::Array(list) => Value::array(unpack_all(list)),
            Portable::Hash(pairs) => Value::hash(Table::from_pairs(
                pairs
                    .iter()
                    .map(|(key, value)| (key.unpack(), value.unpack())),
            )),
            Portable::Token(at) => Value::Token(*at),
            Portable::Dropped => Value::Dropped,
        }
    }
}

fn pack_all(values: &[Value]) -> Option<Vec<Portable>> {
    values.iter().map(Portable::pack).collect()
}

fn unpack_all(values: &[Portable]) -> Vec<Value> {
    values.iter().map(Portable::unpack).collect()
}

enum PackedColumn {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Mixed(Vec<Portable>),
}

impl PackedColumn {
    fn pack(column: Column) -> Option<PackedColumn> {
        Some(match column {
            Column::Ints(list) => PackedColumn::Ints(list),
            Column::Floats(list) => PackedColumn::Floats(list),
            Column::Mixed(list) => PackedColumn::Mixed(pack_all(&list)?),
        })
    }

    fn unpack(self) -> Column {
        match self {
            PackedColumn::Ints(list) => Column::Ints(list),
            PackedColumn::Floats(list) => Column::Floats(list),
            PackedColumn::Mixed(list) => Column::Mixed(unpack_all(&list)),
        }
    }

    /// Whether these can be added up without an error.
    fn is_numeric(&self) -> bool {
        match self {
            PackedColumn::Ints(_) | PackedColumn::Floats(_) => true,
            PackedColumn::Mixed(list) => list
                .iter()
                .all(|it| matches!(it, Portable::Int(_) | Portable::Float(_))),
        }
    }
}

/// What a chunk's accumulator holds.
enum Part {
    Count(u64),
    Least(Portable),
    Most(Portable),
    Percentile(PackedColumn),
    Group(Vec<Portable>),
    Values(PackedColumn),
}

/// How an accumulator begins.
enum Begin {
    Count,
    Sum(Portable, Portable),
    Min,
    Max,
    Average,
    Deviation(bool),
    Percentile(Wanted),
    Group,
}

impl Begin {
    fn of(accumulator: &Accumulator) -> Option<Begin> {
        Some(match accumulator {
            Accumulator::Count(_) => Begin::Count,
            Accumulator::Sum { total, initial } => {
                Begin::Sum(Portable::pack(total)?, Portable::pack(initial)?)
            }
            Accumulator::Min(_) => Begin::Min,
            Accumulator::Max(_) => Begin::Max,
            Accumulator::Average { .. } => Begin::Average,
            Accumulator::Deviation { sample, .. } => Begin::Deviation(*sample),
            Accumulator::Percentile { wanted, .. } => Begin::Percentile(wanted.clone()),
            Accumulator::Group(_) => Begin::Group,
            Accumulator::Chunk(_) => return None,
        })
    }

    fn make(&self) -> Accumulator {
        match self {
            Begin::Count => Accumulator::Count(0),
            Begin::Sum(total, initial) => Accumulator::Sum {
                total: total.unpack(),
                initial: initial.unpack(),
            },
            Begin::Min => Accumulator::Min(Value::Nil),
            Begin::Max => Accumulator::Max(Value::Nil),
            Begin::Average => Accumulator::average(),
            Begin::Deviation(sample) => Accumulator::deviation(*sample),
            Begin::Percentile(wanted) => Accumulator::Percentile {
                values: Column::default(),
                wanted: wanted.clone(),
            },
            Begin::Group => Accumulator::Group(Vec::new()),
        }
    }
}

enum PackedReducer {
    Plain(Begin, Part),
    Sort(Vec<Portable>, Vec<Portable>),
    Keyed(Keyed, Vec<(Portable, PackedScope)>),
}

/// A scope of a chunk.
pub(crate) struct PackedScope {
    reducers: Vec<PackedReducer>,
    template: Option<Portable>,
}

impl PackedScope {
    /// `None` when it holds more than data.
    pub(crate) fn pack(scope: Scope) -> Option<PackedScope> {
        Some(PackedScope {
            template: match &scope.template {
                None => None,
                Some(value) => Some(Portable::pack(value)?),
            },
            reducers: scope
                .reducers
                .into_iter()
                .map(|reducer| pack_reducer(reducer?))
                .collect::<Option<_>>()?,
        })
    }

    /// Whether it can be joined to a scope.
    pub(crate) fn fits(&self, scope: &Scope) -> bool {
        self.reducers
            .iter()
            .enumerate()
            .all(|(at, part)| match (scope.reducers.get(at), part) {
                (Some(None), _) => false,
                (Some(Some(Reducer::Plain(known))), PackedReducer::Plain(_, part)) => {
                    part.fits(known)
                }
                (None, PackedReducer::Plain(begin, part)) => part.fits(&begin.make()),
                (
                    Some(Some(Reducer::Sort { keys, rows, .. })),
                    PackedReducer::Sort(more_keys, more_rows),
                ) => {
                    keys.len() == rows.len() && more_keys.len() == more_rows.len()
                        || keys.is_empty() && more_keys.is_empty()
                }
                (None, PackedReducer::Sort(..)) => true,
                (
                    Some(Some(Reducer::Keyed {
                        kind,
                        index,
                        scopes,
                        ..
                    })),
                    PackedReducer::Keyed(part, slots),
                ) => {
                    kind == part
                        && slots
                            .iter()
                            .all(|(key, slot)| match index.get(&key.unpack()) {
                                Some(Value::Int(at)) => slot.fits(&scopes[at as usize]),
                                _ => slot.fits(&Scope::default()),
                            })
                }
                (None, PackedReducer::Keyed(_, slots)) => {
                    slots.iter().all(|(_, slot)| slot.fits(&Scope::default()))
                }
                _ => false,
            })
    }

    /// Joins it to a scope that it fits.
    pub(crate) fn join(self, vm: &mut Vm, scope: &mut Scope) -> Eval<()> {
        for (at, part) in self.reducers.into_iter().enumerate() {
            if at == scope.reducers.len() {
                scope.reducers.push(Some(match &part {
                    PackedReducer::Plain(begin, _) => Reducer::Plain(begin.make()),
                    PackedReducer::Sort(..) => Reducer::Sort {
                        keys: Vec::new(),
                        rows: Vec::new(),
                        by: None,
                    },
                    PackedReducer::Keyed(kind, _) => Reducer::keyed(*kind),
                }));
            }
            let Some(Some(known)) = scope.reducers.get_mut(at) else {
                continue;
            };
            match (known, part) {
                (Reducer::Plain(known), PackedReducer::Plain(_, part)) => {
                    known.merge(vm, part.unpack())?;
                }
                (Reducer::Sort { keys, rows, .. }, PackedReducer::Sort(more_keys, more_rows)) => {
                    keys.extend(unpack_all(&more_keys));
                    rows.extend(unpack_all(&more_rows));
                }
                (known, PackedReducer::Keyed(_, slots)) => {
                    for (key, slot) in slots {
                        if let Some(known) = known.slot(&key.unpack()) {
                            slot.join(vm, known)?;
                        }
                    }
                }
                _ => {}
            }
        }
        if scope.template.is_none() {
            scope.template = self.template.map(|it| it.unpack());
        }
        Ok(())
    }
}

fn pack_reducer(reducer: Reducer) -> Option<PackedReducer> {
    Some(match reducer {
        Reducer::Chunk { begin, part } => PackedReducer::Plain(Begin::of(&begin)?, Part::of(part)?),
        // The block is the first row's, which only that row's thread has.
        Reducer::Sort { by: Some(_), .. } | Reducer::Plain(_) | Reducer::Reduce(_) => return None,
        Reducer::Sort { keys, rows, .. } => PackedReducer::Sort(pack_all(&keys)?, pack_all(&rows)?),
        Reducer::Keyed {
            kind, keys, scopes, ..
        } => PackedReducer::Keyed(
            kind,
            keys.iter()
                .zip(scopes)
                .map(|(key, scope)| Some((Portable::pack(key)?, PackedScope::pack(scope)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

impl Part {
    fn of(accumulator: Accumulator) -> Option<Part> {
        Some(match accumulator {
            Accumulator::Count(count) => Part::Count(count),
            Accumulator::Min(value) => Part::Least(Portable::pack(&value)?),
            Accumulator::Max(value) => Part::Most(Portable::pack(&value)?),
            Accumulator::Percentile { values, .. } => Part::Percentile(PackedColumn::pack(values)?),
            Accumulator::Group(list) => Part::Group(pack_all(&list)?),
            Accumulator::Chunk(values) => Part::Values(PackedColumn::pack(values)?),
            _ => return None,
        })
    }

    fn unpack(self) -> Accumulator {
        match self {
            Part::Count(count) => Accumulator::Count(count),
            Part::Least(value) => Accumulator::Min(value.unpack()),
            Part::Most(value) => Accumulator::Max(value.unpack()),
            Part::Percentile(values) | Part::Values(values) => Accumulator::Chunk(values.unpack()),
            Part::Group(list) => Accumulator::Group(unpack_all(&list)),
        }
    }

    /// Whether the chunk's steps can be made on what is known, without an error.
    fn fits(&self, known: &Accumulator) -> bool {
        let number =
            |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Big(_));
        match (self, known) {
            (Part::Count(_), Accumulator::Count(_))
            | (Part::Percentile(_), Accumulator::Percentile { .. })
            | (Part::Group(_), Accumulator::Group(_)) => true,
            (Part::Least(more), Accumulator::Min(known))
            | (Part::Most(more), Accumulator::Max(known)) => match (more, known) {
                (Portable::Nil, _) | (_, Value::Nil) | (Portable::Str(_), Value::Str(_)) => true,
                (Portable::Int(_), Value::Int(_)) => true,
                (Portable::Int(_), Value::Float(known)) => !known.is_nan(),
                (Portable::Float(more), Value::Int(_)) => !more.is_nan(),
                (Portable::Float(more), Value::Float(known)) => !more.is_nan() && !known.is_nan(),
                _ => false,
            },
            (Part::Values(values), Accumulator::Sum { total, .. }) => {
                number(total) && values.is_numeric()
            }
            (Part::Values(values), Accumulator::Average { sum, .. }) => {
                number(sum) && values.is_numeric()
            }
            (Part::Values(values), Accumulator::Deviation { .. }) => values.is_numeric(),
            _ => false,
        }
    }
}
