//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod datagrams;

#[test]
#[expect(clippy::disallowed_methods, reason = "the corpus is in files")]
fn fuzz_corpus_is_replayed() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/endpoint");
    let entries = std::fs::read_dir(corpus).expect("fuzz/corpus/endpoint is part of the tree");
    let mut replayed = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        datagrams::play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 3, "only {replayed} seeds");
}
