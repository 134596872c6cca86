//! Any text for a query: it is compiled or refused. Short ones that cannot run for long are run, on one thread and on
//! two. Shared by the replay of the corpus and the fuzz target.

use lastbyte_query::{Input, Options, Query};

/// Words of queries that could take unlimited time or memory, as in Ruby.
const ENDLESS: &[&str] = &[
    "loop",
    "while",
    "until",
    "redo",
    "retry",
    "cycle",
    "times",
    "upto",
    "downto",
    "step",
    "for",
    "just",
    "center",
    "product",
    "combination",
    "permutation",
    "def",
    "lambda",
    "proc",
    "->",
    "*",
    "<<",
    "..",
    "%",
    "pow",
    "digits",
    "round",
    "Array",
    "fill",
    "[]=",
    "] =",
    "]=",
];

const BYTES_MAX: usize = 100;

const ROWS: &str = r#"{"a":1,"b":"x","l":[1,2.5,null]}
{"a":-2.5,"b":"yé","l":[]}
[1,"2",{"a":3}]
null
{"a":null,"b":12345678901234567890,"l":{"x":[true]}}
"#;

fn run(query: &str, threads: usize) -> Option<(Vec<u8>, Vec<u8>, bool)> {
    let options = Options {
        threads,
        chunk_bytes: 40,
        ..Options::default()
    };
    let query = Query::compile(query, &[], options).ok()?;
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let rows = Input::from_bytes("rows", ROWS.into());
    let good = query.run(vec![rows], &mut out, &mut errors);
    Some((out, errors, good))
}

pub(crate) fn play(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.len() > BYTES_MAX || ENDLESS.iter().any(|word| text.contains(word)) {
        // The text as a query, and as a helper file.
        let _ = Query::compile(&text, &[], Options::default());
        let helper = [("helper.rb".to_owned(), text.into_owned())];
        let _ = Query::compile("_", &helper, Options::default());
        return;
    }
    assert_eq!(run(&text, 1), run(&text, 2), "{text}");
}
