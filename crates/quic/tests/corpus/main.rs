//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod connection;
mod datagrams;
mod ranges;

#[test]
fn fuzz_corpus_of_endpoint_is_replayed() {
    lastbyte_testkit::replay_corpus("endpoint", 3, datagrams::play);
}

#[test]
fn fuzz_corpus_of_connection_is_replayed() {
    lastbyte_testkit::replay_corpus("connection", 10, connection::play);
}

#[test]
fn fuzz_corpus_of_ack_ranges_is_replayed() {
    lastbyte_testkit::replay_corpus("ack_ranges", 10, ranges::play);
}
