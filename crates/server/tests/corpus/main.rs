//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.
#![expect(dead_code, reason = "what other tests use of the world")]

#[path = "../../../origin/tests/corpus/application.rs"]
mod application;
mod proxied;
mod rewriting;
#[path = "../../../origin/tests/suite/world.rs"]
mod world;

#[test]
fn fuzz_corpus_of_proxy_is_replayed() {
    lastbyte_testkit::replay_corpus("proxy", 10, rewriting::play);
}

#[test]
fn fuzz_corpus_of_proxied_is_replayed() {
    lastbyte_testkit::replay_corpus("proxied", 10, proxied::play);
}
