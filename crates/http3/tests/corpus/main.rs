//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod compression;
#[path = "../suite/pair.rs"]
mod pair;
mod requests;
mod streams;

#[expect(clippy::disallowed_methods, reason = "the corpus is in files")]
fn replay(target: &str, play: impl Fn(&[u8])) -> usize {
    let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(corpus).expect("the corpus is part of the tree");
    let mut replayed = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    replayed
}

#[test]
fn fuzz_corpus_of_qpack_is_replayed() {
    let replayed = replay("qpack", compression::play);
    assert!(replayed >= 10, "only {replayed} seeds");
}

#[test]
fn fuzz_corpus_of_http3_is_replayed() {
    let replayed = replay("http3", streams::play);
    assert!(replayed >= 10, "only {replayed} seeds");
}

#[test]
fn fuzz_corpus_of_http3_request_is_replayed() {
    let replayed = replay("http3_request", requests::play);
    assert!(replayed >= 10, "only {replayed} seeds");
}
