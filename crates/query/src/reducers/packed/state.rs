//! Scopes as bytes of a state file.

use super::super::encoding::{
    Bytes, Checker, DEPTH_MAX, write_all, write_count, write_float, write_int,
};
use super::super::groups::Keyed;
use super::super::histogram::{Relative, Width};
use super::super::portable::Portable;
use super::{Initial, PackedColumn, PackedReducer, PackedScope, Part, Slot};
use crate::reducers::accumulator::Which;
use crate::reducers::shares::Shares;
use std::cmp::Ordering;

/// The maximum of a count in a state, so that sums do not overflow.
const COUNT_MAX: u64 = 1 << 48;

impl PackedScope {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_all(out, &self.heap, |out, entry| {
            entry.as_ref().unwrap_or(&Portable::Nil).write(out);
        });
        self.slot.write(out);
    }

    /// `None` if the bytes are not a scope.
    pub(crate) fn read(bytes: &mut Bytes<'_>) -> Option<PackedScope> {
        let start = bytes.0.len();
        let heap = bytes.all(1, |bytes| Portable::read(bytes, 0).map(Some))?;
        let slot = Slot::read(bytes, 0)?;
        let scope = PackedScope { slot, heap };
        scope.is_bounded(start - bytes.0.len()).then_some(scope)
    }

    /// Whether its values hold no circle, and nest and expand within the bounds of a scope of this number of bytes.
    pub(crate) fn is_bounded(&self, bytes: usize) -> bool {
        let mut checker = Checker::new(&self.heap, bytes);
        self.slot.check(&mut checker).is_some()
    }
}

impl Slot {
    fn write(&self, out: &mut Vec<u8>) {
        match &self.template {
            None => out.push(0),
            Some(template) => {
                out.push(1);
                template.write(out);
            }
        }
        write_all(out, &self.reducers, |out, reducer| reducer.write(out));
    }

    fn read(bytes: &mut Bytes<'_>, depth: usize) -> Option<Slot> {
        if depth > DEPTH_MAX {
            return None;
        }
        let template = match bytes.byte()? {
            0 => None,
            1 => Some(Portable::read(bytes, 0)?),
            _ => return None,
        };
        let reducers = bytes.all(1, |bytes| PackedReducer::read(bytes, depth))?;
        Some(Slot { reducers, template })
    }

    fn check(&self, checker: &mut Checker<'_>) -> Option<()> {
        if let Some(template) = &self.template {
            checker.check(template)?;
        }
        let mut reducers = self.reducers.iter();
        reducers.try_for_each(|reducer| reducer.check(checker))
    }
}

impl PackedReducer {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            PackedReducer::Plain(initial, part) => {
                out.push(0);
                initial.write(out);
                part.write(out);
            }
            PackedReducer::Sort(keys, rows) => {
                out.push(1);
                write_values(out, keys);
                write_values(out, rows);
            }
            PackedReducer::Keyed(kind, slots) => {
                out.push(match kind {
                    Keyed::List => 2,
                    Keyed::Hash => 3,
                });
                write_all(out, slots, |out, (key, slot)| {
                    key.write(out);
                    slot.write(out);
                });
            }
        }
    }

    fn read(bytes: &mut Bytes<'_>, depth: usize) -> Option<PackedReducer> {
        Some(match bytes.byte()? {
            0 => PackedReducer::Plain(Initial::read(bytes)?, Part::read(bytes)?),
            1 => {
                let (keys, rows) = (read_values(bytes)?, read_values(bytes)?);
                if !keys.is_empty() && keys.len() != rows.len() {
                    return None;
                }
                PackedReducer::Sort(keys, rows)
            }
            kind @ (2 | 3) => PackedReducer::Keyed(
                if kind == 2 { Keyed::List } else { Keyed::Hash },
                bytes.all(3, |bytes| {
                    let key = Portable::read(bytes, 0)?;
                    Some((key, Slot::read(bytes, depth + 1)?))
                })?,
            ),
            _ => return None,
        })
    }

    fn check(&self, checker: &mut Checker<'_>) -> Option<()> {
        match self {
            PackedReducer::Plain(initial, part) => {
                if let Initial::Sum(total, initial) = initial {
                    checker.check(total)?;
                    checker.check(initial)?;
                }
                part.check(checker)
            }
            PackedReducer::Sort(keys, rows) => {
                let mut values = keys.iter().chain(rows);
                values.try_for_each(|value| checker.check(value))
            }
            PackedReducer::Keyed(_, slots) => slots.iter().try_for_each(|(key, slot)| {
                checker.check(key)?;
                slot.check(checker)
            }),
        }
    }
}

