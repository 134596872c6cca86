//! Replays the corpus collected by the fuzz targets in `fuzz/`.

mod bytes;

#[test]
#[expect(clippy::disallowed_methods, reason = "reads the corpus from files")]
fn fuzz_corpus_is_replayed() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/wire");
    let entries = std::fs::read_dir(corpus).expect("fuzz/corpus/wire exists");
    let mut replayed = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        bytes::play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 20, "only {replayed} seeds");
}
