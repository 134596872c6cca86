//! The names of the methods we know. A name becomes an [`M`] when the text is lowered, so that the evaluator matches
//! on a number and an unknown method is rejected before any input is read.

macro_rules! names {
    ($($variant:ident $name:literal,)*) => {
        /// A method's name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        pub(crate) enum M { $($variant,)* }

        const ALL: &[(&str, M)] = &[$(($name, M::$variant),)*];

        /// How many there are.
        pub(crate) const COUNT: usize = ALL.len();
    };
}

impl M {
    /// As Ruby writes it.
    pub(crate) fn name(self) -> &'static str {
        ALL[self as usize].0
    }

    /// The method of this name, if one of our classes has it.
    pub(crate) fn find(name: &str) -> Option<M> {
        ALL.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, method)| *method)
    }

    /// The known name nearest to `name`, when one is near enough to be meant.
    pub(crate) fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, ALL.iter().map(|(known, _)| *known))
    }
}

/// The candidate with the fewest edits to `name`, if they are at most a third of it (at least one) and not all of it. Two
/// letters in the wrong order are one edit.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = name.chars().count();
    let most = (length / 3).max(1).min(length.saturating_sub(1));
    candidates
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Functions of Ruby that print, read or end the program.
pub(crate) const PRINTING: &[&str] = &[
    "puts", "print", "p", "pp", "warn", "printf", "gets", "system", "exec", "exit", "sleep",
    "open", "eval",
];

/// Names of Ruby that are not supported, and what to write instead; a name or code in backticks is the nearest one.
const REFUSED: &str = "encode encoding scrub unicode_normalize valid_encoding?: texts are UTF-8, so that it can be left out
b force_encoding: texts are UTF-8; `bytes` and `bytesize` are of their octets
codepoints: write `chars.map { |c| c.ord }`
unpack: `bytes`
pack: write `map { |code| code.chr }.join`
crypt: there is nothing like it
byteindex byteoffset each_byte getbyte byteslice unpack1: `bytes`
each_grapheme_cluster grapheme_clusters: `chars`
rand sample shuffle seed srand: a query's result does not depend on chance: take a part of a hash or counter in the row
lazy force eager: write `each` with `break`, `find` or `first(n)`, which end early
peek rewind each_index: `each_with_index`
to_set add add? subset? superset? disjoint?: `uniq`, or a Hash
repeated_combination repeated_permutation product combination permutation cycle collect_concat: `flat_map`
bsearch bsearch_index assoc rassoc: `find`
each_entry each_with_entry: `each`
with_object: `each_with_object`
to_ary entries: `to_a`
find_all: `select`
delete_at delete_if keep_if: `reject`
slice_before slice_after chunk: `slice_when`
rotate: `each_cons`
intersection intersect?: `&`
difference: `-`
fill: `map`
append: `push`
insert prepend replace clear: it changes its receiver: write a new value, as in `[a, *list]` or `a + text`
default default= default_proc rehash compare_by_identity: `Hash.new`
store: write `hash[key] = value`
update: `merge!`
has_value?: `value?`
member?: `include?`
to_r to_c rationalize numerator denominator coerce next_float prev_float: `to_f`
magnitude: `abs`
to_int oct: `to_i`
nonzero?: `zero?`
integer? kind_of? instance_of?: `is_a?`
div gcd lcm: `/`
modulo: `%`
remainder: write `x - y * (x / y.to_f).truncate`
digits: `to_s`
pred: write `x - 1`
bit_length: `Math.log2`
pow: write `x ** y`, or `x ** y % z`
cbrt: write `x.abs ** (1.0 / 3)`, with the sign of `x`
sinh cosh tanh: `Math.exp`
hypot: write `Math.sqrt(x * x + y * y)`
tan atan acos: the nearest ones are `Math.sin`, `Math.cos`, `Math.asin` and `Math.atan2`
allbits? anybits? nobits?: `&`
curry parameters receiver unbind arity lambda? yield: `call`
overlap?: `cover?`
exclude_end?: `end`
backtrace cause detailed_message full_message set_backtrace exception: `message`
object_id display equal? hash: `==`
eql?: the nearest one is `==`, for which 1 and 1.0 are equal
yield_self: `then`
chop: `chomp`
tr_s: `tr`
swapcase: the nearest ones are `upcase` and `downcase`
casecmp: `casecmp?`
ascii_only?: write `text.bytesize == text.length`
intern: `to_sym`
to_str: `to_s`
rfc2822 httpdate: `strftime`
xmlschema: `iso8601`
subsec: `nsec`
dst? isdst gmt_offset gmtoff: `utc_offset`
gmtime getutc getgm gm mktime local: `utc`
gmt?: `utc?`
localtime: `getlocal`
tv_sec: `to_i`
tv_usec: `usec`
mon: `month`
mday: `day`
sunday? monday? tuesday? wednesday? thursday? friday? saturday?: `wday`
regexp options: `source`
names string: `named_captures`
offset: the nearest ones are `begin` and `end`
quote: `escape`
last_match: write `$~`
pretty_generate: use `-o pretty`
superclass ancestors instance_methods instance_method allocate constants const_get instance_variable_get instance_variable_set instance_variables methods define_method singleton_class instance_eval instance_exec class_eval: the nearest ones are `is_a?` and `respond_to?`";

/// What is meant by a name in a table of lines `name other: meant`.
pub(crate) fn meant(table: &'static str, name: &str) -> Option<&'static str> {
    let mut lines = table.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(names, _)| names.split(' ').any(|known| known == name));
    found.map(|(_, meant)| meant)
}

