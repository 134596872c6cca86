//! What fuzzing found worth keeping, replayed. `fuzz/` makes more of it.

mod files;

#[test]
#[expect(clippy::disallowed_methods, reason = "the corpus is in files")]
fn fuzz_corpus_of_files_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/files");
    let entries = std::fs::read_dir(folder).expect("the corpus is part of the tree");
    let mut replayed = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        files::play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed >= 20, "only {replayed} seeds in {folder}");
}
