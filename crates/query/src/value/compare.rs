//! `==`, `eql?`, `hash` and `<=>`.

use super::exception::{Eval, not_comparable};
use super::{Value, number};
use crate::class::Class;
use lastbyte_json::fast_hash::{FastHasher, of_bytes};
use std::cmp::Ordering;
use std::hash::Hasher;

/// Maximum depth of compared structures; a deeper one contains itself.
const DEPTH_MAX: u32 = 2000;

/// `==`.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    equal_to(a, b, number::equal, 0)
}

/// `eql?`: 1 and 1.0 differ.
pub(crate) fn eql(a: &Value, b: &Value) -> bool {
    equal_to(a, b, eql_number, 0)
}

#[expect(clippy::float_cmp, reason = "eql? on floats is exact")]
fn eql_number(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Float(_), _) | (_, Value::Float(_)) => false,
        _ => number::equal(a, b),
    }
}

fn equal_to(a: &Value, b: &Value, numbers: fn(&Value, &Value) -> bool, depth: u32) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    let inner = |a: &Value, b: &Value| equal_to(a, b, numbers, depth + 1);
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => *a.get() == *b.get(),
        (
            Value::Int(_) | Value::Float(_) | Value::Big(_),
            Value::Int(_) | Value::Float(_) | Value::Big(_),
        ) => numbers(a, b),
        (Value::Array(a), Value::Array(b)) => {
            if std::rc::Rc::ptr_eq(a, b) {
                return true;
            }
            let (a, b) = (a.borrow(), b.borrow());
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| inner(a, b))
        }
        (Value::Hash(a), Value::Hash(b)) => {
            std::rc::Rc::ptr_eq(a, b)
                || a.len() == b.len()
                    && a.pairs()
                        .iter()
                        .all(|(key, value)| b.get(key).is_some_and(|other| inner(value, &other)))
        }
        (Value::Range(a), Value::Range(b)) => {
            a.exclusive == b.exclusive && inner(&a.from, &b.from) && inner(&a.to, &b.to)
        }
        (Value::Regexp(a), Value::Regexp(b)) => {
            a.source() == b.source() && a.options() == b.options()
        }
        (Value::Time(a), Value::Time(b)) => a.nanoseconds() == b.nanoseconds(),
        (Value::Exception(a), Value::Exception(b)) => {
            a.class == b.class && inner(&a.message, &b.message)
        }
        _ => a.same(b),
    }
}

/// Equal by `eql?`, equal in hash.
pub(crate) fn hash_of(value: &Value) -> u64 {
    let mut hasher = FastHasher::default();
    feed(&mut hasher, value, 0);
    hasher.finish()
}

fn feed(hasher: &mut FastHasher, value: &Value, depth: u32) {
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
            for element in it.borrow().iter() {
                feed(hasher, element, depth + 1);
            }
        }
        Value::Hash(it) => {
            // Two Hashes are equal in any order.
            let sum = it.borrow().iter().fold(0_u64, |sum, (key, value)| {
                let mut one = FastHasher::default();
                feed(&mut one, key, depth + 1);
                feed(&mut one, value, depth + 1);
                sum.wrapping_add(one.finish())
            });
            hasher.write_u64(sum);
        }
        Value::Range(it) => {
            hasher.write_u8(9 + u8::from(it.exclusive));
            feed(hasher, &it.from, depth + 1);
            feed(hasher, &it.to, depth + 1);
        }
        Value::Time(it) => hasher.write_u64(it.nanoseconds() as u64),
        Value::Regexp(it) => hasher.write_u64(of_bytes(it.source().as_bytes())),
        Value::Class(it) => std::hash::Hash::hash(it, hasher),
        Value::Exception(it) => feed(hasher, &it.message, depth + 1),
        other => hasher.write_usize(other.address().map_or(0, |address| address as usize)),
    }
}

/// `<=>`: `None` is nil.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    compare_to(a, b, 0)
}

fn compare_to(a: &Value, b: &Value, depth: u32) -> Option<Ordering> {
    if depth > DEPTH_MAX {
        return None;
    }
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (
            Value::Int(_) | Value::Float(_) | Value::Big(_),
            Value::Int(_) | Value::Float(_) | Value::Big(_),
        ) => number::compare(a, b),
        (Value::Str(a), Value::Str(b)) => Some(a.get().as_bytes().cmp(b.get().as_bytes())),
        (Value::Symbol(a), Value::Symbol(b)) => Some(a.name().cmp(&b.name())),
        (Value::Array(a), Value::Array(b)) => {
            let (a, b) = (a.borrow(), b.borrow());
            for (x, y) in a.iter().zip(b.iter()) {
                match compare_to(x, y, depth + 1) {
                    Some(Ordering::Equal) => {}
                    other => return other,
                }
            }
            Some(a.len().cmp(&b.len()))
        }
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