/// What to write instead of a method of Ruby that is not supported.
pub(crate) fn instead(name: &str) -> Option<String> {
    if let Some(meant) = meant(REFUSED, name) {
        let is_name = meant.starts_with('`');
        let nearest = if is_name { "the nearest one is " } else { "" };
        return Some(format!("{nearest}{meant}"));
    }
    let plain = name.strip_suffix('!')?;
    M::find(plain).map(|_| format!("write `x = x.{plain}`"))
}

names! {
    OpAdd "+", OpSub "-", OpMul "*", OpDiv "/", OpMod "%", OpPow "**", OpEq "==", OpNe "!=", OpLt "<", OpLe "<=",
    OpGt ">", OpGe ">=", OpCmp "<=>", OpCaseEq "===", OpMatch "=~", OpNotMatch "!~", OpNot "!", OpBitAnd "&",
    OpBitOr "|", OpBitXor "^", OpBitNot "~", OpShl "<<", OpShr ">>", OpIndex "[]", OpIndexSet "[]=", OpPlus "+@",
    OpMinus "-@", NilQ "nil?", IsAQ "is_a?", Class "class", RespondToQ "respond_to?",
    Inspect "inspect", ToS "to_s", ToJson "to_json", Then "then",
    Tap "tap", FrozenQ "frozen?", Freeze "freeze", Dup "dup", Clone "clone",
    Itself "itself", Send "send", PublicSend "public_send", Method "method", Clamp "clamp", BetweenQ "between?",
    Abs "abs", Ceil "ceil", Floor "floor", Round "round", Truncate "truncate", ToI "to_i",
    ToF "to_f", Divmod "divmod", Fdiv "fdiv", ZeroQ "zero?",
    PositiveQ "positive?", NegativeQ "negative?", EvenQ "even?", OddQ "odd?", NanQ "nan?",
    InfiniteQ "infinite?", FiniteQ "finite?", Step "step", Times "times", Upto "upto", Downto "downto",
    Succ "succ", Next "next",
    Chr "chr", Ord "ord", Sqrt "sqrt", Log "log", Log2 "log2",
    Log10 "log10", Exp "exp", Sin "sin", Cos "cos", Atan2 "atan2", Asin "asin",
    Size "size", Length "length", Bytesize "bytesize", Slice "slice", Match "match", MatchQ "match?",
    Scan "scan", Sub "sub", Gsub "gsub", Tr "tr", Delete "delete", Squeeze "squeeze", Split "split", Strip "strip",
    Lstrip "lstrip", Rstrip "rstrip", Chomp "chomp", Chars "chars", Bytes "bytes", Lines "lines",
    EachChar "each_char", EachLine "each_line", Upcase "upcase", Downcase "downcase",
    Capitalize "capitalize", StartWithQ "start_with?", EndWithQ "end_with?", IncludeQ "include?",
    Index "index", Rindex "rindex", Count "count", Reverse "reverse", Center "center", Ljust "ljust", Rjust "rjust",
    ToSym "to_sym", EmptyQ "empty?", Hex "hex",
    CasecmpQ "casecmp?", Partition "partition", Rpartition "rpartition",
    DeletePrefix "delete_prefix", DeleteSuffix "delete_suffix",
    Concat "concat",
    Grep "grep", GrepV "grep_v", Sum "sum",

    Dig "dig", First "first", Last "last", Take "take",
    Drop "drop", TakeWhile "take_while", DropWhile "drop_while", Push "push", Pop "pop",
    Shift "shift", Unshift "unshift", Map "map", Collect "collect", FlatMap "flat_map",
    Select "select", Filter "filter", Reject "reject", Find "find", Detect "detect", FindIndex "find_index",
    AnyQ "any?", AllQ "all?", NoneQ "none?", OneQ "one?", GroupBy "group_by", Sort "sort", SortBy "sort_by", Min "min",
    Max "max", MinBy "min_by", MaxBy "max_by", Minmax "minmax", MinmaxBy "minmax_by", Reduce "reduce", Inject "inject",
    Each "each", EachWithIndex "each_with_index", EachWithObject "each_with_object", EachSlice "each_slice",
    EachCons "each_cons", Zip "zip", Transpose "transpose", Flatten "flatten", Compact "compact", Uniq "uniq",
    Join "join", ToH "to_h", ToA "to_a", Tally "tally", ChunkWhile "chunk_while",
    SliceWhen "slice_when", ValuesAt "values_at",

    FilterMap "filter_map", At "at",
    ReverseEach "reverse_each", Union "union",
    WithIndex "with_index",


    Fetch "fetch", FetchValues "fetch_values", KeyQ "key?",
    HasKeyQ "has_key?", ValueQ "value?", Keys "keys", Values "values", EachPair "each_pair",
    EachKey "each_key", EachValue "each_value", Key "key", TransformValues "transform_values",
    TransformKeys "transform_keys",
    Merge "merge", MergeBang "merge!", Invert "invert", Except "except",
    Begin "begin", End "end", CoverQ "cover?",
    Call "call", ToProc "to_proc", Source "source",
    Captures "captures", NamedCaptures "named_captures", PreMatch "pre_match", PostMatch "post_match",
    Escape "escape", Name "name", New "new", Message "message",
    Year "year", Month "month", Day "day", Hour "hour", Sec "sec",
    Usec "usec", Nsec "nsec", Wday "wday", Yday "yday", Zone "zone", Utc "utc",
    Getlocal "getlocal", UtcQ "utc?",
    UtcOffset "utc_offset", Strftime "strftime",
    Iso8601 "iso8601",
    Now "now",
    Parse "parse", Generate "generate",

}

#[cfg(test)]
mod tests;
