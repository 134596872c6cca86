//! Any bytes for the values of a state: they are refused, or merged with the same result as the state of the state. Shared by the
//! replay of the corpus and the fuzz target.

use lastbyte_query::{Input, Options, Query};

const QUERIES: &[&str] = &[
    "group_by(_[\"a\"]) { |r| [count(), sum(r[\"b\"]), percentile(r[\"b\"], [0.1, 0.9])] }",
    "[min(_), max(_), average(_), stdev(_), group(_)]",
    "sort(_[\"a\"])",
    "{top: top(2, _[\"a\"]), distinct: distinct(_), histogram: histogram(_[\"a\"])}",
];

/// FNV-1a of 64 bits, the checksum of a state.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The first byte selects the query; the others replace the values of its state.
pub(crate) fn play(bytes: &[u8]) {
    let Some((choice, values)) = bytes.split_first() else {
        return;
    };
    let text = QUERIES[usize::from(choice & 3)];
    let query = Query::compile(text, &[], Options::default()).expect("it is a query");
    let (mut state, mut errors) = (Vec::new(), Vec::new());
    let rows = Input::from_bytes("rows", Vec::new());
    assert!(query.partial(vec![rows], &mut state, &mut errors));
    // Without rows there are no values: their number is a byte, before the checksum.
    state.truncate(state.len() - 9);
    state.extend(values);
    state.extend(checksum(&state).to_le_bytes());
    let input = |state: &[u8]| vec![Input::from_bytes("state", state.to_vec())];
    let (mut out, mut again) = (Vec::new(), Vec::new());
    let is_merged = query.merge(input(&state), &mut out, &mut errors);
    assert_eq!(is_merged, errors.is_empty());
    if is_merged {
        let mut copy = Vec::new();
        assert!(query.merge_to_state(input(&state), &mut copy, &mut errors));
        assert!(query.merge(input(&copy), &mut again, &mut errors));
        assert_eq!(out, again);
    }
}
