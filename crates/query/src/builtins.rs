//! The builtins of a stage, as a query calls them.

mod bucket;

use crate::class::Class;
use crate::methods::enumerable::to_vec;
use crate::reducers::accumulator::{Accumulator, Which};
use crate::reducers::groups::{Groups, Keyed};
use crate::reducers::histogram::Histogram;
use crate::reducers::scope::{Reducer, Scope};
use crate::reducers::shares::Shares;
use crate::reducers::sort::Sort;
use crate::reducers::top::Top;
use crate::tree::Builtin;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, arity, error, type_error};
use crate::value::inspect::inspect;
use crate::value::number::float_of;
use crate::value::table::Table;
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(crate) fn call(
    vm: &mut Vm,
    builtin: Builtin,
    args: &[Value],
    block: Option<&Block<'_>>,
    reducing: bool,
) -> Eval {
    let first = || args.first().cloned().unwrap_or_default();
    match builtin {
        Builtin::Select => Ok(if first().truthy() {
            vm.target.clone()
        } else {
            Value::Dropped
        }),
        Builtin::Flat => match &vm.target {
            Value::Array(list) => Ok(Value::Flat(Rc::clone(list))),
            other => Err(expects("flat", "Array", other)),
        },
        Builtin::Count if args.is_empty() => step(vm, |_| Ok(Accumulator::Count(0)), Value::Nil),
        Builtin::Count => step_unless_nil(vm, |_| Ok(Accumulator::Count(0)), first()),
        Builtin::CountIf => {
            let value = if first().truthy() {
                Value::Bool(true)
            } else {
                Value::Nil
            };
            step_unless_nil(vm, |_| Ok(Accumulator::Count(0)), value)
        }
        Builtin::Sum => {
            let initial = option(args, "initial", &[])?;
            step_unless_nil(vm, |vm| sum_from(vm, initial), first())
        }
        Builtin::Min => one(vm, Which::Least, first()),
        Builtin::Max => one(vm, Which::Most, first()),
        Builtin::Average => step_unless_nil(vm, |_| Ok(Accumulator::average()), first()),
        Builtin::Stdev => {
            let sample = option(args, "sample", &[])?.is_some_and(|it| it.truthy());
            step_unless_nil(vm, |_| Ok(Accumulator::deviation(sample)), first())
        }
        Builtin::Percentile => percentile(vm, args),
        Builtin::First => one(vm, Which::First, first()),
        Builtin::Last => one(vm, Which::Last, first()),
        Builtin::Mode => step_unless_nil(vm, |_| Ok(Accumulator::Mode(Box::default())), first()),
        Builtin::Corr => {
            arity(args, 2, 2)?;
            let pair = match args {
                [x, y] if !x.is_nil() && !y.is_nil() => Value::pair(x.clone(), y.clone()),
                _ => Value::Nil,
            };
            step_unless_nil(vm, |_| Ok(Accumulator::Correlation(Box::default())), pair)
        }
        Builtin::Bucket => {
            arity(args, 2, 2)?;
            bucket::bucket(vm, &args[0], &args[1])
        }
        // The first argument is the number of the table.
        Builtin::Lookup => {
            arity(args, 2, 2)?;
            vm.tables.find(&args[0], &args[1])
        }
        Builtin::Group => {
            let value = if args.is_empty() {
                vm.target.clone()
            } else {
                first()
            };
            step(vm, |_| Ok(Accumulator::Group(Vec::new())), value)
        }
        Builtin::Distinct => {
            let none = |_: &mut Vm| Ok(Accumulator::Distinct(Box::default()));
            step_unless_nil(vm, none, first())
        }
        Builtin::Histogram => {
            arity(args, 1, 2)?;
            let none = |_: &mut Vm| Histogram::new(args.get(1)).map(Accumulator::Histogram);
            step_unless_nil(vm, none, first())
        }
        Builtin::Top => top(vm, args),
        Builtin::Sort => sort(vm, args, block),
        Builtin::Least => least(vm, args),
        Builtin::Reduce => {
            let Some(block) = block else {
                return Err(argument_error("reduce requires a block"));
            };
            let target = vm.target.clone();
            vm.reducer(
                |_| Ok(Reducer::Reduce(first())),
                |vm, reducer| {
                    if let Reducer::Reduce(value) = reducer {
                        // After an error in a row, the result is that of the rows before.
                        *value = vm.call_block(block, &[value.clone(), target])?;
                    }
                    Ok(())
                },
            )
        }
        Builtin::Map => map(vm, args, need_block(block, "map")?, reducing),
        Builtin::MapValues => map_values(vm, args, need_block(block, "map_values")?, reducing),
        Builtin::Apply => apply(vm, args, need_block(block, "apply")?),
        Builtin::GroupBy => group_by(vm, &first(), block),
    }
}

