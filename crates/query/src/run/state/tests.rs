use crate::{Input, Options, Query};
use proptest::prelude::*;

const QUERY: &str = "group_by(_[\"g\"]) { |r| [count(), sum(r[\"a\"]), min(r[\"s\"]), percentile(r[\"a\"], [0.1, 0.9]), top(2, r[\"a\"]), distinct(r[\"l\"]), histogram(r[\"a\"]), percentile(r[\"a\"], 0.5, error: 0.1), percentile(r[\"a\"], [0, 1], error: 0.1), group([r, r]), first(r[\"s\"]), last(r[\"a\"]), mode(r[\"l\"]), corr(r[\"a\"], 1)] }";

fn query() -> Query {
    Query::compile(QUERY, &[], Options::default()).expect("it is a query")
}

fn state() -> Vec<u8> {
    let rows = b"{\"g\":1,\"a\":1.5,\"s\":\"x\",\"l\":[1]}\n{\"g\":\"b\",\"a\":-3,\"s\":\"y\",\"l\":{\"k\":null}}\n{\"g\":1,\"a\":12345678901234567890}\n";
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let input = Input::from_bytes("rows", rows.to_vec());
    let is_ok = query().partial(vec![input], &mut out, &mut errors);
    assert!(is_ok, "{}", String::from_utf8_lossy(&errors));
    out
}

fn merge(query: &Query, state: Vec<u8>) -> (bool, String, String) {
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let is_ok = query.merge(
        vec![Input::from_bytes("a.state", state)],
        &mut out,
        &mut errors,
    );
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (is_ok, text(out), text(errors))
}

/// With the checksum that fits.
fn seal(mut state: Vec<u8>) -> Vec<u8> {
    let end = state.len().saturating_sub(8);
    state.truncate(end);
    let sum = super::checksum(&state);
    state.extend_from_slice(&sum.to_le_bytes());
    state
}

#[test]
fn a_state_of_another_query_version_or_program_is_rejected_by_name() {
    let good = state();
    let refused = |query: &Query, state: Vec<u8>| {
        let (is_ok, out, errors) = merge(query, state);
        assert!(!is_ok && out.is_empty(), "{out}");
        errors
    };
    let other = Query::compile("count()", &[], Options::default()).expect("it is a query");
    let shown: String = QUERY.chars().take(80).collect();
    assert_eq!(
        refused(&other, good.clone()),
        format!("error: a.state: a state of another query: `{shown}…` (expected `count()`)\n")
    );
    let helpers = [("h.rb".to_owned(), "def f(x) x end".to_owned())];
    let helped = Query::compile(QUERY, &helpers, Options::default()).expect("it is a query");
    assert_eq!(
        refused(&helped, good.clone()),
        "error: a.state: a state of the same query with other helper files or tables\n"
    );
    let mut newer = good.clone();
    newer[super::NAME.len()] = b'2';
    assert_eq!(
        refused(&query(), newer),
        "error: a.state: a state of version 2 (expected 1)\n"
    );
    for other in [&b""[..], b"{\"a\":1}\n", b"lastbyte-query-state 1"] {
        assert_eq!(
            refused(&query(), other.to_vec()),
            "error: a.state: not a state (expected the output of `--partial`)\n"
        );
    }
}

#[test]
fn truncated_or_changed_states_are_rejected() {
    let good = state();
    for end in super::NAME.len() + 2..good.len() {
        let (is_ok, out, errors) = merge(&query(), good[..end].to_vec());
        assert!(!is_ok && out.is_empty());
        assert_eq!(
            errors,
            "error: a.state: the state is cut off or was changed\n"
        );
        // Nor is it taken with a checksum that fits.
        let (is_ok, out, _) = merge(&query(), seal(good[..end].to_vec()));
        assert!(!is_ok && out.is_empty(), "{end}");
    }
    for at in super::NAME.len() + 2..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 1;
        let (is_ok, out, _) = merge(&query(), changed);
        assert!(!is_ok && out.is_empty(), "{at}");
    }
}