fn write_values(out: &mut Vec<u8>, values: &[Portable]) {
    write_all(out, values, |out, value| value.write(out));
}

fn read_values(bytes: &mut Bytes<'_>) -> Option<Vec<Portable>> {
    bytes.all(1, |bytes| Portable::read(bytes, 0))
}

fn write_shares(out: &mut Vec<u8>, shares: &Shares) {
    match shares {
        Shares::One(p) => {
            out.push(7);
            write_float(out, *p);
        }
        Shares::Many(list) => {
            out.push(8);
            write_all(out, list, |out, p| write_float(out, *p));
        }
    }
}

fn read_shares(kind: u8, bytes: &mut Bytes<'_>) -> Option<Shares> {
    let share = |bytes: &mut Bytes<'_>| bytes.float().filter(|p| (0.0..=1.0).contains(p));
    Some(match kind {
        7 => Shares::One(share(bytes)?),
        8 => Shares::Many(bytes.all(8, share)?),
        _ => return None,
    })
}

impl Initial {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Initial::Count => out.push(0),
            Initial::Sum(total, initial) => {
                out.push(1);
                total.write(out);
                initial.write(out);
            }
            Initial::One(Which::Least) => out.push(2),
            Initial::One(Which::Most) => out.push(3),
            Initial::One(Which::First) => out.push(16),
            Initial::One(Which::Last) => out.push(17),
            Initial::Average => out.push(4),
            Initial::Deviation(sample) => out.push(5 + u8::from(*sample)),
            Initial::Percentile(shares) => write_shares(out, shares),
            Initial::Weighted(shares) => {
                out.push(21);
                write_shares(out, shares);
            }
            Initial::Group => out.push(9),
            Initial::Distinct => out.push(10),
            Initial::Top(count, first) => {
                out.push(if *first == Ordering::Greater { 11 } else { 15 });
                write_count(out, *count as u64);
            }
            Initial::Histogram(Width::Whole(width)) => {
                out.push(12);
                write_int(out, *width);
            }
            Initial::Histogram(Width::Real(width)) => {
                out.push(13);
                write_float(out, *width);
            }
            Initial::Histogram(Width::Doubling) => out.push(14),
            Initial::Histogram(Width::Relative(relative)) => {
                out.push(20);
                write_float(out, relative.error);
                write_shares(out, &relative.shares);
            }
            Initial::Mode => out.push(18),
            Initial::Correlation => out.push(19),
        }
    }

    fn read(bytes: &mut Bytes<'_>) -> Option<Initial> {
        Some(match bytes.byte()? {
            0 => Initial::Count,
            1 => Initial::Sum(Portable::read(bytes, 0)?, Portable::read(bytes, 0)?),
            2 => Initial::One(Which::Least),
            3 => Initial::One(Which::Most),
            4 => Initial::Average,
            sample @ (5 | 6) => Initial::Deviation(sample == 6),
            kind @ (7 | 8) => Initial::Percentile(read_shares(kind, bytes)?),
            9 => Initial::Group,
            10 => Initial::Distinct,
            kind @ (11 | 15) => Initial::Top(
                usize::try_from(bytes.count()?).ok().filter(|it| *it > 0)?,
                if kind == 11 {
                    Ordering::Greater
                } else {
                    Ordering::Less
                },
            ),
            12 => Initial::Histogram(Width::Whole(bytes.int().filter(|width| *width > 0)?)),
            13 => Initial::Histogram(Width::Real(
                bytes
                    .float()
                    .filter(|width| width.is_finite() && *width > 0.0)?,
            )),
            14 => Initial::Histogram(Width::Doubling),
            16 => Initial::One(Which::First),
            17 => Initial::One(Which::Last),
            18 => Initial::Mode,
            19 => Initial::Correlation,
            20 => {
                let error = bytes.float()?;
                let shares = read_shares(bytes.byte()?, bytes)?;
                Initial::Histogram(Width::Relative(Relative::new(error, shares)?))
            }
            21 => Initial::Weighted(read_shares(bytes.byte()?, bytes)?),
            _ => return None,
        })
    }
}

