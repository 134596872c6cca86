//! The methods of each class: their functions, numbers of arguments, keywords and blocks. All that is known of a method
//! follows from here: errors about arguments, `respond_to?`, `Method#arity`, Enumerators, frozen receivers.
//!
//! A row names its class, the rows searched after it, and the variant of [`Value`] that its functions take (`Any`: the
//! receiver itself). A line is: function, least and most arguments, notes, keywords, methods. The notes are
//!
//! - `each`: without a block, the result is an Enumerator (`each0`: only if there are no arguments either),
//! - `proc`: a block is required,
//! - `changes`: the receiver must not be frozen,
//! - `spreads`: of two values that an Enumerator yields, as `each_with_index` does, the block receives both, not a pair.

use super::array::{combine, order};
use super::call::Call;
use super::string::{change, search, translate};
use super::{
    array, class, comparable, enumerable, enumerator, exception, float, hash, integer, math,
    numeric, object, proc, range, regexp, string, symbol, time,
};
use crate::class::Class;
use crate::names::{COUNT, M};
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, wrong_arguments};
use crate::value::inspect::inspect;
use crate::value::table::Table;
use crate::vm::Vm;

type Function = fn(&mut Vm, Call<'_, '_>) -> Eval;

/// No upper bound.
const MANY: u8 = u8::MAX;

/// What a call without a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blockless {
    Call,
    Enumerator,
    /// If there are no arguments.
    EnumeratorIfBare,
    Error,
}

/// A method of a class.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) function: Function,
    least: u8,
    most: u8,
    keywords: &'static [&'static str],
    blockless: Blockless,
    /// It has no keywords and no notes.
    pub(super) is_plain: bool,
    pub(super) changes: bool,
    pub(super) spreads: bool,
}

impl Entry {
    const fn note(mut self, note: &str) -> Entry {
        self.is_plain = false;
        match note.as_bytes() {
            b"each" => self.blockless = Blockless::Enumerator,
            b"each0" => self.blockless = Blockless::EnumeratorIfBare,
            b"proc" => self.blockless = Blockless::Error,
            b"changes" => self.changes = true,
            b"spreads" => self.spreads = true,
            _ => panic!("unknown note"),
        }
        self
    }

    /// Whether the number of arguments is one of its own.
    #[inline]
    pub(super) fn fits(&self, args: &[Value]) -> bool {
        let (given, most) = (args.len(), usize::from(self.most));
        given >= usize::from(self.least) && (given <= most || self.most == MANY)
    }

    /// Checks the number of arguments, and their keywords.
    #[inline]
    pub(super) fn check(&self, args: &[Value]) -> Eval<()> {
        let is_plain = self.keywords.is_empty() || !matches!(args.last(), Some(Value::Hash(_)));
        if self.fits(args) && is_plain {
            return Ok(());
        }
        self.check_keywords(args)
    }

    #[cold]
    fn check_keywords(&self, args: &[Value]) -> Eval<()> {
        let mut given = args.len();
        if let (false, Some(Value::Hash(options))) = (self.keywords.is_empty(), args.last())
            && (given > usize::from(self.most) || are_keywords(options))
        {
            given -= 1;
            let known = |key: &Value| self.keywords.iter().any(|it| Value::symbol(it).same(key));
            if let Some(unknown) = options.keys().iter().find(|key| !known(key)) {
                return Err(argument_error(format!(
                    "unknown keyword: {}",
                    inspect(unknown)
                )));
            }
        }
        let most = (self.most != MANY).then_some(usize::from(self.most));
        if given < usize::from(self.least) || most.is_some_and(|most| given > most) {
            return Err(wrong_arguments(given, self.least.into(), most));
        }
        Ok(())
    }

    /// Whether a call without a block is an Enumerator.
    pub(super) fn enumerates(&self, args: &[Value]) -> Eval<bool> {
        match self.blockless {
            Blockless::Call => Ok(false),
            Blockless::Enumerator => Ok(true),
            Blockless::EnumeratorIfBare => Ok(args.is_empty()),
            Blockless::Error => Err(argument_error(
                "tried to create Proc object without a block",
            )),
        }
    }
}

