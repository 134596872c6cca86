//! The number of arguments of each method, as in Ruby. Any other number is an error before the method is called. A method
//! that is not listed for its class checks its arguments itself.

use crate::class::Class;
use crate::names::{COUNT, M};
use crate::value::Value;
use crate::value::exception::{Eval, wrong_arguments};

/// No upper bound.
const MANY: u8 = u8::MAX;

#[derive(Clone, Copy)]
struct Arity {
    least: u8,
    most: u8,
    /// A final Hash may hold keywords, and is not counted.
    keywords: bool,
}

/// Whether an optional word was written.
macro_rules! is_given {
    () => {
        false
    };
    (keywords) => {
        true
    };
}

macro_rules! arities {
    ($($kind:ident { $($least:literal $most:tt $($keywords:ident)?: $($method:ident)+;)+ })+) => {
        /// Receivers that have methods of their own.
        #[derive(Clone, Copy)]
        enum Kind { $($kind,)+ }

        static TABLE: &[[Option<Arity>; COUNT]] = &[$(methods_of(Kind::$kind),)+];

        const ROWS: &[(Kind, Arity, &[M])] = &[$($((
            Kind::$kind,
            Arity { least: $least, most: $most, keywords: is_given!($($keywords)?) },
            &[$(M::$method,)+],
        ),)+)+];
    };
}

