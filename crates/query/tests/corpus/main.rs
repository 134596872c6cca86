//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod json;
mod rows;
mod state;
mod text;

#[test]
fn fuzz_corpus_of_queries_is_replayed() {
    lastbyte_testkit::replay_corpus("query", 20, text::play);
}

#[test]
fn fuzz_corpus_of_rows_is_replayed() {
    lastbyte_testkit::replay_corpus("rows", 20, rows::play);
}

#[test]
fn fuzz_corpus_of_json_is_replayed() {
    lastbyte_testkit::replay_corpus("json", 20, json::play);
}

#[test]
fn fuzz_corpus_of_states_is_replayed() {
    lastbyte_testkit::replay_corpus("state", 4, state::play);
}
