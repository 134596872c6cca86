//! Replays the corpus collected by the fuzz targets in `fuzz/`.

mod bytes;

#[test]
fn fuzz_corpus_is_replayed() {
    lastbyte_testkit::replay_corpus("wire", 20, bytes::play);
}