/// Its two values would be merged although they need not be of one kind.
#[test]
fn a_key_that_is_there_twice_is_rejected() {
    let query = Query::compile("group_by(_[0]) { |r| min(r[1]) }", &[], Options::default());
    let query = query.expect("it is a query");
    let (mut state, mut errors) = (Vec::new(), Vec::new());
    let rows = Input::from_bytes("rows", b"[\"one\",1]\n[\"two\",2]\n".to_vec());
    assert!(query.partial(vec![rows], &mut state, &mut errors));
    let good = state.clone();
    let at = |key: &[u8]| state.windows(3).rposition(|it| it == key).expect("a key");
    let (one, two) = (at(b"one"), at(b"two"));
    state.copy_within(one..one + 3, two);
    let state = seal(state);
    for states in [vec![state.clone()], vec![good, state]] {
        let states = states.into_iter();
        let states = states.map(|state| Input::from_bytes("a.state", state));
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        assert!(!query.merge(states.collect(), &mut out, &mut errors));
        assert!(out.is_empty());
        assert_eq!(
            errors,
            b"error: a.state: the state is cut off or was changed\n"
        );
    }
}

/// What no state has: a circle, a missing object, and objects that would print forever.
#[test]
fn cyclic_or_unboundedly_expanding_values_are_rejected() {
    let text = "group(_)";
    let query = Query::compile(text, &[], Options::default()).expect("it is a query");
    // One scope; its heap; the template, a reducer's result; one reducer: `group` of one shared value.
    let state = |heap: &[&[u8]]| {
        let mut state = [super::NAME, b"1\n", &[8], text.as_bytes(), &[0, 1]].concat();
        state.push(u8::try_from(heap.len()).expect("few"));
        state.extend(heap.concat());
        state.extend([1, 11, 0, 1, 0, 9, 4, 1, 13, 0]);
        seal([&state[..], &[0; 8]].concat())
    };
    let one = state(&[&[9, 1, 3, 2]]);
    assert_eq!(
        merge(&query, one),
        (true, "[[1]]\n".to_owned(), String::new())
    );
    let doubled: Vec<Vec<u8>> = (1..100).map(|at| vec![9, 2, 13, at, 13, at]).collect();
    let doubling = |times: usize| -> Vec<&[u8]> {
        let arrays = doubled[..times].iter().map(Vec::as_slice);
        arrays.chain([&[9, 0][..]]).collect()
    };
    assert!(merge(&query, state(&doubling(10))).0);
    // A long text that an array has often.
    let (mut text, mut texts) = (vec![7], vec![9]);
    crate::reducers::encoding::write_text(&mut text, &"x".repeat(30_000));
    crate::reducers::encoding::write_count(&mut texts, 30_000);
    texts.extend([13, 1].repeat(30_000));
    for heap in [
        &[][..],
        &[&texts[..], &text],
        &doubling(18),
        &[&[13, 0][..]],
        &[&[9, 1, 13, 0]],
        &[&[9, 1, 13, 1], &[9, 1, 13, 0]],
        &doubling(99),
    ] {
        let (is_ok, out, errors) = merge(&query, state(heap));
        assert!(!is_ok && out.is_empty());
        assert_eq!(
            errors,
            "error: a.state: the state is cut off or was changed\n"
        );
    }
}

proptest! {
    #[test]
    fn any_changed_state_is_refused_or_merged(
        changes in proptest::collection::vec((0..1000_usize, any::<u8>()), 1..8),
        cut in 0..1000_usize,
    ) {
        let mut state = state();
        let start = super::NAME.len() + 2 + QUERY.len();
        for (at, byte) in changes {
            let at = start + at % (state.len() - start - 8);
            state[at] = byte;
        }
        if cut < state.len() - start - 8 && cut % 3 == 0 {
            state.remove(start + cut);
        }
        let (is_ok, _, errors) = merge(&query(), seal(state));
        prop_assert_eq!(is_ok, errors.is_empty());
    }

    #[test]
    fn any_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let state = [super::NAME, b"1\n", &bytes[..]].concat();
        prop_assert!(!merge(&query(), seal([&state[..], &[0; 8]].concat())).0);
    }
}
