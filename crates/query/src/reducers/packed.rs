//! The reducers of a part of the input, in a form that crosses threads and processes, and how they are joined to those of
//! the parts before. `fits` is checked first, so that joining never fails half-way.

mod state;

use super::accumulator::{Accumulator, Which};
use super::column::Column;
use super::groups::Keyed;
use super::histogram::{Histogram, Width};
use super::portable::{Heap, Packer, Portable, heap_weight};
use super::scope::{Reducer, Scope};
use super::shares::Shares;
use super::top::Top;
use super::{Evaluator, binary};
use crate::memory::Bounds;
use crate::tree::Op;
use crate::value::Value;
use crate::value::exception::Eval;
use crate::value::table::Table;
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::collections::BTreeMap;

type PackedColumn = Column<Portable>;

impl PackedColumn {
    fn weight(&self) -> usize {
        match self {
            Column::Ints(list) => size_of_val(&**list),
            Column::Floats(list) => size_of_val(&**list),
            Column::Mixed(list) => list.iter().map(Portable::weight).sum(),
        }
    }

    /// Whether each is an Array of two numbers.
    fn is_of_pairs(&self) -> bool {
        let is_pair = |it: &Portable| matches!(it, Portable::Array(pair) if pair.len() == 2 && pair.iter().all(is_number));
        match self {
            Column::Ints(list) => list.is_empty(),
            Column::Floats(_) => false,
            Column::Mixed(list) => list.iter().all(is_pair),
        }
    }

    /// Whether each second one is the weight of the one before it.
    fn is_weighted(&self) -> bool {
        let is_weight = |it: f64| it > 0.0 && it.is_finite();
        match self {
            Column::Ints(list) => {
                list.len().is_multiple_of(2) && list.iter().skip(1).step_by(2).all(|it| *it > 0)
            }
            Column::Floats(list) => {
                list.len().is_multiple_of(2)
                    && list.iter().skip(1).step_by(2).all(|it| is_weight(*it))
            }
            Column::Mixed(list) => {
                let mut weights = list.iter().skip(1).step_by(2);
                list.len().is_multiple_of(2)
                    && weights.all(|it| match it {
                        Portable::Int(it) => *it > 0,
                        Portable::Float(it) => is_weight(*it),
                        Portable::Big(it) => it.sign() == Sign::Plus,
                        _ => false,
                    })
            }
        }
    }

    /// Whether these can be added up without an error.
    fn is_numeric(&self) -> bool {
        !matches!(self, Column::Mixed(list) if !list.iter().all(is_number))
    }
}

fn is_number(it: &Portable) -> bool {
    matches!(it, Portable::Int(_) | Portable::Float(_) | Portable::Big(_))
}

/// The values of a chunk's accumulator.
enum Part {
    Count(u64),
    One(Which, Portable),
    Percentile(PackedColumn),
    Group(Vec<Portable>),
    Distinct(Vec<Portable>),
    /// Keys and rows; for the mode, values and how often they occur.
    Top(Vec<(Portable, Portable)>),
    Histogram(BTreeMap<i64, u64>),
    Values(PackedColumn),
}

/// The initial state of an accumulator.
enum Initial {
    Count,
    Sum(Portable, Portable),
    One(Which),
    Average,
    Deviation(bool),
    Percentile(Shares),
    Weighted(Shares),
    Group,
    Distinct,
    /// The count, and which of two keys comes first.
    Top(usize, Ordering),
    Histogram(Width),
    Mode,
    Correlation,
}