fn need_block<'a, 'b>(block: Option<&'a Block<'b>>, name: &str) -> Eval<&'a Block<'b>> {
    block.ok_or_else(|| argument_error(format!("{name} requires a block")))
}

fn expects(builtin: &str, wanted: &str, got: &Value) -> Box<crate::value::exception::Flow> {
    type_error(format!(
        "{builtin} expects {wanted}, got {}",
        Class::of(got).name()
    ))
}

/// A keyword of a reducer; those that are none of the others are errors.
fn option(args: &[Value], name: &str, others: &[&str]) -> Eval<Option<Value>> {
    let Some(Value::Hash(options)) = args.get(1) else {
        return Ok(None);
    };
    let key = Value::symbol(name);
    let is_known =
        |it: &Value| it.same(&key) || others.iter().any(|other| it.same(&Value::symbol(other)));
    match options.keys().iter().find(|it| !is_known(it)) {
        Some(unknown) => Err(argument_error(format!(
            "unknown keyword: {}",
            inspect(unknown)
        ))),
        None => Ok(options.get(&key)),
    }
}

fn sum_from(vm: &mut Vm, initial: Option<Value>) -> Eval<Accumulator> {
    let initial = initial.unwrap_or(Value::Int(0));
    // The sum is changed in place, so it needs its own copy.
    let initial = vm.send(&initial, crate::names::M::Dup, &[], None)?;
    Ok(Accumulator::sum(initial))
}

fn one(vm: &mut Vm, which: Which, value: Value) -> Eval {
    step_unless_nil(vm, |_| Ok(Accumulator::One(which, Value::Nil)), value)
}

fn plain(vm: &mut Vm, make: impl FnOnce(&mut Vm) -> Eval<Accumulator>) -> Eval<Reducer> {
    let initial = make(vm)?;
    Ok(if vm.chunk {
        Reducer::Chunk {
            part: initial.for_chunk(),
            initial: Box::new(initial),
        }
    } else {
        Reducer::Plain(initial)
    })
}

/// Runs the accumulator of this call; the flag says whether it gathers a part of the input.
fn accumulate(
    vm: &mut Vm,
    make: impl FnOnce(&mut Vm) -> Eval<Accumulator>,
    step: impl FnOnce(&mut Vm, &mut Accumulator, bool) -> Eval<()>,
) -> Eval {
    vm.reducer(
        |vm| plain(vm, make),
        |vm, reducer| match reducer {
            Reducer::Plain(accumulator) => step(vm, accumulator, false),
            Reducer::Chunk { part, .. } => step(vm, part, true),
            _ => Ok(()),
        },
    )
}

fn step(vm: &mut Vm, make: impl FnOnce(&mut Vm) -> Eval<Accumulator>, value: Value) -> Eval {
    accumulate(vm, make, |vm, accumulator, _| accumulator.step(vm, value))
}

fn step_unless_nil(
    vm: &mut Vm,
    make: impl FnOnce(&mut Vm) -> Eval<Accumulator>,
    value: Value,
) -> Eval {
    if let Value::Token(_) = value {
        return Err(type_error(
            "a reducer cannot take another one's result; use `>>` between them",
        ));
    }
    accumulate(vm, make, |vm, accumulator, _| {
        if value.is_nil() {
            Ok(())
        } else {
            accumulator.step(vm, value)
        }
    })
}

