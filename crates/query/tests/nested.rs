//! What builtins act on within the blocks of others, and what is asked of values: each answer is that of jrf.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use lastbyte_query::{Input, Options, Query};

const ARMS: &str = r#"{"fast":[120,80],"slow":[300]}
{"fast":[95],"slow":[]}
"#;

const LOSS: &str = r#"{"sent":100,"lost":3}
{"sent":40,"lost":0}
"#;

const LISTS: &str = "[[2,3],[5]]\n[[1,4],[]]\n";

/// The output, or the error.
fn run(query: &str, rows: &str) -> String {
    let query = Query::compile(query, &[], Options::default()).unwrap();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("rows", rows.as_bytes().to_vec());
    let text = if query.run(vec![input], &mut out, &mut errors) {
        out
    } else {
        errors
    };
    String::from_utf8(text).unwrap()
}

#[test]
fn methods_in_map_over_a_hash_act_on_the_value() {
    for (query, rows, answer) in [
        ("map { |name, list| flat }", ARMS, "[120,80,300]\n[95]\n"),
        ("map { flat }", ARMS, "[120,80,300]\n[95]\n"),
        (
            "map { |name, list| select(list.size > 0 && name != \"slow\") }",
            ARMS,
            "[[120,80]]\n[[95]]\n",
        ),
        ("map { |name, n| select(n > 2) }", LOSS, "[100,3]\n[40]\n"),
        ("map { |name, n| group }", LOSS, "[[100,40],[3,0]]\n"),
        ("map { |name, n| sort }", LOSS, "[[40,100],[0,3]]\n"),
        (
            "map { |name, n| reduce(name) { |text, v| \"#{text} #{v}\" } }",
            LOSS,
            "[\"sent 100 40\",\"lost 3 0\"]\n",
        ),
        (
            "map { |pair| pair }",
            LOSS,
            "[[\"sent\",100],[\"lost\",3]]\n[[\"sent\",40],[\"lost\",0]]\n",
        ),
        (
            "map { |name, list| map(list) { |n| n + 1 } }",
            "{\"a\":[1]}\n",
            "[[2]]\n",
        ),
    ] {
        assert_eq!(run(query, rows), answer, "{query}");
    }
}

#[test]
fn methods_in_other_blocks_act_on_the_block_argument() {
    for (query, rows, answer) in [
        ("map { |list| flat }", LISTS, "[2,3,5]\n[1,4]\n"),
        ("map { |list| group }", LISTS, "[[[2,3],[1,4]],[[5],[]]]\n"),
        (
            "map_values { |n| select(n > 2) }",
            LOSS,
            "{\"sent\":100,\"lost\":3}\n{\"sent\":40}\n",
        ),
        (
            "map_values { sort }",
            LOSS,
            "{\"sent\":[40,100],\"lost\":[0,3]}\n",
        ),
        ("apply { |list| flat }", LISTS, "[2,3,5]\n[1,4]\n"),
        ("apply { |list| group(list.size) }", LISTS, "[2,1]\n[2,0]\n"),
    ] {
        assert_eq!(run(query, rows), answer, "{query}");
    }
}

#[test]
fn flat_in_map_values_is_an_error() {
    let printed = run("map_values { |list| flat }", ARMS);
    let message = "error: flat is not supported inside map_values (TypeError)";
    assert!(printed.starts_with(message), "{printed}");
}

#[test]
fn min_and_max_use_the_operators_of_the_values() {
    let rows = "[1]\n[2]\n";
    for (query, answer) in [
        (
            "min(_)",
            "[1]\nerror: undefined method '<' for an instance of Array (NoMethodError)",
        ),
        (
            "max(_)",
            "[1]\nerror: undefined method '>' for an instance of Array (NoMethodError)",
        ),
        (
            "max(_.first == 1)",
            "true\nerror: undefined method '>' for false (NoMethodError)",
        ),
        ("min({a: _.first}.slice(*[:a].first(2 - _.first)))", "{}\n"),
    ] {
        let query_run = Query::compile(query, &[], Options::default()).unwrap();
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        query_run.run(
            vec![Input::from_bytes("rows", rows.as_bytes().to_vec())],
            &mut out,
            &mut errors,
        );
        out.append(&mut errors);
        let printed = String::from_utf8(out).unwrap();
        assert!(printed.starts_with(answer), "{query}: {printed}");
    }
}