fn are_keywords(options: &Table) -> bool {
    let keys = options.keys();
    !keys.is_empty() && keys.iter().all(|key| matches!(key, Value::Symbol(_)))
}

/// A function of the receiver's inner value, as one of the call alone.
macro_rules! adapted {
    (Any, $function:path) => {
        $function
    };
    (Class, $function:path) => {
        adapted!(@copied Class, $function)
    };
    (Float, $function:path) => {
        adapted!(@copied Float, $function)
    };
    (Symbol, $function:path) => {
        adapted!(@copied Symbol, $function)
    };
    (@copied $variant:ident, $function:path) => {
        |vm, call| match call.receiver {
            Value::$variant(it) => $function(vm, *it, call),
            _ => Err(call.unknown()),
        }
    };
    ($variant:ident, $function:path) => {
        |vm, call| match call.receiver {
            Value::$variant(it) => $function(vm, it, call),
            _ => Err(call.unknown()),
        }
    };
}

macro_rules! rows {
    ($($row:ident [$($parent:ident)*] $variant:ident {
        $($function:path => $least:literal $most:tt $($note:ident)* $([$($keyword:ident)+])?: $($method:ident)+;)*
    })+) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        enum Row { $($row,)+ }

        const PARENTS: &[&[Row]] = &[$(&[$(Row::$parent,)*],)+];

        const ENTRIES: &[(Row, Entry, &[M])] = &[$($((
            Row::$row,
            Entry {
                function: adapted!($variant, $function),
                least: $least,
                most: $most,
                keywords: &[$($(stringify!($keyword),)+)?],
                blockless: Blockless::Call,
                is_plain: true $(&& [$(stringify!($keyword)),+].is_empty())?,
                changes: false,
                spreads: false,
            }$(.note(stringify!($note)))*,
            &[$(M::$method,)+],
        ),)*)+];
    };
}

