//! Replays the fuzzing corpus, which the targets in `fuzz/` extend.

mod alt_svc;
mod cookies;

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
fn fuzz_corpus_of_alt_svc_is_replayed() {
    let replayed = replay("alt_svc", alt_svc::play);
    assert!(replayed >= 5, "only {replayed} seeds");
}

#[test]
fn fuzz_corpus_of_cookies_is_replayed() {
    let replayed = replay("cookies", cookies::play);
    assert!(replayed >= 5, "only {replayed} seeds");
}