#[test]
fn methods_on_non_ascii_strings_are_correct_or_rejected() {
    let text = "\"Ünï éz\"\n";
    for (query, answer) in [("_.succ", "\"Ünï êa\"\n"), ("_[0, 3].succ", "\"Ünð\"\n")] {
        assert_eq!(run(query, text), answer, "{query}");
    }
    for (query, hint) in [
        (
            "_.b.size",
            "texts are UTF-8; `bytes` and `bytesize` are of their octets",
        ),
        (
            "_.unicode_normalize",
            "texts are UTF-8, so that it can be left out",
        ),
        (
            "_.encode(\"UTF-16\")",
            "texts are UTF-8, so that it can be left out",
        ),
        ("_.unpack(\"C*\")", "the nearest one is `bytes`"),
        ("[65].pack(\"C*\")", "write `map { |code| code.chr }.join`"),
        ("_.crypt(\"ab\")", "there is nothing like it"),
        ("_.grapheme_clusters", "the nearest one is `chars`"),
        (
            "_.lazy.map { |x| x }",
            "write `each` with `break`, `find` or `first(n)`, which end early",
        ),
        ("_.chars.each_entry { |x| x }", "the nearest one is `each`"),
        ("_.tr!(\"a\", \"b\")", "write `x = x.tr`"),
    ] {
        let refused = Query::compile(query, &[], Options::default())
            .map(|_| ())
            .unwrap_err();
        let wanted = format!("(NoMethodError): it is not supported; {hint}");
        assert!(refused.message.ends_with(&wanted), "{refused}");
    }
    assert_eq!(
        run("_.upcase(:turkic)", text),
        "error: wrong number of arguments (given 1, expected 0) (ArgumentError) at rows:1, stage 0\n"
    );
}

#[test]
fn respond_to_calls_nothing() {
    for (query, answer) in [
        (
            "a = []; f = lambda { a.push(1) }; [f.respond_to?(:call), a.length]",
            "[true,0]\n",
        ),
        (
            "[[].respond_to?(:<<), 1.respond_to?(:upcase), nil.respond_to?(:to_a), _.respond_to?(:lazy)]",
            "[true,false,true,false]\n",
        ),
    ] {
        assert_eq!(run(query, "1\n"), answer, "{query}");
    }
}

#[test]
fn a_block_of_an_enumerator_receives_the_element_and_its_index() {
    let rows = "[10,20]\n";
    for (query, answer) in [
        ("_.each_with_index.map { |x| x }", "[10,20]\n"),
        ("_.each_with_index.map { |*x| x }", "[[10,0],[20,1]]\n"),
        ("_.each_with_index.map { _1 }", "[10,20]\n"),
        ("_.each_with_index.flat_map { |x| [x] }", "[10,20]\n"),
        ("_.each_with_index.filter_map { |x, i| x + i }", "[10,21]\n"),
        ("_.each_with_index.count { |x| x == 10 }", "1\n"),
        ("_.each_with_index.to_h { |x| [x, 1] }.keys", "[10,20]\n"),
        ("_.each.with_index(1).map { |x, i| x * i }", "[10,40]\n"),
        ("_.each_with_index.select { |x| x }", "[[10,0],[20,1]]\n"),
        (
            "_.each_with_index.sort_by { |x| -x[1] }",
            "[[20,1],[10,0]]\n",
        ),
        (
            "_.each_slice(1).with_index.map { |(a), i| a + i }",
            "[10,21]\n",
        ),
        ("{ a: 1 }.each_with_index.map { |x| x }", "[[\"a\",1]]\n"),
        (
            "{ a: 1 }.each_with_index.map { |((k, v), i)| [k, v, i] }",
            "[[\"a\",null,1]]\n",
        ),
    ] {
        assert_eq!(run(query, rows), answer, "{query}");
    }
}

#[test]
fn a_frozen_array_does_not_change() {
    for query in [
        "_.freeze << 4",
        "_.freeze.push(4)",
        "x = _.freeze; x[0] = 1",
        "_.freeze.concat([1])",
        "_.freeze.clone.pop",
    ] {
        let printed = run(query, "[3,1]\n");
        assert_eq!(
            printed, "error: can't modify frozen Array: [3, 1] (FrozenError) at rows:1, stage 0\n",
            "{query}"
        );
    }
    assert_eq!(
        run(
            "x = _.freeze; [x.frozen?, x.dup.frozen?, x.dup << 1]",
            "[3]\n"
        ),
        "[true,false,[3,1]]\n"
    );
}

/// Their answers are compared with Ruby's in `ruby/fixed.txt`; a message of ours is not.
#[test]
fn properties_and_code_points_in_a_regex_are_those_of_ruby() {
    for (query, answer) in [
        ("_ =~ /\\u{65E5}/", "0\n"),
        ("_ =~ /[\\u{65E5 672C}]x/", "1\n"),
        ("_[/\\p{Word}+/]", "\"日本x\"\n"),
        ("_[/\\P{Word}+/]", "\" \"\n"),
    ] {
        assert_eq!(run(query, "\"日本x y\"\n"), answer, "{query}");
    }
}