arities! {
    Object {
        0 0: Class Dup Freeze FrozenQ Hash Inspect Itself NilQ ObjectId OpNot Tap Then ToS YieldSelf;
        0 0 keywords: Clone;
        0 1 keywords: ToJson;
        0 MANY: PublicSend Send;
        1 1: EqlQ EqualQ InstanceOfQ InstanceVariableGet IsAQ KindOfQ Method OpCaseEq OpCmp OpEq OpMatch OpNe
            OpNotMatch;
        1 2: RespondToQ;
    }
    Integer {
        0 0: Abs BitLength Denominator EvenQ FiniteQ InfiniteQ IntegerQ Magnitude NegativeQ Next NonzeroQ Numerator
            OddQ OpBitNot OpMinus OpPlus Ord PositiveQ Pred Size Succ Times ToF ToI ToInt ZeroQ;
        0 1: Ceil Chr Digits Floor Inspect ToS Truncate;
        0 1 keywords: Round;
        0 2 keywords: Step;
        1 1: AllbitsQ AnybitsQ Coerce Div Divmod Downto Fdiv Gcd Lcm Modulo NobitsQ OpAdd OpBitAnd OpBitOr OpBitXor
            OpDiv OpGe OpGt OpLe OpLt OpMod OpMul OpPow OpShl OpShr OpSub Remainder Upto;
        1 2: Clamp OpIndex Pow;
        2 2: BetweenQ;
    }
    Float {
        0 0: Abs Denominator FiniteQ InfiniteQ IntegerQ Magnitude NanQ NegativeQ NextFloat NonzeroQ Numerator OpMinus
            OpPlus PositiveQ PrevFloat ToF ToI ToInt ZeroQ;
        0 1: Ceil Floor Truncate;
        0 1 keywords: Round;
        0 2 keywords: Step;
        1 1: Coerce Div Divmod Fdiv Modulo OpAdd OpDiv OpGe OpGt OpLe OpLt OpMod OpMul OpPow OpSub Remainder;
        1 2: Clamp;
        2 2: BetweenQ;
    }
    Str {
        0 0: AsciiOnlyQ B Bytes Bytesize Chars Chop ChopBang Chr Clear Codepoints EachByte EachChar
            EachGraphemeCluster EmptyQ Encoding GraphemeClusters Hex Intern Length Lstrip LstripBang Next NextBang
            Oct OpMinus OpPlus Ord Reverse ReverseBang Rstrip RstripBang Size Strip StripBang Succ SuccBang ToF ToStr
            ToSym ValidEncodingQ;
        0 1: Chomp ChompBang Scrub Sum ToI UnicodeNormalize;
        0 1 keywords: Lines;
        0 2: Split;
        0 2 keywords: Encode;
        0 MANY: Capitalize CapitalizeBang Concat Downcase DowncaseBang EndWithQ Prepend Squeeze SqueezeBang
            StartWithQ Swapcase SwapcaseBang Upcase UpcaseBang;
        0 MANY keywords: EachLine;
        1 1: Casecmp CasecmpQ DeletePrefix DeletePrefixBang DeleteSuffix DeleteSuffixBang ForceEncoding Getbyte
            IncludeQ OpAdd OpGe OpGt OpLe OpLt OpMod OpMul OpShl Partition Replace Rpartition Scan;
        1 1 keywords: Unpack1;
        1 2: Byteindex Byteslice Center Clamp Gsub GsubBang Index Ljust Match MatchQ OpIndex Rindex Rjust Slice
            SliceBang Sub SubBang Upto;
        1 MANY: Count Delete DeleteBang;
        2 2: BetweenQ Insert Tr TrBang TrS TrSBang;
        2 3: OpIndexSet;
    }
    Symbol {
        0 0: EmptyQ Length Name Size Succ ToProc ToSym;
        0 MANY: Capitalize Downcase EndWithQ StartWithQ Swapcase Upcase;
        1 1: OpGe OpGt OpLe OpLt;
        1 2: Clamp Match MatchQ OpIndex Slice;
        2 2: BetweenQ;
    }
    Array {
        0 0: Bsearch BsearchIndex Chunk ChunkWhile Clear Collect CollectBang CollectConcat Compact CompactBang
            DeleteIf DropWhile Each EachIndex EachWithIndex EmptyQ Entries Filter FilterBang FilterMap FindAll
            FlatMap GroupBy KeepIf Lazy Length Map MapBang Minmax MinmaxBy Partition Reject RejectBang Reverse
            ReverseBang ReverseEach Select SelectBang Size SliceWhen Sort SortBang SortBy SortByBang TakeWhile ToA
            ToAry ToH Transpose Uniq UniqBang;
        0 0 keywords: Shuffle ShuffleBang;
        0 1: AllQ AnyQ Count Cycle Detect Find FindIndex First Flatten FlattenBang Index Join Last Max MaxBy Min
            MinBy NoneQ OneQ Permutation Pop Rindex Rotate RotateBang Shift SliceAfter SliceBefore Sum Tally;
        0 1 keywords: Sample;
        0 2: Inject Reduce;
        0 3: Fill;
        0 MANY: Append Concat Difference EachEntry Intersection Prepend Product Push ToSet Union Unshift ValuesAt Zip;
        1 1: Assoc At Combination Delete DeleteAt Drop EachCons EachSlice EachWithObject Grep GrepV IncludeQ
            IntersectQ MemberQ OpAdd OpBitAnd OpBitOr OpMul OpShl OpSub Rassoc RepeatedCombination
            RepeatedPermutation Replace Take;
        1 1 keywords: Pack;
        1 2: Fetch OpIndex Slice SliceBang;
        1 MANY: Dig Insert;
        2 3: OpIndexSet;
    }
    Hash {
        0 0: Chunk ChunkWhile Clear Collect CollectConcat Compact CompactBang DefaultProc DeleteIf DropWhile Each
            EachKey EachPair EachValue EachWithIndex EmptyQ Entries Filter FilterBang FilterMap FindAll FlatMap
            GroupBy Invert KeepIf Keys Lazy Length Map Minmax MinmaxBy Partition Rehash Reject RejectBang ReverseEach
            Select SelectBang Shift Size SliceWhen Sort SortBy TakeWhile ToA ToH ToProc TransformValues
            TransformValuesBang Uniq Values;
        0 1: AllQ AnyQ Count Cycle Default Detect Find FindIndex First Flatten Max MaxBy Min MinBy NoneQ OneQ
            SliceAfter SliceBefore Sum Tally TransformKeys TransformKeysBang;
        0 2: Inject Reduce;
        0 MANY: EachEntry Except FetchValues Merge MergeBang Slice ToSet Update ValuesAt Zip;
        1 1: Assoc DefaultSet Delete Drop EachCons EachSlice EachWithObject Grep GrepV HasKeyQ HasValueQ IncludeQ Key
            KeyQ MemberQ OpGe OpGt OpIndex OpLe OpLt Replace Take ValueQ;
        1 2: Fetch;
        1 MANY: Dig;
        2 2: OpIndexSet Store;
    }
    Range {
        0 0: Begin Chunk ChunkWhile Collect CollectConcat Compact DropWhile Each EachWithIndex End Entries
            ExcludeEndQ Filter FilterMap FindAll FlatMap GroupBy Lazy Map Minmax MinmaxBy Partition Reject
            ReverseEach Select Size SliceWhen Sort SortBy TakeWhile ToA ToH Uniq;
        0 1: AllQ AnyQ Count Cycle Detect Find FindIndex First Last Max MaxBy Min MinBy NoneQ OneQ SliceAfter
            SliceBefore Step Sum Tally;
        0 2: Inject Reduce;
        0 MANY: EachEntry ToSet Zip;
        1 1: CoverQ Drop EachCons EachSlice EachWithObject Grep GrepV IncludeQ MemberQ OpMod Take;
    }
    Enumerator {
        0 0: Chunk ChunkWhile Collect CollectConcat Compact DropWhile Each EachWithIndex Eager Entries Filter
            FilterMap FindAll FlatMap GroupBy Lazy Map Minmax MinmaxBy Next Partition Peek Reject ReverseEach Rewind
            Select Size SliceWhen Sort SortBy TakeWhile ToA ToH Uniq;
        0 1: AllQ AnyQ Count Cycle Detect Find FindIndex First Last Max MaxBy Min MinBy NoneQ OneQ SliceAfter
            SliceBefore Sum Tally WithIndex;
        0 2: Inject Reduce;
        0 MANY: EachEntry Force ToSet Zip;
        1 1: Drop EachCons EachSlice EachWithObject Grep GrepV IncludeQ MemberQ Take WithObject;
    }
    Regexp {
        0 0: Names Options Source;
        1 2: Match MatchQ;
    }
    Match {
        0 0: Captures Length NamedCaptures Names PostMatch PreMatch Regexp Size String ToA;
        0 MANY: ValuesAt;
        1 1: Begin End Offset;
        1 2: OpIndex;
    }
    Time {
        0 0: Day DstQ FridayQ Getgm Getutc GmtOffset GmtQ Gmtime Gmtoff Hour Httpdate Mday Min Mon MondayQ Month Nsec
            Rfc2822 SaturdayQ Sec SundayQ ThursdayQ ToA ToF ToI TuesdayQ TvSec TvUsec Usec Utc UtcOffset UtcQ Wday
            WednesdayQ Yday Year Zone;
        0 1: Ceil Floor Getlocal Iso8601 Localtime Round Xmlschema;
        1 1: OpAdd OpGe OpGt OpLe OpLt OpSub Strftime;
        1 2: Clamp;
        2 2: BetweenQ;
    }
    Proc {
        0 0: Arity LambdaQ ToProc;
        0 1: Curry;
        0 MANY: Call OpCaseEq OpIndex Yield;
        1 1: OpShl OpShr;
    }
    Nil {
        0 0: ToA ToF ToH ToI;
        1 1: OpBitAnd OpBitOr OpBitXor;
    }
    ClassInteger {
        0 0: Ancestors Name Superclass;
        1 1: OpGe OpGt OpLe OpLt Sqrt;
    }
    ClassTime {
        0 0: Ancestors Name Now Superclass;
        0 7 keywords: New;
        0 MANY: Gm Local Mktime Utc;
        1 1: Iso8601 OpGe OpGt OpLe OpLt Xmlschema;
        1 2: Parse;
        1 3 keywords: At;
    }
    ClassRegexp {
        0 0: Ancestors Name Superclass;
        0 1: LastMatch;
        0 MANY: Union;
        1 1: Escape OpGe OpGt OpLe OpLt Quote;
        1 2: New;
    }
    ClassArray {
        0 0: Ancestors Name Superclass;
        0 2: New;
        0 MANY: OpIndex;
        1 1: OpGe OpGt OpLe OpLt;
    }
    ClassHash {
        0 0: Ancestors Name Superclass;
        0 1 keywords: New;
        0 MANY: OpIndex;
        1 1: OpGe OpGt OpLe OpLt;
    }
    ClassStr {
        0 0: Ancestors Name Superclass;
        0 1 keywords: New;
        1 1: OpGe OpGt OpLe OpLt;
    }
    Math {
        0 0: Ancestors Name;
        1 1: Acos Asin Atan Cbrt Cos Cosh Exp Log10 Log2 OpGe OpGt OpLe OpLt Sin Sinh Sqrt Tan Tanh;
        1 2: Log;
        2 2: Atan2 Hypot;
    }
}