rows! {
    Object [] Any {
        object::predicate => 0 0: NilQ OpNot;
        object::predicate => 1 1: IsAQ OpCaseEq OpEq OpNe;
        object::call => 0 0: Class Dup Freeze FrozenQ Inspect Itself Tap ToS;
        object::call => 0 0 each: Then;
        object::call => 0 0 [freeze]: Clone;
        object::call => 0 1: ToJson;
        object::call => 0 MANY: PublicSend Send;
        object::call => 1 1: Method OpCmp OpMatch OpNotMatch;
        object::call => 1 2: RespondToQ;
    }
    // The result of a reducer can only be passed on.
    Token [] Any {
        object::predicate => 0 0: NilQ OpNot;
        object::call => 0 0: Itself Tap;
        object::call => 0 0 each: Then;
    }
    Comparable [] Any {
        comparable::call => 1 1: OpGe OpGt OpLe OpLt;
        comparable::call => 1 2: Clamp;
        comparable::call => 2 2: BetweenQ;
    }
    Numeric [] Any {
        numeric::operate => 1 1: OpAdd OpDiv OpGe OpGt OpLe OpLt OpMod OpMul OpSub;
        numeric::call => 0 0: Abs FiniteQ InfiniteQ NegativeQ OpMinus OpPlus PositiveQ ToF ToI ZeroQ;
        numeric::call => 0 2 each [by to]: Step;
        numeric::call => 1 1: Divmod Fdiv OpPow;
    }
    Integer [Numeric Comparable Object] Any {
        integer::call => 0 0: EvenQ Next OddQ OpBitNot Ord Size Succ;
        integer::call => 0 0 each: Times;
        integer::call => 0 1: Ceil Chr Floor Inspect ToS Truncate;
        integer::call => 0 1 [half]: Round;
        integer::call => 1 1: OpBitAnd OpBitOr OpBitXor OpIndex OpShl OpShr;
        integer::call => 1 1 each: Downto Upto;
    }
    Float [Numeric Comparable Object] Float {
        float::call => 0 0: Inspect NanQ ToS;
        float::call => 0 1: Ceil Floor Truncate;
        float::call => 0 1 [half]: Round;
    }
    Str [Comparable Object] Str {
        string::read => 0 0: Bytesize EmptyQ Hex Length OpMinus OpPlus Ord Size ToF ToS ToSym;
        string::read => 0 1: ToI;
        string::read => 0 MANY: EndWithQ;
        string::read => 1 1: CasecmpQ IncludeQ OpAdd OpMod OpMul;
        string::index => 1 2: OpIndex Slice;
        string::starts_with => 0 MANY: StartWithQ;
        string::pieces => 0 0: Bytes Chars;
        string::pieces => 0 0 each: EachChar;
        string::pieces => 0 1 [chomp]: Lines;
        string::pieces => 0 1 each [chomp]: EachLine;
        change::call => 0 0: Capitalize Chr Downcase Lstrip Next Reverse Rstrip Strip Succ Upcase;
        change::call => 0 1: Chomp;
        change::call => 1 1: DeletePrefix DeleteSuffix;
        change::call => 1 2: Center Ljust Rjust;
        change::in_place => 0 MANY changes: Concat;
        change::in_place => 1 1 changes: OpShl;
        translate::call => 0 MANY: Squeeze;
        translate::call => 1 MANY: Count Delete;
        translate::call => 2 2: Tr;
        search::call => 0 2: Split;
        search::call => 1 1: OpMatch Partition Rpartition Scan;
        search::call => 1 2: Gsub Index Match MatchQ Rindex Sub;
    }
    Symbol [Comparable Object] Symbol {
        symbol::call => 0 0: Capitalize Downcase EmptyQ Length Name Size Succ ToProc ToSym Upcase;
        symbol::call => 0 MANY: EndWithQ StartWithQ;
        symbol::call => 1 1: OpMatch;
        symbol::call => 1 2: Match MatchQ OpIndex Slice;
    }
    Enumerable [] Any {
        enumerable::begin => 0 1: First;
        enumerable::begin => 1 1: Take;
        enumerable::collect => 0 0 each spreads: Collect FilterMap FlatMap Map;
        enumerable::collect => 0 0 each: DropWhile Filter Reject Select;
        enumerable::count => 0 1 spreads: Count;
        enumerable::divide => 0 0 each: GroupBy Partition;
        enumerable::each_element => 0 0 each: Each;
        enumerable::each_part => 1 1: EachCons EachSlice;
        enumerable::each_with => 0 0 each: EachWithIndex;
        enumerable::each_with => 1 1 each: EachWithObject;
        enumerable::fold => 0 0: Tally;
        enumerable::fold => 0 2: Inject Reduce;
        enumerable::fold => 1 1: Grep GrepV;
        enumerable::part => 0 0 proc: ChunkWhile SliceWhen;
        enumerable::search => 0 0 each spreads: TakeWhile;
        enumerable::search => 0 1 each: Detect Find;
        enumerable::search => 0 1 each0 spreads: FindIndex;
        enumerable::search => 0 1 spreads: AllQ AnyQ NoneQ OneQ;
        enumerable::search => 1 1: IncludeQ;
        enumerable::whole => 0 0 each: ReverseEach;
        enumerable::whole => 0 0 spreads: ToH Uniq;
        enumerable::whole => 0 0: Compact ToA;
        enumerable::whole => 0 MANY: Zip;
        enumerable::whole => 1 1: Drop;
        order::call => 0 0 each: MinmaxBy SortBy;
        order::call => 0 0: Minmax Sort;
        order::call => 0 1 each: MaxBy MinBy;
        order::call => 0 1: Max Min Sum;
    }
    Array [Enumerable Object] Array {
        array::read => 0 0: EmptyQ Length Reverse Size ToA;
        array::read => 0 1: First Last;
        array::read => 0 MANY: ValuesAt;
        array::read => 1 1: At IncludeQ;
        array::read => 1 2: Fetch OpIndex Slice;
        array::read => 1 MANY: Dig;
        array::change => 0 1 changes: Pop Shift;
        array::change => 0 MANY changes: Concat Push Unshift;
        array::change => 1 1 changes: Delete OpShl;
        array::change => 2 3 changes: OpIndexSet;
        array::index => 0 1 each0: Index Rindex;
        combine::call => 0 MANY: Union;
        combine::call => 1 1: OpAdd OpBitAnd OpBitOr OpMul OpSub;
        combine::reshape => 0 0: Transpose;
        combine::reshape => 0 1: Flatten Join;
    }
    Hash [Enumerable Object] Hash {
        hash::derive => 0 0: Invert;
        hash::derive => 1 1: OpGe OpGt OpLe OpLt;
        hash::derive => 0 MANY: Except Merge Slice;
        hash::read => 0 0: EmptyQ Keys Length Size ToH Values;
        hash::read => 0 MANY: FetchValues ValuesAt;
        hash::read => 1 1: HasKeyQ IncludeQ Key KeyQ OpIndex ValueQ;
        hash::read => 1 2: Fetch;
        hash::read => 1 MANY: Dig;
        hash::change => 0 0 changes: Shift;
        hash::change => 0 0: Compact;
        hash::change => 0 MANY changes: MergeBang;
        hash::change => 1 1 changes: Delete;
        hash::change => 2 2 changes: OpIndexSet;
        hash::walk => 0 0 each: EachKey EachPair EachValue Filter Reject Select TransformValues;
        hash::transform_keys => 0 1 each0: TransformKeys;
    }
    Range [Enumerable Object] Range {
        range::read => 0 0: Begin End Size;
        range::read => 0 1: Count First Last Max Min Sum;
        range::read => 0 0: Minmax;
        range::read => 0 1 each: Step;
        range::read => 1 1 each: OpMod;
        range::read => 1 1: CoverQ IncludeQ OpCaseEq;
    }
    Enumerator [Enumerable Object] Enumerator {
        enumerator::call => 0 0: Each Size;
        enumerator::with_second => 0 0 each: EachWithIndex;
        enumerator::with_second => 0 1 each: WithIndex;
        enumerator::with_second => 1 1 each: EachWithObject;
    }
    Sequence [Enumerator Object] Enumerator {
        enumerator::call => 0 1: Last;
    }
    Regexp [Object] Regexp {
        regexp::call => 0 0: Source;
        regexp::call => 1 1: OpCaseEq OpMatch;
        regexp::call => 1 2: Match MatchQ;
    }
    Match [Object] Match {
        regexp::call_match => 0 0: Captures Length NamedCaptures PostMatch PreMatch Size ToA;
        regexp::call_match => 0 MANY: ValuesAt;
        regexp::call_match => 1 1: Begin End OpIndex;
    }
    Time [Comparable Object] Time {
        time::call => 0 0: Day Hour Min Month Nsec Sec ToA ToF ToI Usec Utc UtcOffset UtcQ Wday Yday Year Zone;
        time::call => 0 1: Ceil Floor Getlocal Iso8601 Round;
        time::call => 1 1: OpAdd OpSub Strftime;
    }
    Proc [Object] Proc {
        proc::call => 0 0: ToProc;
        proc::call => 0 MANY: Call OpCaseEq OpIndex;
    }
    Exception [Object] Exception {
        exception::call => 0 0: Message;
    }
    Nil [Object] Any {
        object::nil => 0 0: ToA ToF ToH ToI;
        object::nil => 1 1: OpBitAnd OpBitOr OpBitXor;
    }
    Bool [Object] Any {
        object::nil => 1 1: OpBitAnd OpBitOr OpBitXor;
    }
    ClassAny [Object] Class {
        class::call => 0 0: Name;
        class::call => 1 1: OpCaseEq;
    }
    ClassArray [ClassAny Object] Class {
        class::call => 0 2: New;
        class::call => 0 MANY: OpIndex;
    }
    ClassHash [ClassAny Object] Class {
        class::call => 0 1: New;
        class::call => 0 MANY: OpIndex;
    }
    ClassStr [ClassAny Object] Class {
        class::call => 0 1: New;
    }
    ClassRange [ClassAny Object] Class {
        class::call => 2 3: New;
    }
    ClassException [ClassAny Object] Class {
        class::call => 0 1: New;
    }
    ClassTime [ClassAny Object] Class {
        time::call_class => 0 0: Now;
        time::call_class => 0 7 [in]: New;
        time::call_class => 0 MANY: Utc;
        time::call_class => 1 3 [in]: At;
        time::from_text => 1 1: Iso8601;
        time::from_text => 1 2: Parse;
    }
    ClassRegexp [ClassAny Object] Class {
        regexp::call_class => 0 MANY: Union;
        regexp::call_class => 1 1: Escape;
        regexp::call_class => 1 2: New;
    }
    Math [ClassAny Object] Class {
        math::call => 1 1: Asin Cos Exp Log10 Log2 Sin Sqrt;
        math::call => 1 2: Log;
        math::call => 2 2: Atan2;
    }
    Json [ClassAny Object] Class {
        class::call => 1 1: Generate Parse;
    }
}

