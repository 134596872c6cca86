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

/// Names of Ruby that are not supported, and what to write instead.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &[
            "b",
            "encode",
            "encoding",
            "force_encoding",
            "scrub",
            "unicode_normalize",
            "valid_encoding?",
        ],
        "texts are UTF-8, so that it can be left out",
    ),
    (&["unpack"], "the nearest ones are `bytes` and `unpack1`"),
    (&["pack"], "write `map { |code| code.chr }.join`"),
    (&["crypt"], "there is nothing like it"),
    (&["byteindex"], "the nearest one is `bytes`"),
    (
        &["each_grapheme_cluster", "grapheme_clusters"],
        "the nearest one is `chars`",
    ),
    (
        &["lazy", "force", "eager"],
        "`each` with `break`, `find` and `first(n)` end early",
    ),
    (&["peek", "rewind"], "the nearest one is `each_with_index`"),
    (
        &["to_set", "add", "add?", "subset?", "superset?", "disjoint?"],
        "the nearest one is `uniq`, or a Hash",
    ),
    (
        &["repeated_combination", "repeated_permutation"],
        "the nearest one is `product`",
    ),
    (&["bsearch_index"], "the nearest one is `bsearch`"),
    (
        &["each_entry", "each_with_entry"],
        "the nearest one is `each`",
    ),
    (&["to_ary"], "the nearest one is `to_a`"),
    (
        &["to_r", "to_c", "rationalize", "numerator", "denominator"],
        "the nearest one is `to_f`",
    ),
    (
        &["coerce", "next_float", "prev_float"],
        "the nearest one is `to_f`",
    ),
    (&["cbrt"], "write `x ** (1.0 / 3)`"),
    (&["sinh", "cosh", "tanh"], "the nearest one is `Math.exp`"),
    (
        &["allbits?", "anybits?", "nobits?"],
        "the nearest one is `&`",
    ),
    (
        &["curry", "parameters", "receiver", "unbind"],
        "the nearest one is `call`",
    ),
    (&["overlap?"], "the nearest one is `cover?`"),
    (
        &["default_proc", "rehash", "compare_by_identity"],
        "the nearest one is `Hash.new`",
    ),
    (
        &[
            "backtrace",
            "cause",
            "detailed_message",
            "set_backtrace",
            "exception",
        ],
        "the nearest one is `message`",
    ),
    (&["object_id", "display"], "the nearest one is `equal?`"),
    (&["rfc2822"], "the nearest one is `httpdate`"),
    (&["subsec"], "the nearest one is `nsec`"),
    (&["dst?", "isdst"], "the nearest one is `utc_offset`"),
    (&["seed", "srand"], "the nearest one is `Random.new(seed)`"),
    (&["regexp", "options"], "the nearest one is `source`"),
    (&["byteoffset"], "the nearest one is `offset`"),
    (
        &[
            "superclass",
            "ancestors",
            "instance_methods",
            "instance_method",
            "allocate",
            "constants",
            "const_get",
            "instance_variable_get",
            "instance_variable_set",
            "instance_variables",
            "methods",
            "define_method",
            "singleton_class",
            "instance_eval",
            "instance_exec",
            "class_eval",
        ],
        "the nearest ones are `is_a?` and `respond_to?`",
    ),
];

/// What to write instead of a method of Ruby that is not supported.
pub(crate) fn instead(name: &str) -> Option<String> {
    let refused = REFUSED.iter().find(|(names, _)| names.contains(&name));
    let plain = || {
        let plain = name.strip_suffix('!')?;
        M::find(plain).map(|_| format!("write `x = x.{plain}`"))
    };
    refused.map(|(_, meant)| (*meant).to_owned()).or_else(plain)
}