/// `top(n, key)`; without a key, the row is the key.
fn top(vm: &mut Vm, args: &[Value]) -> Eval {
    arity(args, 1, 2)?;
    let row = vm.target.clone();
    let key = args.get(1).unwrap_or(&row).clone();
    accumulate(
        vm,
        |_| Top::new(&args[0]).map(Accumulator::Top),
        |_, accumulator, _| match accumulator {
            Accumulator::Top(top) if !key.is_nil() => top.push(key, row),
            _ => Ok(()),
        },
    )
}

fn sort(vm: &mut Vm, args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let by = Vm::block_value(block);
    let (row, key) = (vm.target.clone(), args.first().cloned());
    vm.reducer(
        |_| Ok(Reducer::Sort(Box::new(Sort::by(by)))),
        |vm, reducer| match reducer {
            Reducer::Sort(sort) => {
                sort.push(key, row, &vm.bounds);
                sort.spill(vm)
            }
            _ => Ok(()),
        },
    )
}

/// `sort(key) >> limit(n)`: the number of rows, and the key; without a key, the row is the key.
fn least(vm: &mut Vm, args: &[Value]) -> Eval {
    let row = vm.target.clone();
    let key = args.get(1).unwrap_or(&row).clone();
    accumulate(
        vm,
        |_| Ok(Accumulator::Top(Top::least(&args[0]))),
        |_, accumulator, is_part| match accumulator {
            // A part with an error runs again.
            Accumulator::Top(top) if is_part => top.push(key, row),
            Accumulator::Top(top) => {
                top.push_or_fail_later(key, row);
                Ok(())
            }
            _ => Ok(()),
        },
    )
}

/// The collection a builtin works on: its argument, or the target.
fn collection(vm: &Vm, args: &[Value]) -> Value {
    match args.first() {
        None | Some(Value::Nil) => vm.target.clone(),
        Some(given) => given.clone(),
    }
}

/// Calls a block on an element, which becomes the target.
fn with_target(vm: &mut Vm, target: Value, run: impl FnOnce(&mut Vm) -> Eval) -> Eval {
    let outer = std::mem::replace(&mut vm.target, target);
    let result = run(vm);
    vm.target = outer;
    result
}

/// Keeps a block's value: dropped values are left out, and the result of `flat` is spread.
fn keep(list: &mut Vec<Value>, value: Value) {
    match value {
        Value::Dropped => {}
        Value::Flat(more) => list.extend(more.borrow().iter().cloned()),
        value => list.push(value),
    }
}

fn map(vm: &mut Vm, args: &[Value], block: &Block<'_>, reducing: bool) -> Eval {
    let collection = collection(vm, args);
    // Each element with its key: the position, or the Hash's key.
    match &collection {
        Value::Array(list) if reducing => {
            let elements = list.borrow().clone();
            keyed(vm, Keyed::List, |vm, groups| {
                for (at, element) in elements.into_iter().enumerate() {
                    in_slot(vm, groups, at, &Value::size(at), element.clone(), |vm| {
                        vm.call1(block, element)
                    })?;
                }
                Ok(())
            })
        }
        Value::Hash(table) if reducing => {
            let pairs = table.pairs();
            keyed(vm, Keyed::List, |vm, groups| {
                for (at, (key, value)) in pairs.into_iter().enumerate() {
                    in_slot(vm, groups, at, &key.clone(), value.clone(), |vm| {
                        vm.call_pair(block, key, value)
                    })?;
                }
                Ok(())
            })
        }
        Value::Array(list) => {
            let mut out = Vec::with_capacity(list.borrow().len());
            let mut at = 0;
            loop {
                let Some(element) = list.borrow().get(at).cloned() else {
                    break;
                };
                let value = with_target(vm, element.clone(), |vm| vm.call1(block, element))?;
                keep(&mut out, value);
                at += 1;
            }
            Ok(Value::array(out))
        }
        Value::Hash(table) => {
            let mut out = Vec::with_capacity(table.len());
            for (key, value) in table.pairs() {
                let value = with_target(vm, value.clone(), |vm| vm.call_pair(block, key, value))?;
                keep(&mut out, value);
            }
            Ok(Value::array(out))
        }
        other => Err(expects("map", "Array or Hash", other)),
    }
}

