#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use super::{super::saved::tests::session, *};

fn take(store: &MemorySessions, server: &str) -> Option<SavedSession> {
    store.take(server, Version::V2)
}

#[test]
fn the_newest_sessions_of_a_server_are_returned_once() {
    let store = MemorySessions::default();
    for mark in 0..=PER_SERVER_MAX {
        store.put(session("a", mark as u8));
    }
    for mark in (1..=PER_SERVER_MAX).rev() {
        assert_eq!(take(&store, "a").unwrap(), session("a", mark as u8));
    }
    assert_eq!(take(&store, "a"), None, "the oldest was given up");
}

#[test]
fn servers_and_versions_are_kept_apart() {
    let store = MemorySessions::default();
    store.put(session("a", 1));
    assert_eq!(store.take("a", Version::V1), None);
    assert_eq!(take(&store, "b"), None);
    assert!(take(&store, "a").is_some());
}

#[test]
fn the_least_recently_used_server_is_evicted() {
    let store = MemorySessions::new(2);
    for server in ["a", "b", "a", "c"] {
        store.put(session(server, 1));
    }
    assert_eq!(take(&store, "b"), None);
    assert!(take(&store, "a").is_some());
    assert!(take(&store, "c").is_some());
}

#[test]
fn all_sessions_can_be_taken_and_restored() {
    let store = MemorySessions::default();
    let all = [session("a", 1), session("a", 2), session("b", 3)];
    for session in all.clone() {
        store.put(session);
    }
    let taken = store.take_all();
    assert_eq!(taken, all);
    assert_eq!(take(&store, "a"), None);
    for session in taken {
        store.put(session);
    }
    assert_eq!(take(&store, "a").unwrap(), all[1]);
}
