//! The values of the language. Each takes 16 bytes; larger data is behind an [`Rc`], whose address is the
//! object's identity, as in Ruby. Values never cross threads.

pub(crate) mod compare;
pub(crate) mod enumerator;
pub(crate) mod env;
pub(crate) mod exception;
pub(crate) mod inspect;
pub(crate) mod number;
pub(crate) mod numeral;
pub(crate) mod proc;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;

use crate::class::Class;
use crate::regex::{Match, Pattern};
use crate::symbol::Symbol;
use crate::tree::Literal;
use enumerator::Enumerator;
use exception::Exception;
use num_bigint::BigInt;
use proc::Proc;
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::Rc;
use table::Table;
use text::Text;
use time::Time;

/// Any value.
#[derive(Clone, Default)]
pub(crate) enum Value {
    #[default]
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// Always outside of the range of `Int`: [`number::integer`] keeps it so.
    Big(Rc<BigInt>),
    Symbol(Symbol),
    Str(Rc<Text>),
    Array(Rc<List>),
    Hash(Rc<Table>),
    Range(Rc<Range>),
    Regexp(Rc<Pattern>),
    Match(Rc<Match>),
    Proc(Rc<Proc>),
    Time(Rc<Time>),
    Enumerator(Rc<Enumerator>),
    Class(Class),
    Exception(Rc<Exception>),
    /// The self of the stages.
    Main,
    /// The result of a reducer, which stands in a template until the end of input.
    Token(u32),
    /// What `select` gives for a row it does not keep.
    Dropped,
    /// What `flat` gives: the rows to be.
    Flat(Rc<List>),
}

/// An Array's elements, and whether they may be changed.
pub(crate) struct List {
    elements: RefCell<Vec<Value>>,
    frozen: Cell<bool>,
}

impl List {
    fn new(elements: Vec<Value>) -> List {
        List {
            elements: RefCell::new(elements),
            frozen: Cell::new(false),
        }
    }

    #[inline]
    pub(crate) fn borrow(&self) -> Ref<'_, Vec<Value>> {
        self.elements.borrow()
    }

    /// For a method that the table of methods says changes it, or for an Array that nothing else knows.
    #[inline]
    pub(crate) fn borrow_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.elements.borrow_mut()
    }

    pub(crate) fn freeze(&self) {
        self.frozen.set(true);
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.get()
    }
}

/// `from..to`, or `from...to`.
#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) from: Value,
    pub(crate) to: Value,
    pub(crate) exclusive: bool,
}

impl Value {
    pub(crate) fn truthy(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    pub(crate) fn str(text: impl Into<String>) -> Value {
        Value::Str(Rc::new(Text::new(text.into())))
    }

    pub(crate) fn symbol(name: &str) -> Value {
        Value::Symbol(Symbol::new(name))
    }

    pub(crate) fn array(elements: Vec<Value>) -> Value {
        Value::Array(Rc::new(List::new(elements)))
    }

    pub(crate) fn pair(a: Value, b: Value) -> Value {
        Value::array(vec![a, b])
    }

    pub(crate) fn hash(table: Table) -> Value {
        Value::Hash(Rc::new(table))
    }

    pub(crate) fn range(from: Value, to: Value, exclusive: bool) -> Value {
        Value::Range(Rc::new(Range {
            from,
            to,
            exclusive,
        }))
    }

    pub(crate) fn size(count: usize) -> Value {
        Value::Int(count.cast_signed() as i64)
    }

    /// `None` becomes nil.
    pub(crate) fn option(value: Option<impl Into<Value>>) -> Value {
        value.map_or(Value::Nil, Into::into)
    }

    pub(crate) fn is_float(&self) -> bool {
        matches!(self, Value::Float(_))
    }

    /// The very same object (or the same number, symbol, …): `equal?`.
    pub(crate) fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil)
            | (Value::Main, Value::Main)
            | (Value::Dropped, Value::Dropped) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Symbol(a), Value::Symbol(b)) => a == b,
            (Value::Class(a), Value::Class(b)) => a == b,
            (Value::Token(a), Value::Token(b)) => a == b,
            _ => self.address().is_some() && self.address() == other.address(),
        }
    }

    /// The address of the object, for values with an identity.
    pub(crate) fn address(&self) -> Option<*const u8> {
        Some(match self {
            Value::Big(it) => Rc::as_ptr(it).cast(),
            Value::Str(it) => Rc::as_ptr(it).cast(),
            Value::Array(it) | Value::Flat(it) => Rc::as_ptr(it).cast(),
            Value::Hash(it) => Rc::as_ptr(it).cast(),
            Value::Range(it) => Rc::as_ptr(it).cast(),
            Value::Regexp(it) => Rc::as_ptr(it).cast(),
            Value::Match(it) => Rc::as_ptr(it).cast(),
            Value::Proc(it) => Rc::as_ptr(it).cast(),
            Value::Time(it) => Rc::as_ptr(it).cast(),
            Value::Enumerator(it) => Rc::as_ptr(it).cast(),
            Value::Exception(it) => Rc::as_ptr(it).cast(),
            _ => return None,
        })
    }
}

impl Class {
    pub(crate) fn of(value: &Value) -> Class {
        match value {
            Value::Nil => Class::Nil,
            Value::Bool(true) => Class::True,
            Value::Bool(false) => Class::False,
            Value::Int(_) | Value::Big(_) => Class::Integer,
            Value::Float(_) => Class::Float,
            Value::Symbol(_) => Class::Symbol,
            Value::Str(_) => Class::Str,
            Value::Array(_) => Class::Array,
            Value::Hash(_) => Class::Hash,
            Value::Range(_) => Class::Range,
            Value::Regexp(_) => Class::Regexp,
            Value::Match(_) => Class::MatchData,
            Value::Proc(_) => Class::Proc,
            Value::Time(_) => Class::Time,
            Value::Enumerator(it) => it.class(),
            Value::Exception(it) => it.class,
            Value::Class(it) if it.is_module() => Class::ModuleClass,
            Value::Class(_) => Class::ClassClass,
            Value::Main | Value::Token(_) | Value::Dropped | Value::Flat(_) => Class::Object,
        }
    }
}

impl From<&Literal> for Value {
    #[inline]
    fn from(it: &Literal) -> Value {
        match it {
            Literal::Float(it) => Value::Float(*it),
            Literal::Big(it) => Value::Big(Rc::clone(it)),
            Literal::Symbol(it) => Value::Symbol(*it),
            Literal::Class(it) => Value::Class(*it),
            Literal::Regexp(it) => Value::Regexp(Rc::clone(it)),
        }
    }
}

impl From<bool> for Value {
    fn from(it: bool) -> Value {
        Value::Bool(it)
    }
}

impl From<i64> for Value {
    fn from(it: i64) -> Value {
        Value::Int(it)
    }
}

impl From<usize> for Value {
    fn from(it: usize) -> Value {
        Value::size(it)
    }
}

impl From<f64> for Value {
    fn from(it: f64) -> Value {
        Value::Float(it)
    }
}

impl From<BigInt> for Value {
    fn from(it: BigInt) -> Value {
        number::integer(it)
    }
}

impl From<&str> for Value {
    fn from(it: &str) -> Value {
        Value::str(it)
    }
}

impl From<String> for Value {
    fn from(it: String) -> Value {
        Value::str(it)
    }
}

impl From<Vec<Value>> for Value {
    fn from(it: Vec<Value>) -> Value {
        Value::array(it)
    }
}

impl From<Table> for Value {
    fn from(it: Table) -> Value {
        Value::hash(it)
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&inspect::inspect(self))
    }
}
