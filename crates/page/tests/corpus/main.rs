//! The fuzzing corpus, and damaged files.

use core::fmt::Write as _;

use proptest::prelude::*;

mod page;

const HAR_FILES: [&str; 4] = [
    include_str!("../../src/har/tests/chromium-recorded.har"),
    include_str!("../../src/har/tests/chromium.har"),
    include_str!("../../src/har/tests/firefox.har"),
    include_str!("../../src/har/tests/webpagetest.har"),
];

#[test]
fn the_fuzzing_corpus_is_replayed() {
    lastbyte_testkit::replay_corpus("page", 5, page::play);
}

proptest! {
    #[test]
    fn damaged_files_never_panic(
        which in 0..HAR_FILES.len(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut bytes = HAR_FILES[which].as_bytes().to_vec();
        for (at, value) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        page::play(&bytes);
    }

    #[test]
    fn random_entries_give_valid_pages(
        entries in proptest::collection::vec((0_u32..59_999, 0_usize..5, any::<bool>()), 1..40),
    ) {
        let mut text = String::new();
        for (index, (millis, of, is_redirect)) in entries.iter().enumerate() {
            let _ = write!(
                text,
                "{}{{\"_initiator\":\"https://h{of}.example/{}\",\"_objectSize\":{index},\
                 \"startedDateTime\":\"2024-05-01T10:00:{:02}.{:03}Z\",\"time\":{of},\
                 \"request\":{{\"url\":\"https://h{of}.example/{index}\"}},\"response\":{{\"status\":{}}}}}",
                if index == 0 { "" } else { "," },
                index / 2,
                millis / 1000,
                millis % 1000,
                if *is_redirect { 302 } else { 200 },
            );
        }
        let text = format!("{{\"log\":{{\"entries\":[{text}]}}}}");
        prop_assert!(lastbyte_page::har::read(text.as_bytes(), false).is_ok());
        page::play(text.as_bytes());
    }
}
