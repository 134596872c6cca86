//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod connection;
mod datagrams;
mod ranges;

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
fn fuzz_corpus_of_endpoint_is_replayed() {
    let replayed = replay("endpoint", datagrams::play);
    assert!(replayed >= 3, "only {replayed} seeds");
}

#[test]
fn fuzz_corpus_of_connection_is_replayed() {
    let replayed = replay("connection", connection::play);
    assert!(replayed >= 10, "only {replayed} seeds");
}

#[test]
fn fuzz_corpus_of_ack_ranges_is_replayed() {
    let replayed = replay("ack_ranges", ranges::play);
    assert!(replayed >= 10, "only {replayed} seeds");
}
