//! `==`, `eql?`, `hash` and `<=>`.

use super::exception::{Eval, not_comparable};
use super::table::Table;
use super::{List, Value, number};
use crate::class::Class;
use lastbyte_json::fast_hash::{FastHasher, of_bytes};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::hash::Hasher;
use std::rc::Rc;

/// Maximum depth of compared structures; a deeper one contains itself.
const DEPTH_MAX: u32 = 2000;

/// Pairs of objects with parts that a comparison walks without a record of them.
const PAIRS_FREE: u32 = 1 << 12;

/// Number of parts that count for the hash of a value, with all elements of the last Array or Hash.
const HASHED_MAX: usize = 1 << 12;

/// What is asked about two values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    Equal,
    Eql,
    Order,
}

/// `==`.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    related(a, b, Relation::Equal)
}

/// `eql?`: 1 and 1.0 differ.
pub(crate) fn eql(a: &Value, b: &Value) -> bool {
    related(a, b, Relation::Eql)
}

fn related(a: &Value, b: &Value, relation: Relation) -> bool {
    match (a, b) {
        (Value::Array(_), Value::Array(_))
        | (Value::Hash(_), Value::Hash(_))
        | (Value::Range(_), Value::Range(_))
        | (Value::Exception(_), Value::Exception(_)) => Pairs::default().equal(a, b, relation, 0),
        _ => equal_alone(a, b, relation),
    }
}

#[expect(clippy::float_cmp, reason = "eql? on floats is exact")]
fn eql_number(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Float(_), _) | (_, Value::Float(_)) => false,
        _ => number::equal(a, b),
    }
}

/// Of values without parts.
#[inline]
fn equal_alone(a: &Value, b: &Value, relation: Relation) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => *a.get() == *b.get(),
        (
            Value::Int(_) | Value::Float(_) | Value::Big(_),
            Value::Int(_) | Value::Float(_) | Value::Big(_),
        ) => match relation {
            Relation::Eql => eql_number(a, b),
            Relation::Equal | Relation::Order => number::equal(a, b),
        },
        (Value::Regexp(a), Value::Regexp(b)) => {
            a.source() == b.source() && a.options() == b.options()
        }
        (Value::Time(a), Value::Time(b)) => a.nanoseconds() == b.nanoseconds(),
        _ => a.same(b),
    }
}

/// The pairs of objects that one comparison meets. Values that share parts (`x = [x, x]`) have few objects, but more paths to
/// them than can be walked: beyond a number of pairs, those that are shared are compared once. The first pair that differs
/// ends the comparison, so a pair that was met before is equal.
#[derive(Default)]
struct Pairs {
    met: u32,
    known: BTreeSet<(usize, usize, Relation)>,
}

impl Pairs {
    /// Whether these are two objects that were not compared yet.
    fn are_new<T>(&mut self, a: &Rc<T>, b: &Rc<T>, relation: Relation) -> bool {
        if Rc::ptr_eq(a, b) {
            return false;
        }
        self.met = self.met.saturating_add(1);
        let is_shared = Rc::strong_count(a) > 1 || Rc::strong_count(b) > 1;
        let pair = (Rc::as_ptr(a).addr(), Rc::as_ptr(b).addr(), relation);
        self.met <= PAIRS_FREE || !is_shared || self.known.insert(pair)
    }

    fn equal(&mut self, a: &Value, b: &Value, relation: Relation, depth: u32) -> bool {
        if depth > DEPTH_MAX {
            return false;
        }
        match (a, b) {
            (Value::Array(a), Value::Array(b)) => {
                if !self.are_new(a, b, relation) {
                    return true;
                }
                let (a, b) = (a.borrow(), b.borrow());
                let mut pairs = a.iter().zip(b.iter());
                a.len() == b.len() && pairs.all(|(a, b)| self.equal(a, b, relation, depth + 1))
            }
            (Value::Hash(a), Value::Hash(b)) => {
                !self.are_new(a, b, relation)
                    || a.len() == b.len()
                        && a.pairs().iter().all(|(key, value)| {
                            self.member(b, key, depth)
                                .is_some_and(|other| self.equal(value, &other, relation, depth + 1))
                        })
            }
            (Value::Range(a), Value::Range(b)) => {
                !self.are_new(a, b, relation)
                    || a.exclusive == b.exclusive
                        && self.equal(&a.from, &b.from, relation, depth + 1)
                        && self.equal(&a.to, &b.to, relation, depth + 1)
            }
            (Value::Exception(a), Value::Exception(b)) => {
                !self.are_new(a, b, relation)
                    || a.class == b.class && self.equal(&a.message, &b.message, relation, depth + 1)
            }
            _ => equal_alone(a, b, relation),
        }
    }

