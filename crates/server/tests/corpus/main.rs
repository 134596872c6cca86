//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod rewriting;

#[test]
fn fuzz_corpus_of_proxy_is_replayed() {
    lastbyte_testkit::replay_corpus("proxy", 10, rewriting::play);
}
