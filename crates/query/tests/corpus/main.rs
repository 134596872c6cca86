//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod json;
mod rows;
mod text;

#[expect(clippy::disallowed_methods, reason = "the corpus is in files")]
fn replay(folder: &str, play: fn(&[u8])) {
    let entries = std::fs::read_dir(folder).expect("the corpus is part of the tree");
    let mut replayed = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 20, "only {replayed} seeds in {folder}");
}

#[test]
fn fuzz_corpus_of_queries_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/query");
    replay(folder, text::play);
}

#[test]
fn fuzz_corpus_of_rows_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/rows");
    replay(folder, rows::play);
}

#[test]
fn fuzz_corpus_of_json_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/json");
    replay(folder, json::play);
}