impl Initial {
    fn of(packer: &mut Packer, accumulator: &Accumulator) -> Option<Initial> {
        Some(match accumulator {
            Accumulator::Count(_) => Initial::Count,
            Accumulator::Sum { total, initial } => {
                Initial::Sum(packer.pack(total)?, packer.pack(initial)?)
            }
            Accumulator::One(which, _) => Initial::One(*which),
            Accumulator::Average { .. } => Initial::Average,
            Accumulator::Deviation(it) => Initial::Deviation(it.sample),
            Accumulator::Percentile { shares, .. } => Initial::Percentile((**shares).clone()),
            Accumulator::Weighted { shares, .. } => Initial::Weighted((**shares).clone()),
            Accumulator::Group(_) => Initial::Group,
            Accumulator::Distinct(_) => Initial::Distinct,
            Accumulator::Top(top) => Initial::Top(top.count, top.first),
            Accumulator::Histogram(it) => Initial::Histogram(it.width.clone()),
            Accumulator::Mode(_) => Initial::Mode,
            Accumulator::Correlation(_) => Initial::Correlation,
            Accumulator::Chunk(_) => return None,
        })
    }

    fn make(&self, heap: &mut Heap) -> Accumulator {
        match self {
            Initial::Count => Accumulator::Count(0),
            Initial::Sum(total, initial) => Accumulator::Sum {
                total: heap.unpack(total),
                initial: heap.unpack(initial),
            },
            Initial::One(which) => Accumulator::One(*which, Value::Nil),
            Initial::Average => Accumulator::average(),
            Initial::Deviation(sample) => Accumulator::deviation(*sample),
            Initial::Percentile(shares) => Accumulator::percentile(shares.clone(), false),
            Initial::Weighted(shares) => Accumulator::percentile(shares.clone(), true),
            Initial::Group => Accumulator::Group(Vec::new()),
            Initial::Distinct => Accumulator::Distinct(Box::default()),
            Initial::Top(count, first) => Accumulator::Top(Top::of(*count, *first)),
            Initial::Histogram(width) => Accumulator::Histogram(Histogram::of(width.clone())),
            Initial::Mode => Accumulator::Mode(Box::default()),
            Initial::Correlation => Accumulator::Correlation(Box::default()),
        }
    }
}

enum PackedReducer {
    Plain(Initial, Part),
    Sort(Vec<Portable>, Vec<Portable>),
    Keyed(Keyed, Vec<(Portable, Slot)>),
}

/// A scope within another one, or the outermost.
struct Slot {
    reducers: Vec<PackedReducer>,
    template: Option<Portable>,
}

/// A scope of a chunk, on its way to the thread that joins.
pub(crate) struct PackedScope {
    slot: Slot,
    heap: Vec<Option<Portable>>,
}

/// A scope of a chunk, on the thread that joins.
pub(crate) struct UnpackedScope {
    slot: Slot,
    heap: Heap,
}

impl PackedScope {
    /// `None` when it holds more than data.
    pub(crate) fn pack(scope: &Scope) -> Option<PackedScope> {
        let mut packer = Packer::default();
        let slot = Slot::pack(&mut packer, scope)?;
        let heap = packer.heap;
        Some(PackedScope { slot, heap })
    }

    /// Its approximate size, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.slot.weight() + heap_weight(&self.heap)
    }

    pub(crate) fn unpack(self) -> UnpackedScope {
        UnpackedScope {
            slot: self.slot,
            heap: Heap::new(self.heap),
        }
    }
}

impl UnpackedScope {
    /// Whether it can be joined to a scope.
    pub(crate) fn fits(&mut self, scope: &Scope) -> bool {
        self.slot.fits(&mut self.heap, scope)
    }

    /// Joins it to a scope that it fits.
    pub(crate) fn join(mut self, vm: &mut dyn Evaluator, scope: &mut Scope) -> Eval<()> {
        self.slot.join(&mut self.heap, vm, scope)
    }
}

impl Slot {
    fn pack(packer: &mut Packer, scope: &Scope) -> Option<Slot> {
        // All is packed while all of it lives: an address is one object.
        let template = match &scope.template {
            None => None,
            Some(value) => Some(packer.pack(value)?),
        };
        let reducers = scope.reducers.iter();
        let reducers = reducers
            .map(|reducer| PackedReducer::pack(packer, reducer.as_ref()?))
            .collect::<Option<_>>()?;
        Some(Slot { reducers, template })
    }

