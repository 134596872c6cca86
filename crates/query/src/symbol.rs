//! Symbols: names that are numbers. One table a thread, as values do not cross threads.

use lastbyte_json::fast_hash::FastMap;
use std::cell::RefCell;
use std::rc::Rc;

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol(u32);

#[derive(Default)]
struct Names {
    numbers: FastMap<Rc<str>, u32>,
    names: Vec<Rc<str>>,
}

thread_local! {
    static NAMES: RefCell<Names> = RefCell::default();
}

impl Symbol {
    pub(crate) fn new(name: &str) -> Symbol {
        NAMES.with_borrow_mut(|all| {
            if let Some(number) = all.numbers.get(name) {
                return Symbol(*number);
            }
            let number = all.names.len() as u32;
            let name: Rc<str> = name.into();
            all.names.push(Rc::clone(&name));
            all.numbers.insert(name, number);
            Symbol(number)
        })
    }

    pub(crate) fn name(self) -> Rc<str> {
        NAMES.with_borrow(|all| Rc::clone(&all.names[self.0 as usize]))
    }
}