names! {
    OpAdd "+", OpSub "-", OpMul "*", OpDiv "/", OpMod "%", OpPow "**", OpEq "==", OpNe "!=", OpLt "<", OpLe "<=",
    OpGt ">", OpGe ">=", OpCmp "<=>", OpCaseEq "===", OpMatch "=~", OpNotMatch "!~", OpNot "!", OpBitAnd "&",
    OpBitOr "|", OpBitXor "^", OpBitNot "~", OpShl "<<", OpShr ">>", OpIndex "[]", OpIndexSet "[]=", OpPlus "+@",
    OpMinus "-@", NilQ "nil?", IsAQ "is_a?", KindOfQ "kind_of?", Class "class", RespondToQ "respond_to?",
    EqualQ "equal?", EqlQ "eql?", Inspect "inspect", ToS "to_s", ToJson "to_json", Then "then", YieldSelf "yield_self",
    Tap "tap", FrozenQ "frozen?", Freeze "freeze", Dup "dup", Clone "clone", Hash "hash", InstanceOfQ "instance_of?",
    Itself "itself", Send "send", PublicSend "public_send", Method "method", Clamp "clamp", BetweenQ "between?",
    Abs "abs", Magnitude "magnitude", Ceil "ceil", Floor "floor", Round "round", Truncate "truncate", ToI "to_i",
    ToInt "to_int", ToF "to_f", Divmod "divmod", Div "div", Modulo "modulo", Fdiv "fdiv", ZeroQ "zero?",
    NonzeroQ "nonzero?", PositiveQ "positive?", NegativeQ "negative?", EvenQ "even?", OddQ "odd?", NanQ "nan?",
    InfiniteQ "infinite?", FiniteQ "finite?", Step "step", Times "times", Upto "upto", Downto "downto",
    Digits "digits", BitLength "bit_length", Pow "pow", Gcd "gcd", Lcm "lcm", Succ "succ", Pred "pred", Next "next",
    Remainder "remainder", IntegerQ "integer?", Chr "chr", Ord "ord", Sqrt "sqrt", Log "log", Log2 "log2",
    Log10 "log10", Exp "exp", Sin "sin", Cos "cos", Tan "tan", Atan "atan", Atan2 "atan2", Asin "asin", Acos "acos",
    Hypot "hypot", Size "size", Length "length", Bytesize "bytesize", Slice "slice", Match "match", MatchQ "match?",
    Scan "scan", Sub "sub", Gsub "gsub", Tr "tr", Delete "delete", Squeeze "squeeze", Split "split", Strip "strip",
    Lstrip "lstrip", Rstrip "rstrip", Chomp "chomp", Chop "chop", Chars "chars", Bytes "bytes", Lines "lines",
    EachChar "each_char", EachLine "each_line", EachByte "each_byte", Upcase "upcase", Downcase "downcase",
    Capitalize "capitalize", Swapcase "swapcase", StartWithQ "start_with?", EndWithQ "end_with?", IncludeQ "include?",
    Index "index", Rindex "rindex", Count "count", Reverse "reverse", Center "center", Ljust "ljust", Rjust "rjust",
    ToSym "to_sym", Intern "intern", ToStr "to_str", EmptyQ "empty?", Hex "hex", Oct "oct", Unpack1 "unpack1",
    Casecmp "casecmp", CasecmpQ "casecmp?", Partition "partition", Rpartition "rpartition",
    DeletePrefix "delete_prefix", DeleteSuffix "delete_suffix", TrS "tr_s", Insert "insert", Byteslice "byteslice",
    Getbyte "getbyte", Codepoints "codepoints", Concat "concat", Prepend "prepend", Replace "replace",
    AsciiOnlyQ "ascii_only?", Grep "grep", GrepV "grep_v", Sum "sum", SqueezeBang "squeeze!", SubBang "sub!",
    GsubBang "gsub!", UpcaseBang "upcase!", DowncaseBang "downcase!", CapitalizeBang "capitalize!", StripBang "strip!",
    ChompBang "chomp!", ReverseBang "reverse!", Clear "clear", Dig "dig", First "first", Last "last", Take "take",
    Drop "drop", TakeWhile "take_while", DropWhile "drop_while", Push "push", Append "append", Pop "pop",
    Shift "shift", Unshift "unshift", Map "map", Collect "collect", FlatMap "flat_map", CollectConcat "collect_concat",
    Select "select", Filter "filter", Reject "reject", Find "find", Detect "detect", FindIndex "find_index",
    AnyQ "any?", AllQ "all?", NoneQ "none?", OneQ "one?", GroupBy "group_by", Sort "sort", SortBy "sort_by", Min "min",
    Max "max", MinBy "min_by", MaxBy "max_by", Minmax "minmax", MinmaxBy "minmax_by", Reduce "reduce", Inject "inject",
    Each "each", EachWithIndex "each_with_index", EachWithObject "each_with_object", EachSlice "each_slice",
    EachCons "each_cons", Zip "zip", Transpose "transpose", Flatten "flatten", Compact "compact", Uniq "uniq",
    Rotate "rotate", Join "join", ToH "to_h", ToA "to_a", Entries "entries", Tally "tally", ChunkWhile "chunk_while",
    SliceWhen "slice_when", ValuesAt "values_at", Product "product", Combination "combination",
    Permutation "permutation", Cycle "cycle", Bsearch "bsearch", Sample "sample", Shuffle "shuffle", Fill "fill",
    DeleteAt "delete_at", DeleteIf "delete_if", FilterMap "filter_map", At "at", Assoc "assoc", Rassoc "rassoc",
    Chunk "chunk", ReverseEach "reverse_each", EachIndex "each_index", Union "union", Difference "difference",
    Intersection "intersection", IntersectQ "intersect?", WithIndex "with_index", WithObject "with_object",
    MapBang "map!", SelectBang "select!", KeepIf "keep_if", RejectBang "reject!", SortBang "sort!",
    SortByBang "sort_by!", UniqBang "uniq!", CompactBang "compact!", FindAll "find_all", MemberQ "member?",
    SliceBefore "slice_before", SliceAfter "slice_after", Fetch "fetch", FetchValues "fetch_values", KeyQ "key?",
    HasKeyQ "has_key?", ValueQ "value?", HasValueQ "has_value?", Keys "keys", Values "values", EachPair "each_pair",
    EachKey "each_key", EachValue "each_value", Key "key", TransformValues "transform_values",
    TransformKeys "transform_keys", TransformValuesBang "transform_values!", TransformKeysBang "transform_keys!",
    Merge "merge", MergeBang "merge!", Update "update", Invert "invert", Except "except", Default "default",
    DefaultSet "default=", Store "store", Begin "begin", End "end", ExcludeEndQ "exclude_end?", CoverQ "cover?",
    Call "call", Yield "yield", Arity "arity", LambdaQ "lambda?", ToProc "to_proc", Source "source", Names "names",
    Captures "captures", NamedCaptures "named_captures", PreMatch "pre_match", PostMatch "post_match", String "string",
    Offset "offset", Escape "escape", Quote "quote", LastMatch "last_match", Name "name", New "new", Message "message",
    FullMessage "full_message", Year "year", Month "month", Mon "mon", Day "day", Mday "mday", Hour "hour", Sec "sec",
    Usec "usec", Nsec "nsec", TvSec "tv_sec", TvUsec "tv_usec", Wday "wday", Yday "yday", Zone "zone", Utc "utc",
    Gmtime "gmtime", Getutc "getutc", Getgm "getgm", Localtime "localtime", Getlocal "getlocal", UtcQ "utc?",
    GmtQ "gmt?", UtcOffset "utc_offset", GmtOffset "gmt_offset", Gmtoff "gmtoff", Strftime "strftime",
    Iso8601 "iso8601", Xmlschema "xmlschema", MondayQ "monday?", TuesdayQ "tuesday?", WednesdayQ "wednesday?",
    ThursdayQ "thursday?", FridayQ "friday?", SaturdayQ "saturday?", SundayQ "sunday?", Now "now", Gm "gm",
    Mktime "mktime", Local "local", Parse "parse", Httpdate "httpdate", Rand "rand", Generate "generate",
    PrettyGenerate "pretty_generate",
}

#[cfg(test)]
mod tests;