    /// The value of a key.
    fn member(&mut self, table: &Table, key: &Value, depth: u32) -> Option<Value> {
        table.get_by(hash_of(key), |known| {
            let is_it = self.equal(known, key, Relation::Eql, depth + 1);
            if !is_it {
                // The comparison goes on, although pairs that were met may differ.
                self.known.clear();
            }
            is_it
        })
    }

    /// `<=>` of two Arrays.
    fn order(&mut self, a: &Rc<List>, b: &Rc<List>, depth: u32) -> Option<Ordering> {
        if depth > DEPTH_MAX {
            return None;
        }
        if !self.are_new(a, b, Relation::Order) {
            return Some(Ordering::Equal);
        }
        let (a, b) = (a.borrow(), b.borrow());
        for pair in a.iter().zip(b.iter()) {
            let order = match pair {
                (Value::Array(a), Value::Array(b)) => self.order(a, b, depth + 1),
                (a, b) => compare(a, b),
            };
            if order != Some(Ordering::Equal) {
                return order;
            }
        }
        Some(a.len().cmp(&b.len()))
    }
}

/// Equal by `eql?`, equal in hash.
pub(crate) fn hash_of(value: &Value) -> u64 {
    let (mut hasher, mut left) = (FastHasher::default(), HASHED_MAX);
    feed(&mut hasher, value, 0, &mut left);
    hasher.finish()
}

/// `left` is the number of parts that still count. Values that are equal run out of it at the same part.
fn feed(hasher: &mut FastHasher, value: &Value, depth: u32, left: &mut usize) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Str(text) => hasher.write_u64(of_bytes(text.get().as_bytes())),
        Value::Int(it) => hasher.write_u64(*it as u64 ^ 0x1111),
        Value::Float(it) => hasher.write_u64(if *it == 0.0 { 7 } else { it.to_bits() }),
        Value::Symbol(it) => {
            hasher.write_u8(3);
            std::hash::Hash::hash(it, hasher);
        }
        Value::Nil => hasher.write_u8(4),
        Value::Bool(it) => hasher.write_u8(5 + u8::from(*it)),
        Value::Big(it) => hasher.write_u64(of_bytes(&it.to_signed_bytes_le())),
        Value::Array(it) => {
            hasher.write_u8(8);
            let list = it.borrow();
            if take(left, list.len()) {
                for element in list.iter() {
                    feed(hasher, element, depth + 1, left);
                }
            }
        }
        Value::Hash(it) => {
            let table = it.borrow();
            if !take(left, it.len()) {
                return;
            }
            // Two Hashes are equal in any order: each entry has the same share.
            let share = *left / it.len().max(1);
            let mut taken = 0;
            let sum = table.iter().fold(0_u64, |sum, (key, value)| {
                let mut one = FastHasher::default();
                let mut left = share;
                feed(&mut one, key, depth + 1, &mut left);
                feed(&mut one, value, depth + 1, &mut left);
                taken += share - left;
                sum.wrapping_add(one.finish())
            });
            *left -= taken;
            hasher.write_u64(sum);
        }
        Value::Range(it) => {
            hasher.write_u8(9 + u8::from(it.exclusive));
            if take(left, 2) {
                feed(hasher, &it.from, depth + 1, left);
                feed(hasher, &it.to, depth + 1, left);
            }
        }
        Value::Time(it) => hasher.write_u64(it.nanoseconds() as u64),
        Value::Regexp(it) => hasher.write_u64(of_bytes(it.source().as_bytes())),
        Value::Class(it) => std::hash::Hash::hash(it, hasher),
        Value::Exception(it) => feed(hasher, &it.message, depth + 1, left),
        other => hasher.write_usize(other.address().map_or(0, |address| address as usize)),
    }
}

/// Whether parts still count; takes these.
fn take(left: &mut usize, parts: usize) -> bool {
    let counts = *left > 0;
    *left = left.saturating_sub(parts);
    counts
}

