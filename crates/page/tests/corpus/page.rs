//! Any bytes as a HAR file and as a corpus: refused with a message, or valid pages that are written and read again.

use lastbyte_page::{Page, har, read_corpus, write_page};

pub(crate) fn play(bytes: &[u8]) {
    for is_anonymous in [false, true] {
        match har::read(bytes, is_anonymous) {
            Ok(recording) => recording.pages.iter().for_each(check),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        for page in read_corpus("any", text) {
            match page {
                Ok(page) => check(&page),
                Err(error) => assert!(error.to_string().starts_with("any:")),
            }
        }
    }
}

fn check(page: &Page) {
    assert_eq!(page.check(), Ok(()));
    let line = write_page(page);
    let read: Vec<Page> = read_corpus("line", &line)
        .collect::<Result<_, _>>()
        .expect("a line that was written");
    assert_eq!(read.len(), 1);
    assert_eq!(write_page(&read[0]), line);
}