impl Part {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Part::Count(count) => {
                out.push(0);
                write_count(out, *count);
            }
            Part::One(which, value) => {
                out.push(match which {
                    Which::Least => 1,
                    Which::Most => 2,
                    Which::First => 9,
                    Which::Last => 10,
                });
                value.write(out);
            }
            Part::Percentile(column) => {
                out.push(3);
                column.write(out);
            }
            Part::Group(list) => {
                out.push(4);
                write_values(out, list);
            }
            Part::Distinct(list) => {
                out.push(5);
                write_values(out, list);
            }
            Part::Top(rows) => {
                out.push(6);
                write_all(out, rows, |out, (key, row)| {
                    key.write(out);
                    row.write(out);
                });
            }
            Part::Histogram(counts) => {
                out.push(7);
                write_count(out, counts.len() as u64);
                for (index, count) in counts {
                    write_int(out, *index);
                    write_count(out, *count);
                }
            }
            Part::Values(column) => {
                out.push(8);
                column.write(out);
            }
        }
    }

    fn read(bytes: &mut Bytes<'_>) -> Option<Part> {
        let count = |bytes: &mut Bytes<'_>| bytes.count().filter(|it| *it <= COUNT_MAX);
        Some(match bytes.byte()? {
            0 => Part::Count(count(bytes)?),
            1 => Part::One(Which::Least, Portable::read(bytes, 0)?),
            2 => Part::One(Which::Most, Portable::read(bytes, 0)?),
            3 => Part::Percentile(PackedColumn::read(bytes)?),
            4 => Part::Group(read_values(bytes)?),
            5 => Part::Distinct(read_values(bytes)?),
            6 => Part::Top(bytes.all(2, |bytes| {
                let key = Portable::read(bytes, 0)?;
                Some((key, Portable::read(bytes, 0)?))
            })?),
            7 => {
                let counts = bytes.all(2, |bytes| Some((bytes.int()?, count(bytes)?)))?;
                Part::Histogram(counts.into_iter().collect())
            }
            8 => Part::Values(PackedColumn::read(bytes)?),
            9 => Part::One(Which::First, Portable::read(bytes, 0)?),
            10 => Part::One(Which::Last, Portable::read(bytes, 0)?),
            _ => return None,
        })
    }

    fn check(&self, checker: &mut Checker<'_>) -> Option<()> {
        match self {
            Part::One(_, value) => checker.check(value),
            Part::Group(list)
            | Part::Distinct(list)
            | Part::Percentile(PackedColumn::Mixed(list))
            | Part::Values(PackedColumn::Mixed(list)) => {
                list.iter().try_for_each(|value| checker.check(value))
            }
            Part::Count(_) | Part::Histogram(_) | Part::Percentile(_) | Part::Values(_) => Some(()),
            Part::Top(rows) => rows.iter().try_for_each(|(key, row)| {
                checker.check(key)?;
                checker.check(row)
            }),
        }
    }
}

impl PackedColumn {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            PackedColumn::Ints(list) => {
                out.push(0);
                write_all(out, list, |out, it| write_int(out, *it));
            }
            PackedColumn::Floats(list) => {
                out.push(1);
                write_all(out, list, |out, it| write_float(out, *it));
            }
            PackedColumn::Mixed(list) => {
                out.push(2);
                write_values(out, list);
            }
        }
    }

    fn read(bytes: &mut Bytes<'_>) -> Option<PackedColumn> {
        Some(match bytes.byte()? {
            0 => PackedColumn::Ints(bytes.all(1, Bytes::int)?),
            1 => PackedColumn::Floats(bytes.all(8, Bytes::float)?),
            2 => PackedColumn::Mixed(read_values(bytes)?),
            _ => return None,
        })
    }
}
