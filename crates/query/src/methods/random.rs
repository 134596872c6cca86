//! The methods of Random; `sample` and `shuffle`.

use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error};
use crate::value::inspect::inspect;
use crate::value::random::{Random, rand};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::cell::RefCell;

/// `Random#rand`.
pub(super) fn call(
    _: &mut Vm,
    _: &Value,
    random: &RefCell<Random>,
    _: M,
    args: &[Value],
    _: Option<&Block<'_>>,
) -> Eval {
    if let Some(Value::Int(limit)) = args.first()
        && *limit <= 0
    {
        return Err(argument_error(format!(
            "invalid argument - {}",
            inspect(&args[0])
        )));
    }
    rand(&mut random.borrow_mut(), args.first())
}

/// Up to this number of elements, Ruby's `sample` remembers the places taken; above it, it swaps.
const SORTED_MAX: usize = 10;

/// `sample` and `shuffle`.
pub(super) fn pick(vm: &mut Vm, list: &[Value], method: M, args: &[Value]) -> Eval {
    let mut args = args;
    let mut given = None;
    if let Some((Value::Hash(options), before)) = args.split_last() {
        args = before;
        given = options.get(&Value::symbol("random"));
    }
    let mut limited = |limit: u64| match &given {
        Some(Value::Random(random)) => random.borrow_mut().limited(limit),
        _ => vm.random.limited(limit),
    };
    if method == M::Sample && args.is_empty() {
        if list.is_empty() {
            return Ok(Value::Nil);
        }
        return Ok(list[limited(list.len() as u64 - 1) as usize].clone());
    }
    let mut list = list.to_vec();
    if method == M::Shuffle {
        for at in (1..list.len()).rev() {
            let other = limited(at as u64) as usize;
            list.swap(at, other);
        }
        return Ok(Value::array(list));
    }
    let count = super::array::size_argument(&args[0], "negative sample number")?.min(list.len());
    if count <= SORTED_MAX {
        // The places taken so far. Each draw is a place among those that are left.
        let (mut taken, mut sample) = (Vec::new(), Vec::new());
        for at in 0..count {
            let mut place = limited((list.len() - at - 1) as u64) as usize;
            let mut before = 0;
            while taken.get(before).is_some_and(|taken| place >= *taken) {
                place += 1;
                before += 1;
            }
            taken.insert(before, place);
            sample.push(list[place].clone());
        }
        return Ok(Value::array(sample));
    }
    for at in 0..count {
        let other = at + limited((list.len() - at - 1) as u64) as usize;
        list.swap(at, other);
    }
    list.truncate(count);
    Ok(Value::array(list))
}