    fn weight(&self) -> usize {
        let template = self.template.as_ref().map_or(0, Portable::weight);
        let reducers = self.reducers.iter().map(PackedReducer::weight);
        template + reducers.sum::<usize>()
    }

    fn fits(&self, heap: &mut Heap, scope: &Scope) -> bool {
        let reducers = self.reducers.iter().enumerate();
        let mut fits = reducers.map(|(at, part)| match (scope.reducers.get(at), part) {
            (Some(Some(Reducer::Plain(known))), PackedReducer::Plain(_, part)) => part.fits(known),
            (None, PackedReducer::Plain(initial, part)) => part.fits(&initial.make(heap)),
            (Some(Some(Reducer::Sort(sort))), PackedReducer::Sort(more_keys, more_rows)) => {
                sort.has_keys() && more_keys.len() == more_rows.len()
                    || !sort.has_keys() && more_keys.is_empty()
            }
            (None, PackedReducer::Sort(..)) => true,
            (Some(Some(Reducer::Keyed(groups))), PackedReducer::Keyed(kind, slots)) => {
                groups.kind == *kind
                    && slots.iter().all(|(key, slot)| {
                        let key = heap.unpack(key);
                        groups.fits(&key, |scope| slot.fits(heap, scope))
                    })
            }
            (None, PackedReducer::Keyed(_, slots)) => {
                // A key that is there twice would join slots that need not fit each other.
                let known = Table::default();
                slots.iter().all(|(key, slot)| {
                    let key = heap.unpack(key);
                    let is_new = known.get(&key).is_none();
                    known.insert(key, Value::Nil);
                    is_new && slot.fits(heap, &Scope::default())
                })
            }
            _ => false,
        });
        fits.all(|fits| fits)
    }

    fn join(self, heap: &mut Heap, vm: &mut dyn Evaluator, scope: &mut Scope) -> Eval<()> {
        for (at, part) in self.reducers.into_iter().enumerate() {
            if at == scope.reducers.len() {
                scope.reducers.push(Some(match &part {
                    PackedReducer::Plain(initial, _) => Reducer::Plain(initial.make(heap)),
                    PackedReducer::Sort(..) => Reducer::Sort(Box::default()),
                    PackedReducer::Keyed(kind, _) => Reducer::keyed(*kind),
                }));
            }
            let Some(Some(known)) = scope.reducers.get_mut(at) else {
                continue;
            };
            match (known, part) {
                (Reducer::Plain(known), PackedReducer::Plain(_, part)) => {
                    join_part(heap, vm, known, part)?;
                }
                (Reducer::Sort(sort), PackedReducer::Sort(keys, rows)) => {
                    let mut keys = keys.iter();
                    for row in &rows {
                        let key = keys.next().map(|key| heap.unpack(key));
                        match row {
                            Portable::Json(text) => sort.push_text(key, text),
                            row => sort.push(key, heap.unpack(row), &Bounds::default()),
                        }
                    }
                    sort.spill(vm)?;
                }
                (Reducer::Keyed(groups), PackedReducer::Keyed(_, slots)) => {
                    for (key, slot) in slots {
                        let at = groups.place(0, &heap.unpack(&key));
                        groups.with(at, |scope| slot.join(heap, vm, scope))?;
                    }
                }
                _ => {}
            }
        }
        if scope.template.is_none() {
            scope.template = self.template.map(|it| heap.unpack(&it));
        }
        Ok(())
    }
}

