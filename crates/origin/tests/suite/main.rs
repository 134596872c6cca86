//! The server in virtual time, and what fuzzing found worth keeping, replayed.

#[path = "../corpus/application.rs"]
mod application;
mod chaos;
mod ends;
mod world;

#[test]
fn fuzz_corpus_of_application_is_replayed() {
    lastbyte_testkit::replay_corpus("application", 10, application::play);
}
