#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use super::{Accumulator, Shares, Which};
use crate::library::LIBRARY;
use crate::lower;
use crate::reducers::column::Column;
use crate::value::Value;
use crate::value::inspect::inspect;
use crate::vm::Vm;
use proptest::prelude::*;
use std::rc::Rc;

fn vm() -> Vm {
    let Ok(program) = lower::compile("_", &[]) else {
        panic!("`_` is a query");
    };
    Vm::new(Rc::new(program), &LIBRARY)
}

fn kinds() -> Vec<fn() -> Accumulator> {
    vec![
        || Accumulator::Count(0),
        || Accumulator::sum(Value::Int(0)),
        || Accumulator::sum(Value::Float(0.5)),
        || Accumulator::One(Which::Least, Value::Nil),
        || Accumulator::One(Which::Most, Value::Nil),
        Accumulator::average,
        || Accumulator::deviation(false),
        || Accumulator::deviation(true),
        || Accumulator::Group(Vec::new()),
        || Accumulator::Percentile {
            values: Column::default(),
            shares: Box::new(Shares::Many(vec![0.0, 0.25, 0.5, 1.0])),
        },
    ]
}

fn feed(vm: &mut Vm, accumulator: &mut Accumulator, values: &[Value]) {
    for value in values {
        assert!(accumulator.step(vm, value.clone()).is_ok());
    }
}

fn result(vm: &mut Vm, accumulator: Accumulator) -> String {
    inspect(&accumulator.finish(vm).ok().unwrap())
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-1e9..1e9).prop_map(Value::Float),
        (-1000_i64..1000).prop_map(Value::Int),
    ]
}

proptest! {
    #[test]
    fn chunks_merged_in_order_give_the_single_thread_result(
        values in proptest::collection::vec(number(), 0..60),
        size in 1_usize..20,
    ) {
        let mut vm = vm();
        for make in kinds() {
            let mut serial = make();
            feed(&mut vm, &mut serial, &values);
            let mut whole = make();
            for chunk in values.chunks(size) {
                let mut part = whole.for_chunk();
                feed(&mut vm, &mut part, chunk);
                prop_assert!(whole.merge(&mut vm, part).is_ok());
            }
            prop_assert_eq!(result(&mut vm, serial), result(&mut vm, whole));
        }
    }
}
