//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod packets;

#[test]
fn fuzz_corpus_of_lb_is_replayed() {
    lastbyte_testkit::replay_corpus("lb", 3, packets::play);
}
