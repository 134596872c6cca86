//! Replays the fuzzing corpus, which the targets in `fuzz/` extend.

mod alt_svc;

#[test]
fn fuzz_corpus_of_alt_svc_is_replayed() {
    lastbyte_testkit::replay_corpus("alt_svc", 5, alt_svc::play);
}