/// For each row and method, one more than the place of its entry; zero if there is none.
static INDEX: [[u16; COUNT]; PARENTS.len()] = index();

/// The entries again, at one place in memory.
static TABLE: &[(Row, Entry, &[M])] = ENTRIES;

const fn index() -> [[u16; COUNT]; PARENTS.len()] {
    let mut index = [[0; COUNT]; PARENTS.len()];
    let mut at = 0;
    while at < ENTRIES.len() {
        let (row, _, methods) = &ENTRIES[at];
        let mut method = 0;
        while method < methods.len() {
            let place = &mut index[*row as usize][methods[method] as usize];
            assert!(*place == 0, "a method stands twice in a row");
            *place = at as u16 + 1;
            method += 1;
        }
        at += 1;
    }
    // The rows searched after a row are complete before it, or have none.
    let mut row = 0;
    while row < PARENTS.len() {
        let mut parent = 0;
        while parent < PARENTS[row].len() {
            let mut method = 0;
            while method < COUNT {
                if index[row][method] == 0 {
                    index[row][method] = index[PARENTS[row][parent] as usize][method];
                }
                method += 1;
            }
            parent += 1;
        }
        row += 1;
    }
    index
}

fn row(receiver: &Value) -> Row {
    match receiver {
        Value::Str(_) => Row::Str,
        Value::Array(_) => Row::Array,
        Value::Hash(_) => Row::Hash,
        Value::Int(_) | Value::Big(_) => Row::Integer,
        Value::Float(_) => Row::Float,
        Value::Symbol(_) => Row::Symbol,
        Value::Range(_) => Row::Range,
        Value::Regexp(_) => Row::Regexp,
        Value::Match(_) => Row::Match,
        Value::Time(_) => Row::Time,
        Value::Proc(_) => Row::Proc,
        Value::Enumerator(it) if it.class() == Class::ArithmeticSequence => Row::Sequence,
        Value::Enumerator(_) => Row::Enumerator,
        Value::Exception(_) => Row::Exception,
        Value::Nil => Row::Nil,
        Value::Bool(_) => Row::Bool,
        Value::Class(class) => match class {
            Class::Array => Row::ClassArray,
            Class::Hash => Row::ClassHash,
            Class::Str => Row::ClassStr,
            Class::Range => Row::ClassRange,
            Class::Time => Row::ClassTime,
            Class::Regexp => Row::ClassRegexp,
            Class::Math => Row::Math,
            Class::Json => Row::Json,
            class if class.is(Class::Exception) => Row::ClassException,
            _ => Row::ClassAny,
        },
        Value::Token(_) => Row::Token,
        Value::Main | Value::Dropped | Value::Flat(_) => Row::Object,
    }
}

/// The method of a receiver.
#[inline]
pub(super) fn find(receiver: &Value, method: M) -> Option<&'static Entry> {
    let place = INDEX[row(receiver) as usize][method as usize];
    TABLE
        .get(usize::from(place).wrapping_sub(1))
        .map(|(_, entry, _)| entry)
}
