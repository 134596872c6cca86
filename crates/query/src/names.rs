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

names! {
    OpAdd "+", OpSub "-", OpMul "*", OpDiv "/", OpMod "%", OpPow "**", OpEq "==", OpNe "!=", OpLt "<", OpLe "<=",
    OpGt ">", OpGe ">=", OpCmp "<=>", OpCaseEq "===", OpMatch "=~", OpNotMatch "!~", OpNot "!", OpBitAnd "&",
    OpBitOr "|", OpBitXor "^", OpBitNot "~", OpShl "<<", OpShr ">>", OpIndex "[]", OpIndexSet "[]=", OpPlus "+@",
    OpMinus "-@", NilQ "nil?", IsAQ "is_a?", KindOfQ "kind_of?", Class "class", RespondToQ "respond_to?",
    EqualQ "equal?", EqlQ "eql?", Inspect "inspect", ToS "to_s", ToJson "to_json", Then "then", YieldSelf "yield_self",
    Tap "tap", FrozenQ "frozen?", Freeze "freeze", Dup "dup", Clone "clone", Hash "hash", InstanceOfQ "instance_of?",
    Itself "itself", ObjectId "object_id", Send "send", PublicSend "public_send", Method "method", Display "display",
    InstanceVariableGet "instance_variable_get", Clamp "clamp", BetweenQ "between?", Abs "abs", Magnitude "magnitude",
    Ceil "ceil", Floor "floor", Round "round", Truncate "truncate", ToI "to_i", ToInt "to_int", ToF "to_f", ToR "to_r",
    ToC "to_c", Divmod "divmod", Div "div", Modulo "modulo", Fdiv "fdiv", ZeroQ "zero?", NonzeroQ "nonzero?",
    PositiveQ "positive?", NegativeQ "negative?", EvenQ "even?", OddQ "odd?", NanQ "nan?", InfiniteQ "infinite?",
    FiniteQ "finite?", Step "step", Times "times", Upto "upto", Downto "downto", Digits "digits",
    BitLength "bit_length", Pow "pow", Gcd "gcd", Lcm "lcm", Succ "succ", Pred "pred", Next "next",
    Remainder "remainder", IntegerQ "integer?", Chr "chr", Ord "ord", NextFloat "next_float", PrevFloat "prev_float",
    Sqrt "sqrt", Cbrt "cbrt", Log "log", Log2 "log2", Log10 "log10", Exp "exp", Sin "sin", Cos "cos", Tan "tan",
    Atan "atan", Atan2 "atan2", Asin "asin", Acos "acos", Hypot "hypot", Sinh "sinh", Cosh "cosh", Tanh "tanh",
    Numerator "numerator", Denominator "denominator", Size "size", Coerce "coerce", AllbitsQ "allbits?",
    AnybitsQ "anybits?", NobitsQ "nobits?", Length "length", Bytesize "bytesize", Slice "slice", Match "match",
    MatchQ "match?", Scan "scan", Sub "sub", Gsub "gsub", Tr "tr", Delete "delete", Squeeze "squeeze", Split "split",
    Strip "strip", Lstrip "lstrip", Rstrip "rstrip", Chomp "chomp", Chop "chop", Chars "chars", Bytes "bytes",
    Lines "lines", EachChar "each_char", EachLine "each_line", EachByte "each_byte", Upcase "upcase",
    Downcase "downcase", Capitalize "capitalize", Swapcase "swapcase", StartWithQ "start_with?", EndWithQ "end_with?",
    IncludeQ "include?", Index "index", Rindex "rindex", Count "count", Reverse "reverse", Center "center",
    Ljust "ljust", Rjust "rjust", ToSym "to_sym", Intern "intern", ToStr "to_str", EmptyQ "empty?", Hex "hex",
    Oct "oct", Unpack1 "unpack1", Casecmp "casecmp", CasecmpQ "casecmp?", Partition "partition",
    Rpartition "rpartition", DeletePrefix "delete_prefix", DeleteSuffix "delete_suffix", TrS "tr_s", Insert "insert",
    Byteslice "byteslice", Getbyte "getbyte", Codepoints "codepoints", Concat "concat", Prepend "prepend",
    Replace "replace", AsciiOnlyQ "ascii_only?", Grep "grep", GrepV "grep_v", UnicodeNormalize "unicode_normalize",
    Encoding "encoding", ForceEncoding "force_encoding", Encode "encode", ValidEncodingQ "valid_encoding?", B "b",
    Scrub "scrub", Crypt "crypt", Sum "sum", SqueezeBang "squeeze!", SubBang "sub!", GsubBang "gsub!", TrBang "tr!",
    UpcaseBang "upcase!", DowncaseBang "downcase!", CapitalizeBang "capitalize!", SwapcaseBang "swapcase!",
    StripBang "strip!", LstripBang "lstrip!", RstripBang "rstrip!", ChompBang "chomp!", ChopBang "chop!",
    ReverseBang "reverse!", SliceBang "slice!", DeleteBang "delete!", SuccBang "succ!", NextBang "next!",
    TrSBang "tr_s!", DeletePrefixBang "delete_prefix!", DeleteSuffixBang "delete_suffix!", Clear "clear",
    EachGraphemeCluster "each_grapheme_cluster", GraphemeClusters "grapheme_clusters", Byteindex "byteindex", Dig "dig",
    First "first", Last "last", Take "take", Drop "drop", TakeWhile "take_while", DropWhile "drop_while", Push "push",
    Append "append", Pop "pop", Shift "shift", Unshift "unshift", Map "map", Collect "collect", FlatMap "flat_map",
    CollectConcat "collect_concat", Select "select", Filter "filter", Reject "reject", Find "find", Detect "detect",
    FindIndex "find_index", AnyQ "any?", AllQ "all?", NoneQ "none?", OneQ "one?", GroupBy "group_by", Sort "sort",
    SortBy "sort_by", Min "min", Max "max", MinBy "min_by", MaxBy "max_by", Minmax "minmax", MinmaxBy "minmax_by",
    Reduce "reduce", Inject "inject", Each "each", EachWithIndex "each_with_index", EachWithObject "each_with_object",
    EachSlice "each_slice", EachCons "each_cons", Zip "zip", Transpose "transpose", Flatten "flatten",
    Compact "compact", Uniq "uniq", Rotate "rotate", Join "join", ToH "to_h", ToA "to_a", Entries "entries",
    Tally "tally", ChunkWhile "chunk_while", SliceWhen "slice_when", ValuesAt "values_at", Product "product",
    Combination "combination", Permutation "permutation", EachEntry "each_entry", Cycle "cycle", Bsearch "bsearch",
    Sample "sample", Shuffle "shuffle", Fill "fill", DeleteAt "delete_at", DeleteIf "delete_if", FilterMap "filter_map",
    At "at", Assoc "assoc", Rassoc "rassoc", Chunk "chunk", ReverseEach "reverse_each", EachIndex "each_index",
    Union "union", Difference "difference", Intersection "intersection", IntersectQ "intersect?",
    WithIndex "with_index", WithObject "with_object", MapBang "map!", CollectBang "collect!", SelectBang "select!",
    FilterBang "filter!", KeepIf "keep_if", RejectBang "reject!", SortBang "sort!", SortByBang "sort_by!",
    UniqBang "uniq!", CompactBang "compact!", FlattenBang "flatten!", RotateBang "rotate!", ShuffleBang "shuffle!",
    FindAll "find_all", MemberQ "member?", RepeatedCombination "repeated_combination",
    RepeatedPermutation "repeated_permutation", BsearchIndex "bsearch_index", SliceBefore "slice_before",
    SliceAfter "slice_after", Lazy "lazy", Force "force", Eager "eager", Rewind "rewind", Peek "peek",
    EachWithEntry "each_with_entry", ToSet "to_set", Fetch "fetch", FetchValues "fetch_values", ToAry "to_ary",
    Pack "pack", KeyQ "key?", HasKeyQ "has_key?", ValueQ "value?", HasValueQ "has_value?", Keys "keys", Values "values",
    EachPair "each_pair", EachKey "each_key", EachValue "each_value", Key "key", TransformValues "transform_values",
    TransformKeys "transform_keys", TransformValuesBang "transform_values!", TransformKeysBang "transform_keys!",
    Merge "merge", MergeBang "merge!", Update "update", Invert "invert", Except "except", Default "default",
    DefaultSet "default=", DefaultProc "default_proc", Store "store", CompareByIdentity "compare_by_identity",
    Rehash "rehash", DeconstructKeys "deconstruct_keys", Begin "begin", End "end", ExcludeEndQ "exclude_end?",
    CoverQ "cover?", OverlapQ "overlap?", Call "call", Yield "yield", Curry "curry", Arity "arity", LambdaQ "lambda?",
    Parameters "parameters", ToProc "to_proc", Receiver "receiver", Unbind "unbind", Source "source", Options "options",
    Names "names", Captures "captures", NamedCaptures "named_captures", PreMatch "pre_match", PostMatch "post_match",
    Post "post", String "string", Regexp "regexp", Offset "offset", Byteoffset "byteoffset", Escape "escape",
    Quote "quote", LastMatch "last_match", Name "name", Superclass "superclass", Ancestors "ancestors",
    InstanceMethods "instance_methods", New "new", Allocate "allocate", Constants "constants", ConstGet "const_get",
    InstanceMethod "instance_method", Message "message", FullMessage "full_message", Backtrace "backtrace",
    Exception "exception", Cause "cause", DetailedMessage "detailed_message", SetBacktrace "set_backtrace",
    Result "result", Year "year", Month "month", Mon "mon", Day "day", Mday "mday", Hour "hour", Sec "sec", Usec "usec",
    Nsec "nsec", TvSec "tv_sec", TvUsec "tv_usec", Subsec "subsec", Wday "wday", Yday "yday", Zone "zone", Utc "utc",
    Gmtime "gmtime", Getutc "getutc", Getgm "getgm", Localtime "localtime", Getlocal "getlocal", UtcQ "utc?",
    GmtQ "gmt?", UtcOffset "utc_offset", GmtOffset "gmt_offset", Gmtoff "gmtoff", Strftime "strftime",
    Iso8601 "iso8601", Xmlschema "xmlschema", MondayQ "monday?", TuesdayQ "tuesday?", WednesdayQ "wednesday?",
    ThursdayQ "thursday?", FridayQ "friday?", SaturdayQ "saturday?", SundayQ "sunday?", Now "now", Gm "gm",
    Mktime "mktime", Local "local", Parse "parse", DstQ "dst?", Isdst "isdst", Httpdate "httpdate", Rfc2822 "rfc2822",
    Add "add", AddQ "add?", SubsetQ "subset?", SupersetQ "superset?", DeleteQ "delete?", DisjointQ "disjoint?",
    Subtract "subtract", Rand "rand", Seed "seed", Srand "srand", Pi "pi", Generate "generate",
    PrettyGenerate "pretty_generate", Pid "pid", ExitBang "exit!", ProperSubsetQ "proper_subset?",
}

#[cfg(test)]
mod tests;