fn join_part(
    heap: &mut Heap,
    vm: &mut dyn Evaluator,
    known: &mut Accumulator,
    part: Part,
) -> Eval<()> {
    // Integers add up to the same in any order, which is quicker than one by one.
    if let (Accumulator::Sum { total, .. }, Part::Values(PackedColumn::Ints(list))) =
        (&mut *known, &part)
        && let Value::Int(_) | Value::Big(_) = total
    {
        let sum: i128 = list.iter().map(|it| i128::from(*it)).sum();
        let sum = crate::value::number::integer(BigInt::from(sum));
        *total = binary(vm, Op::Add, total, &sum)?;
        return Ok(());
    }
    let part = part.unpack(heap, known);
    known.merge(vm, part)
}

impl PackedReducer {
    fn pack(packer: &mut Packer, reducer: &Reducer) -> Option<PackedReducer> {
        Some(match reducer {
            Reducer::Chunk { initial, part } => {
                PackedReducer::Plain(Initial::of(packer, initial)?, Part::of(packer, part)?)
            }
            // The block is the first row's, which only that row's thread has.
            Reducer::Plain(_) | Reducer::Reduce(_) => return None,
            Reducer::Sort(sort) => {
                let (keys, rows) = sort.pack(packer)?;
                PackedReducer::Sort(keys, rows)
            }
            Reducer::Keyed(groups) => {
                let slots = groups.scopes().map(|group| {
                    let (key, scope) = group?;
                    Some((packer.pack(key)?, Slot::pack(packer, scope)?))
                });
                PackedReducer::Keyed(groups.kind, slots.collect::<Option<_>>()?)
            }
        })
    }

    fn weight(&self) -> usize {
        let all = |list: &[Portable]| list.iter().map(Portable::weight).sum::<usize>();
        size_of::<PackedReducer>()
            + match self {
                PackedReducer::Plain(_, part) => part.weight(),
                PackedReducer::Sort(keys, rows) => all(keys) + all(rows),
                PackedReducer::Keyed(_, slots) => slots
                    .iter()
                    .map(|(key, slot)| key.weight() + slot.weight())
                    .sum(),
            }
    }
}

impl Part {
    fn of(packer: &mut Packer, accumulator: &Accumulator) -> Option<Part> {
        Some(match accumulator {
            Accumulator::Count(count) => Part::Count(*count),
            Accumulator::One(which, value) => Part::One(*which, packer.pack(value)?),
            Accumulator::Percentile { values, .. } | Accumulator::Weighted { values, .. } => {
                Part::Percentile(values.map(|list| packer.all(list))?)
            }
            Accumulator::Group(list) => Part::Group(packer.all(list)?),
            Accumulator::Distinct(values) => {
                let values_list = values.keys();
                // A value that was changed in place is found by its earlier value.
                if !values_list.iter().all(|value| values.contains(value)) {
                    return None;
                }
                Part::Distinct(packer.all(&values_list)?)
            }
            Accumulator::Top(top) => Part::Top(
                top.rows
                    .iter()
                    .map(|(key, row)| Some((packer.pack(key)?, packer.pack(row)?)))
                    .collect::<Option<_>>()?,
            ),
            Accumulator::Mode(counts) => {
                let pairs = counts.pairs();
                // As above.
                if !pairs.iter().all(|(value, _)| counts.contains(value)) {
                    return None;
                }
                let pairs = pairs.iter();
                let pairs =
                    pairs.map(|(value, count)| Some((packer.pack(value)?, packer.pack(count)?)));
                Part::Top(pairs.collect::<Option<_>>()?)
            }
            Accumulator::Histogram(histogram) => Part::Histogram(histogram.counts.clone()),
            Accumulator::Chunk(values) => Part::Values(values.map(|list| packer.all(list))?),
            _ => return None,
        })
    }

    fn weight(&self) -> usize {
        match self {
            Part::Count(_) => 0,
            Part::One(_, value) => value.weight(),
            Part::Percentile(values) | Part::Values(values) => values.weight(),
            Part::Group(list) | Part::Distinct(list) => list.iter().map(Portable::weight).sum(),
            Part::Top(rows) => rows
                .iter()
                .map(|(key, row)| key.weight() + row.weight())
                .sum(),
            Part::Histogram(counts) => counts.len() * size_of::<(i64, u64)>(),
        }
    }