/// `<=>`: `None` is nil.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (
            Value::Int(_) | Value::Float(_) | Value::Big(_),
            Value::Int(_) | Value::Float(_) | Value::Big(_),
        ) => number::compare(a, b),
        (Value::Str(a), Value::Str(b)) => Some(a.get().as_bytes().cmp(b.get().as_bytes())),
        (Value::Symbol(a), Value::Symbol(b)) => Some(a.name().cmp(&b.name())),
        (Value::Array(a), Value::Array(b)) => Pairs::default().order(a, b, 0),
        (Value::Time(a), Value::Time(b)) => Some(a.nanoseconds().cmp(&b.nanoseconds())),
        (Value::Class(a), Value::Class(b)) => {
            if a == b {
                Some(Ordering::Equal)
            } else if a.is(*b) {
                Some(Ordering::Less)
            } else if b.is(*a) {
                Some(Ordering::Greater)
            } else {
                None
            }
        }
        _ => equal(a, b).then_some(Ordering::Equal),
    }
}

/// `<=>` where an order is needed.
pub(crate) fn order(a: &Value, b: &Value) -> Eval<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
        _ => compare(a, b).ok_or_else(|| not_comparable(a, b)),
    }
}

/// A stable sort by an order that may fail. Ruby's own sort is not stable.
pub(crate) fn sort(list: &mut Vec<Value>) -> Eval<()> {
    if list.iter().all(|it| matches!(it, Value::Int(_))) {
        list.sort_by_key(|it| if let Value::Int(it) = it { *it } else { 0 });
        return Ok(());
    }
    sort_with(list, &mut order)
}

/// The sign of the result of a comparing block.
pub(crate) fn sign(value: &Value, a: &Value, b: &Value) -> Eval<Ordering> {
    match value {
        Value::Int(it) => Ok(it.cmp(&0)),
        Value::Nil => Err(not_comparable(a, b)),
        other => number::compare(other, &Value::Int(0))
            .ok_or_else(|| not_comparable(other, &Value::Int(0))),
    }
}

/// A merge sort whose comparison may fail, call blocks, or be inconsistent.
pub(crate) fn sort_with<T: Clone>(
    list: &mut Vec<T>,
    by: &mut dyn FnMut(&T, &T) -> Eval<Ordering>,
) -> Eval<()> {
    let mut failure = None;
    let mut compare = |a: &T, b: &T| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        by(a, b).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    };
    *list = merge_sort(std::mem::take(list), &mut compare);
    failure.map_or(Ok(()), Err)
}

fn merge_sort<T>(mut list: Vec<T>, compare: &mut dyn FnMut(&T, &T) -> Ordering) -> Vec<T> {
    if list.len() <= 1 {
        return list;
    }
    let right = list.split_off(list.len() / 2);
    let (left, right) = (merge_sort(list, compare), merge_sort(right, compare));
    // The common case of sorted data.
    if let (Some(a), Some(b)) = (left.last(), right.first())
        && compare(a, b) != Ordering::Greater
    {
        let mut out = left;
        out.extend(right);
        return out;
    }
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let takes_right = compare(a, b) == Ordering::Greater;
        out.extend(if takes_right {
            right.next()
        } else {
            left.next()
        });
    }
    out.extend(left);
    out.extend(right);
    out
}

/// The class test and pattern of `case`/`when`, without blocks: `pattern === value`, when it is one of the simple ones.
pub(crate) fn case_equal(pattern: &Value, value: &Value) -> Option<bool> {
    Some(match pattern {
        Value::Class(class) => Class::of(value).is(*class),
        Value::Range(range) => covers(range, value),
        Value::Regexp(_) | Value::Proc(_) => return None,
        _ => equal(pattern, value),
    })
}

/// Whether a value lies between the ends; not comparable is outside.
pub(crate) fn covers(range: &super::Range, value: &Value) -> bool {
    let above = range.from.is_nil()
        || matches!(
            compare(&range.from, value),
            Some(Ordering::Less | Ordering::Equal)
        );
    let below = match compare(value, &range.to) {
        _ if range.to.is_nil() => true,
        Some(Ordering::Less) => true,
        Some(Ordering::Equal) => !range.exclusive,
        _ => false,
    };
    above && below
}
