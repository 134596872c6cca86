//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod log;

#[test]
fn fuzz_corpus_of_log_is_replayed() {
    lastbyte_testkit::replay_corpus("log", 10, log::play);
}
