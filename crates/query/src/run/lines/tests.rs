use super::*;
use std::collections::VecDeque;

/// Gives these pieces, one a read; then an error, if there is one.
struct Pieces {
    pieces: VecDeque<&'static str>,
    failure: Option<ErrorKind>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.pieces.pop_front() {
            Some(piece) => {
                let (count, bytes) = (piece.len().min(buffer.len()), piece.as_bytes());
                buffer[..count].copy_from_slice(&bytes[..count]);
                if count < piece.len() {
                    self.pieces.push_front(&piece[count..]);
                }
                Ok(count)
            }
            None => self.failure.take().map_or(Ok(0), |kind| Err(kind.into())),
        }
    }
}

fn pieces(live: bool, failure: Option<ErrorKind>, pieces: &[&'static str]) -> Lines {
    let reader = Pieces {
        pieces: pieces.iter().copied().collect(),
        failure,
    };
    let input = Input::new("pieces", move || Ok(Box::new(reader)));
    let input = if live { input.live() } else { input };
    Lines::open(input, 16).expect("it opens")
}

/// All blocks, and why there are no more.
fn blocks(mut lines: Lines, size: usize) -> (Vec<String>, Option<Failure>) {
    let (mut buffer, mut all) = (Vec::new(), Vec::new());
    loop {
        let (length, failure) = lines.next(&mut buffer, size);
        if length > 0 {
            all.push(String::from_utf8(buffer[..length].to_vec()).expect("UTF-8"));
        }
        if length == 0 || failure.is_some() {
            return (all, failure);
        }
    }
}

#[test]
fn blocks_hold_whole_lines_without_loss() {
    let text = "1\n22\n333\n\n55555\n666666";
    for size in 1..30 {
        let input = Input::from_bytes("text", text.as_bytes().to_vec());
        let lines = Lines::open(input, 16).expect("it opens");
        let (all, failure) = blocks(lines, size);
        assert!(failure.is_none());
        assert_eq!(all.concat(), text, "{size}");
        let (_, whole) = all.split_last().expect("blocks");
        assert!(whole.iter().all(|block| block.ends_with('\n')), "{all:?}");
    }
}

#[test]
fn a_live_input_is_read_to_the_next_line_end_only() {
    let parts = ["1\n2", "2\n", "3", "3\n4"];
    assert_eq!(
        blocks(pieces(true, None, &parts), 100).0,
        ["1\n", "22\n", "33\n", "4"]
    );
    assert_eq!(blocks(pieces(false, None, &parts), 100).0, ["1\n22\n33\n4"]);
}

#[test]
fn an_error_ends_the_input_after_its_whole_lines() {
    let failing = |parts| pieces(false, Some(ErrorKind::InvalidData), parts);
    let (all, failure) = blocks(failing(&["1\n2", "2\n3"]), 100);
    assert_eq!(all, ["1\n22\n"]);
    assert!(matches!(failure, Some(Failure::Unreadable(_))));
    // One that only asks to be called again is none.
    let (all, failure) = blocks(pieces(false, Some(ErrorKind::Interrupted), &["1\n"]), 100);
    assert_eq!(all, ["1\n"]);
    assert!(failure.is_none());
}

#[test]
fn lines_up_to_the_maximum_length_are_read() {
    let (all, failure) = blocks(pieces(false, None, &["1\n", "345678901234567\n", "2\n"]), 1);
    assert_eq!(all, ["1\n", "345678901234567\n", "2\n"]);
    assert!(failure.is_none());
    let (all, failure) = blocks(
        pieces(false, None, &["1\n", "34567890123456789\n", "2\n"]),
        1,
    );
    assert_eq!(all, ["1\n"]);
    assert!(matches!(failure, Some(Failure::LineTooLong(16))));
}

#[test]
fn a_buffer_is_reused_unless_it_grew() {
    let mut lines = Lines::open(Input::from_bytes("text", b"1\n2\n3\n".repeat(100)), 1 << 20)
        .expect("it opens");
    let mut buffer = Vec::new();
    assert!(lines.next(&mut buffer, 64).0 >= 64);
    let place = buffer.as_ptr();
    while lines.next(&mut buffer, 64).0 > 0 {
        assert_eq!(buffer.as_ptr(), place);
    }
    trim(&mut buffer, 64);
    assert_eq!(buffer.len(), 64);
    trim(&mut buffer, 8);
    assert!(buffer.is_empty());
}

#[test]
fn compressed_input_is_detected_by_its_first_bytes() {
    let opened = |bytes: &[u8]| {
        let input = Input::from_bytes("bytes", bytes.to_vec());
        let mut text = Vec::new();
        input
            .open()
            .and_then(|mut it| it.read_to_end(&mut text))
            .map(|_| text)
    };
    for plain in [
        &b""[..],
        b"\x1f",
        b"\x1f1",
        b"(",
        b"(\xb5",
        b"(\xb5\x2f1",
        b"1",
    ] {
        assert_eq!(opened(plain).expect("it is plain"), plain);
    }
    assert!(opened(&[0x1f, 0x8b]).is_err());
    assert!(opened(&[0x28, 0xb5, 0x2f, 0xfd]).is_err());
}
