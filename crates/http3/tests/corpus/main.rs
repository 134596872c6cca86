//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod compression;
#[path = "../suite/pair.rs"]
mod pair;
mod requests;
mod streams;

#[test]
fn fuzz_corpus_of_qpack_is_replayed() {
    lastbyte_testkit::replay_corpus("qpack", 10, compression::play);
}

#[test]
fn fuzz_corpus_of_http3_is_replayed() {
    lastbyte_testkit::replay_corpus("http3", 10, streams::play);
}

#[test]
fn fuzz_corpus_of_http3_request_is_replayed() {
    lastbyte_testkit::replay_corpus("http3_request", 10, requests::play);
}