fn map_values(vm: &mut Vm, args: &[Value], block: &Block<'_>, reducing: bool) -> Eval {
    let collection = collection(vm, args);
    let Value::Hash(table) = &collection else {
        return Err(expects("map_values", "Hash", &collection));
    };
    // The keys are those of a Hash already.
    let entries = table.hashed_pairs();
    if reducing {
        return keyed(vm, Keyed::Hash, |vm, groups| {
            for (at, (_, key, value)) in entries.into_iter().enumerate() {
                in_slot(vm, groups, at, &key, value.clone(), |vm| {
                    vm.call1(block, value)
                })?;
            }
            Ok(())
        });
    }
    let mut out = Table::with_capacity(entries.len());
    let outer = vm.target.clone();
    let done = vm.call_each(
        block,
        entries,
        |(_, _, value)| value,
        |(hash, key, _), value| {
            match value {
                Value::Dropped => {}
                Value::Flat(_) => {
                    return Err(type_error("flat is not supported inside map_values"));
                }
                value => out.push_known(hash, key, value),
            }
            Ok(())
        },
    );
    vm.target = outer;
    done.map(|()| Value::hash(out))
}

fn keyed(vm: &mut Vm, kind: Keyed, step: impl FnOnce(&mut Vm, &mut Groups) -> Eval<()>) -> Eval {
    vm.reducer(
        |_| Ok(Reducer::keyed(kind)),
        |vm, reducer| match reducer {
            Reducer::Keyed(groups) => step(vm, groups),
            _ => Ok(()),
        },
    )
}

/// Runs a block in the scope of a key, which is likely to be the one at this place.
fn in_slot(
    vm: &mut Vm,
    groups: &mut Groups,
    place: usize,
    key: &Value,
    target: Value,
    run: impl FnOnce(&mut Vm) -> Eval,
) -> Eval<()> {
    let at = groups.place(place, key);
    groups.with(at, |scope| vm.within_scope(scope, target, run))?;
    Ok(())
}

fn group_by(vm: &mut Vm, key: &Value, block: Option<&Block<'_>>) -> Eval {
    let row = vm.target.clone();
    // Those in its block are not put off.
    let place = vm.deferrable.take();
    keyed(vm, Keyed::Hash, |vm, groups| {
        if groups.bytes() > vm.part_bytes_max {
            return Err(error(Class::NoMemoryError, "the groups of a part"));
        }
        if let (Some(place), Some(spill)) = (place, &vm.spill)
            && groups.defer(spill, key, &row, place)?
        {
            return Ok(());
        }
        in_slot(vm, groups, 0, key, row.clone(), |vm| match block {
            Some(block) => vm.call1(block, row),
            None => step(vm, |_| Ok(Accumulator::Group(Vec::new())), row),
        })
    })
}

fn apply(vm: &mut Vm, args: &[Value], block: &Block<'_>) -> Eval {
    // Its reducers see the whole list, so they are complete on any thread.
    let chunk = std::mem::replace(&mut vm.chunk, false);
    let result = apply_whole(vm, args, block);
    vm.chunk = chunk;
    result
}

fn apply_whole(vm: &mut Vm, args: &[Value], block: &Block<'_>) -> Eval {
    let collection = collection(vm, args);
    let Value::Array(list) = &collection else {
        return Err(expects("apply", "Array", &collection));
    };
    let elements = list.borrow().clone();
    let mut scope = Scope::default();
    let mut out = Vec::new();
    for element in elements {
        let value = vm.within_scope(&mut scope, element.clone(), |vm| vm.call1(block, element))?;
        keep(&mut out, value);
    }
    if scope.is_empty() {
        return Ok(Value::array(out));
    }
    let mut rows = scope.finish(vm)?;
    Ok(if rows.len() == 1 {
        rows.remove(0)
    } else {
        Value::array(rows)
    })
}

/// Of all values, of values with weights, or within a relative error.
fn percentile(vm: &mut Vm, args: &[Value]) -> Eval {
    let value = args.first().cloned().unwrap_or_default();
    let asked = args.get(1).cloned().unwrap_or_default();
    let keywords = args.get(1..).unwrap_or_default();
    let error = option(keywords, "error", &["weight"])?.unwrap_or_default();
    match option(keywords, "weight", &["error"])? {
        Some(_) if !error.is_nil() => Err(argument_error(
            "percentile: error: and weight: cannot be combined",
        )),
        Some(weight) => weighted_percentile(vm, &asked, value, weight),
        None => step_unless_nil(vm, |vm| percentiles(vm, &asked, &error), value),
    }
}

