//! Replays the fuzz corpus.

mod files;

#[test]
fn fuzz_corpus_of_files_is_replayed() {
    lastbyte_testkit::replay_corpus("files", 20, files::play);
}