/// The arities of a receiver's own methods.
const fn methods_of(wanted: Kind) -> [Option<Arity>; COUNT] {
    let mut table = [None; COUNT];
    let mut at = 0;
    while at < ROWS.len() {
        let (kind, arity, methods) = &ROWS[at];
        let mut method = 0;
        while *kind as usize == wanted as usize && method < methods.len() {
            table[methods[method] as usize] = Some(*arity);
            method += 1;
        }
        at += 1;
    }
    table
}

fn kind(receiver: &Value) -> Kind {
    match receiver {
        Value::Str(_) => Kind::Str,
        Value::Array(_) => Kind::Array,
        Value::Hash(_) => Kind::Hash,
        Value::Int(_) | Value::Big(_) => Kind::Integer,
        Value::Float(_) => Kind::Float,
        Value::Symbol(_) => Kind::Symbol,
        Value::Range(_) => Kind::Range,
        Value::Regexp(_) => Kind::Regexp,
        Value::Match(_) => Kind::Match,
        Value::Time(_) => Kind::Time,
        Value::Proc(_) => Kind::Proc,
        Value::Enumerator(_) => Kind::Enumerator,
        Value::Nil | Value::Bool(_) => Kind::Nil,
        Value::Class(class) => match class {
            Class::Integer => Kind::ClassInteger,
            Class::Time => Kind::ClassTime,
            Class::Regexp => Kind::ClassRegexp,
            Class::Array => Kind::ClassArray,
            Class::Hash => Kind::ClassHash,
            Class::Str => Kind::ClassStr,
            Class::Math => Kind::Math,
            _ => Kind::Object,
        },
        Value::Rational(_)
        | Value::Exception(_)
        | Value::Random(_)
        | Value::Main
        | Value::Token(_)
        | Value::Dropped
        | Value::Flat(_) => Kind::Object,
    }
}

/// Returns an `ArgumentError` if the receiver's method does not take this number of arguments.
#[inline]
pub(super) fn check(receiver: &Value, method: M, args: &[Value]) -> Eval<()> {
    let own = TABLE[kind(receiver) as usize][method as usize];
    let Some(arity) = own.or(TABLE[Kind::Object as usize][method as usize]) else {
        return Ok(());
    };
    let mut given = args.len();
    let most = usize::from(arity.most);
    if given > most && arity.keywords && matches!(args.last(), Some(Value::Hash(_))) {
        given -= 1;
    }
    if given < usize::from(arity.least) || arity.most != MANY && given > most {
        let most = (arity.most != MANY).then_some(most);
        return Err(wrong_arguments(given, arity.least.into(), most));
    }
    Ok(())
}