/// Rows without a value or a weight are skipped, and a weight of 0 has no effect.
fn weighted_percentile(vm: &mut Vm, asked: &Value, value: Value, weight: Value) -> Eval {
    let number = match &weight {
        Value::Nil => Some(0.0),
        Value::Int(_) | Value::Float(_) | Value::Big(_) => float_of(&weight),
        _ => None,
    };
    let Some(number) = number.filter(|it| it.is_finite() && *it >= 0.0) else {
        return Err(argument_error(format!(
            "percentile expects a weight that is a number of at least 0: {}",
            inspect(&weight)
        )));
    };
    accumulate(
        vm,
        |vm| shares(vm, asked).map(|shares| Accumulator::percentile(shares, true)),
        |_, accumulator, _| {
            if number > 0.0 && !value.is_nil() {
                accumulator.step_weighted(value, weight);
            }
            Ok(())
        },
    )
}

fn percentiles(vm: &mut Vm, asked: &Value, error: &Value) -> Eval<Accumulator> {
    let shares = shares(vm, asked)?;
    if error.is_nil() {
        return Ok(Accumulator::percentile(shares, false));
    }
    let relative = float_of(error).and_then(|error| Histogram::relative(error, shares));
    relative.map(Accumulator::Histogram).ok_or_else(|| {
        argument_error(format!(
            "error: {} (expected 0.0001 to 0.5)",
            inspect(error)
        ))
    })
}

/// Checks the requested percentiles.
pub(crate) fn shares(vm: &mut Vm, value: &Value) -> Eval<Shares> {
    let one = |value: &Value| match value {
        Value::Int(_) | Value::Float(_) => float_of(value).filter(|p| (0.0..=1.0).contains(p)),
        _ => None,
    };
    let refused = || {
        let hint = match value {
            Value::Nil => "a second argument is expected, such as 0.5 for the median".to_owned(),
            Value::Int(it @ 2..=100) => format!("{it} (expected {})", *it as f64 / 100.0),
            other => inspect(other),
        };
        argument_error(format!("percentile must be numeric in [0, 1]: {hint}"))
    };
    match value {
        Value::Array(_) | Value::Range(_) | Value::Enumerator(_) | Value::Hash(_) => {
            let list = to_vec(vm, value)?;
            list.iter()
                .map(one)
                .collect::<Option<Vec<f64>>>()
                .map(Shares::Many)
                .ok_or_else(refused)
        }
        other => one(other).map(Shares::One).ok_or_else(refused),
    }
}

impl Vm {
    /// Runs the next reducer of this row; `make` makes it the first time.
    pub(crate) fn reducer(
        &mut self,
        make: impl FnOnce(&mut Vm) -> Eval<Reducer>,
        step: impl FnOnce(&mut Vm, &mut Reducer) -> Eval<()>,
    ) -> Eval {
        let at = self.scope.cursor;
        if at == self.scope.reducers.len() {
            let reducer = make(self)?;
            // Most scopes have few, and there may be one scope for each group.
            if at < 4 {
                self.scope.reducers.reserve_exact(1);
            }
            self.scope.reducers.push(Some(reducer));
        }
        self.scope.cursor = at + 1;
        if let Some(mut reducer) = self.scope.reducers[at].take() {
            let result = step(self, &mut reducer);
            self.scope.reducers[at] = Some(reducer);
            result?;
        }
        Ok(Value::Token(at as u32))
    }

    /// Runs something for one row of another scope, with another target; its value may become that scope's template.
    pub(crate) fn within_scope(
        &mut self,
        scope: &mut Scope,
        target: Value,
        run: impl FnOnce(&mut Vm) -> Eval,
    ) -> Eval {
        scope.rewind();
        std::mem::swap(&mut self.scope, scope);
        let outer = std::mem::replace(&mut self.target, target);
        let result = run(self);
        self.target = outer;
        std::mem::swap(&mut self.scope, scope);
        if let Ok(value) = &result {
            scope.note(value);
        }
        result
    }
}
