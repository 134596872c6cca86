//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod rewriting;

#[test]
#[expect(clippy::disallowed_methods, reason = "the corpus is in files")]
fn fuzz_corpus_of_proxy_is_replayed() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/proxy");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is part of the tree") {
        let path = entry.expect("a readable folder").path();
        rewriting::play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 10, "only {replayed} seeds");
}