    /// `known` has the settings of the accumulator.
    fn unpack(self, heap: &mut Heap, known: &Accumulator) -> Accumulator {
        match self {
            Part::Count(count) => Accumulator::Count(count),
            Part::One(which, value) => Accumulator::One(which, heap.unpack(&value)),
            Part::Percentile(values) | Part::Values(values) => Accumulator::Chunk(match values {
                Column::Ints(list) => Column::Ints(list),
                Column::Floats(list) => Column::Floats(list),
                Column::Mixed(list) => Column::Mixed(heap.all(&list)),
            }),
            Part::Group(list) => Accumulator::Group(heap.all(&list)),
            Part::Distinct(list) => {
                Accumulator::distinct(list.iter().map(|value| heap.unpack(value)))
            }
            Part::Top(rows) => {
                let mut top = Top::of(rows.len(), Ordering::Greater);
                let rows = rows.iter();
                let rows = rows.map(|(key, row)| (heap.unpack(key), heap.unpack(row)));
                if let Accumulator::Mode(_) = known {
                    return Accumulator::Mode(Box::new(Table::from_pairs(rows)));
                }
                top.rows = rows.collect();
                Accumulator::Top(top)
            }
            Part::Histogram(counts) => {
                let width = match known {
                    Accumulator::Histogram(known) => known.width.clone(),
                    _ => Width::Doubling,
                };
                Accumulator::Histogram(Histogram { width, counts })
            }
        }
    }

    /// Whether the chunk's steps apply to the current values without an error.
    fn fits(&self, known: &Accumulator) -> bool {
        let number =
            |value: &Value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Big(_));
        // A part may begin with a row for which another one is kept.
        if let (Part::One(part, _), Accumulator::One(which, _)) = (self, known)
            && part != which
        {
            return false;
        }
        match (self, known) {
            (Part::Count(_), Accumulator::Count(_))
            | (Part::Percentile(_), Accumulator::Percentile { .. })
            | (Part::Group(_), Accumulator::Group(_))
            | (Part::Distinct(_), Accumulator::Distinct(_))
            | (Part::One(Which::First | Which::Last, _), Accumulator::One(..))
            | (Part::Histogram(_), Accumulator::Histogram(_)) => true,
            (Part::Percentile(values), Accumulator::Weighted { .. }) => values.is_weighted(),
            (Part::Values(values), Accumulator::Correlation(_)) => values.is_of_pairs(),
            (Part::Top(counts), Accumulator::Mode(_)) => counts
                .iter()
                .all(|(_, count)| matches!(count, Portable::Int(count) if *count >= 0)),
            (Part::Top(more), Accumulator::Top(known)) => {
                let texts = more
                    .iter()
                    .all(|(key, _)| matches!(key, Portable::Str(_) | Portable::FrozenStr(_)))
                    && known
                        .rows
                        .iter()
                        .all(|(key, _)| matches!(key, Value::Str(_)));
                let numbers = more.iter().all(|(key, _)| match key {
                    Portable::Int(_) | Portable::Big(_) => true,
                    Portable::Float(key) => !key.is_nan(),
                    _ => false,
                }) && known.rows.iter().all(|(key, _)| match key {
                    Value::Float(key) => !key.is_nan(),
                    key => number(key),
                });
                texts || numbers
            }
            (Part::One(_, more), Accumulator::One(_, known)) => match (more, known) {
                (Portable::Nil, _)
                | (_, Value::Nil)
                | (Portable::Str(_), Value::Str(_))
                | (Portable::Int(_), Value::Int(_)) => true,
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
            (Part::Values(values), Accumulator::Deviation(_)) => values.is_numeric(),
            _ => false,
        }
    }
}
