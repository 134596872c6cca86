//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod application;
mod rewriting;
#[expect(dead_code, reason = "what the other tests use of the world")]
#[path = "../suite/world.rs"]
mod world;

#[test]
fn fuzz_corpus_of_proxy_is_replayed() {
    lastbyte_testkit::replay_corpus("proxy", 10, rewriting::play);
}

#[test]
fn fuzz_corpus_of_application_is_replayed() {
    lastbyte_testkit::replay_corpus("application", 10, application::play);
}
