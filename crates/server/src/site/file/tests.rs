#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test makes a directory"
)]

use std::fs;

use rustix::fs::fstat;

use super::*;
use crate::site::{Temporary, open_files::OpenFiles};

const LEN: usize = 3 * BUFFER_LEN + 1000;

fn bytes() -> Vec<u8> {
    (0..LEN as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

fn source(directory: &Temporary) -> FileSource {
    let file = fs::File::open(directory.0.join("f")).expect("a file");
    let stat = fstat(&file).expect("it is open");
    let file = OpenFiles::new(1).share(file.into(), &stat).expect("room");
    FileSource::new(file)
}

fn with_file(name: &str) -> Temporary {
    let directory = Temporary::new(name);
    fs::write(directory.0.join("f"), bytes()).expect("room");
    directory
}

fn read(source: &FileSource, at: usize, len: usize) -> Vec<u8> {
    let mut buffer = vec![0; len];
    source.read_at(at as u64, &mut buffer).expect("it has them");
    buffer
}

#[test]
fn sequential_reads_are_read_ahead() {
    let directory = with_file("ahead-order");
    let source = source(&directory);
    let (all, mut at, mut loans) = (bytes(), 0, 0);
    let mut before = None;
    while at < LEN {
        let len = 1424.min(LEN - at);
        assert_eq!(read(&source, at, len), all[at..at + len]);
        at += len;
        let loan = source.ahead.get();
        loans += usize::from(loan.is_some() && loan != before);
        before = loan;
    }
    assert_eq!(loans, 3, "one for each 64 KiB");
    assert_eq!(before, None, "returned with the last byte");
}

/// Retransmissions, ranges and reads by two versions of HTTP.
#[test]
fn any_order_of_reads_gives_the_bytes_of_the_file() {
    let directory = with_file("ahead-any");
    let all = bytes();
    for in_parts in [false, true] {
        let source = source(&directory);
        let source = if in_parts { source.in_parts() } else { source };
        let (mut state, mut at) = (1_u32, 0);
        for _ in 0..2000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (kind, number) = (state >> 28, (state >> 8) as usize & 0xffff);
            at = match kind {
                0 => number * LEN / 0x10000,
                1 => at - at.min(number / 16),
                _ if at == LEN => 0,
                _ => at,
            };
            let len = if kind == 2 { number } else { number % 1500 };
            let len = len.min(LEN - at);
            assert_eq!(read(&source, at, len), all[at..at + len], "{at} {len}");
            at += len;
        }
    }
}

#[test]
fn a_retransmission_keeps_the_read_ahead_buffer() {
    let directory = with_file("ahead-again");
    let source = source(&directory);
    for at in (0..70_000).step_by(1000) {
        read(&source, at, 1000);
    }
    let loan = source.ahead.get();
    assert!(loan.is_some_and(|loan| loan.start == BUFFER_LEN as u64));
    for at in [0, 1000, 64_000, 66_000] {
        assert_eq!(read(&source, at, 1000), bytes()[at..at + 1000]);
        assert_eq!(source.ahead.get(), loan);
    }
}

#[test]
fn a_small_first_read_is_not_read_ahead_and_the_next_in_order_is() {
    let directory = with_file("ahead-parts");
    let source = source(&directory).in_parts();
    read(&source, 5000, 1000);
    assert_eq!(source.ahead.get(), None);
    read(&source, 6000, 1000);
    assert!(source.ahead.get().is_some());
}

/// With more responses than buffers, those without one read their own bytes, and useless read-ahead is bounded.
#[test]
fn more_responses_than_buffers_all_get_their_bytes() {
    let directory = with_file("ahead-many");
    let all = bytes();
    let sources: Vec<_> = (0..read_ahead::BUFFERS_MAX + 40)
        .map(|_| source(&directory))
        .collect();
    for at in (0..LEN - 1000).step_by(1000) {
        for source in &sources {
            assert_eq!(read(source, at, 1000), all[at..at + 1000]);
        }
    }
    let loans = sources.iter().filter(|source| source.ahead.get().is_some());
    assert!(loans.count() >= read_ahead::BUFFERS_MAX);
    drop(sources);
    let source = source(&directory);
    read(&source, 0, 1000);
    assert!(source.ahead.get().is_some(), "all were returned");
}

#[test]
fn read_ahead_of_a_changed_file_fails_its_stream() {
    let directory = with_file("ahead-changed");
    let source = source(&directory);
    read(&source, 0, 1000);
    let file = fs::File::options()
        .write(true)
        .open(directory.0.join("f"))
        .expect("a file");
    let other = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.set_modified(other).expect("a date");
    for at in (1000..65_000).step_by(1000) {
        assert_eq!(read(&source, at, 1000), bytes()[at..at + 1000], "as it was");
    }
    let error = source.read_at(65_000, &mut [0; 1000]);
    assert_eq!(error.expect_err("it changed").code, INTERNAL_ERROR);
}
