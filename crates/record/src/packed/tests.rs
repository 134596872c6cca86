use std::io::Read;

use super::*;

const PACKINGS: [Packing; 3] = [Packing::None, Packing::Gzip, Packing::Zstd];

fn line(number: usize) -> String {
    format!(
        "{{\"conn_id\":{number},\"arm\":\"rapidstart\",\"ttlb\":{}}}\n",
        number * 7919 % 1000
    )
}

/// A log of this many lines that is sealed after every `seal` lines.
fn log(packing: Packing, lines: usize, seal: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut log = PackedLines::new(&mut bytes, packing);
    for number in 0..lines {
        log.line(&line(number)).expect("memory");
        if (number + 1).is_multiple_of(seal) {
            log.seal().expect("memory");
        }
    }
    log.seal().expect("memory");
    bytes
}

/// The readable part of a log, by independent decoders.
fn unpack(packing: Packing, bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    match packing {
        Packing::None => text.extend_from_slice(bytes),
        Packing::Gzip => {
            // It returns what it read before the error.
            let _ = flate2::bufread::MultiGzDecoder::new(bytes).read_to_end(&mut text);
        }
        Packing::Zstd => {
            let mut rest = bytes;
            while !rest.is_empty() {
                let Ok(mut decoder) = ruzstd::decoding::StreamingDecoder::new(&mut rest) else {
                    break;
                };
                if decoder.read_to_end(&mut text).is_err() {
                    break;
                }
            }
        }
    }
    text
}

fn whole(lines: usize) -> Vec<u8> {
    (0..lines).map(line).collect::<String>().into_bytes()
}

#[test]
fn written_lines_are_read_back() {
    for packing in PACKINGS {
        for (lines, seal) in [(0, 1), (1, 1), (3, 10), (1000, 100), (60_000, 1_000_000)] {
            let bytes = log(packing, lines, seal);
            assert!(
                unpack(packing, &bytes) == whole(lines),
                "{packing:?}: {lines} lines"
            );
            if lines == 60_000 && packing != Packing::None {
                let ratio = whole(lines).len() / bytes.len();
                assert!(ratio >= 3, "{packing:?} packs {ratio} to 1");
            }
        }
    }
}

/// Wherever a log is truncated, its complete members are readable, and the result is a prefix of the log.
#[test]
fn a_truncated_log_is_readable_up_to_its_last_complete_member() {
    for packing in PACKINGS {
        let all = whole(40);
        let bytes = log(packing, 40, 10);
        let ends: Vec<usize> = (1..=4)
            .map(|pieces| log(packing, 10 * pieces, 10).len())
            .collect();
        for cut in 0..=bytes.len() {
            let text = unpack(packing, &bytes[..cut]);
            assert!(all.starts_with(&text), "{packing:?} cut at {cut}");
            let pieces = ends.iter().filter(|end| **end <= cut).count();
            assert!(
                text.len() >= whole(10 * pieces).len(),
                "{packing:?} cut at {cut}: {} bytes of {pieces} pieces",
                text.len()
            );
        }
    }
}

#[test]
fn a_failed_write_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for packing in PACKINGS {
        let mut log = PackedLines::new(Full, packing);
        log.line("x").expect("it waits");
        assert_eq!(log.seal().expect_err("it is full").to_string(), "full");
        // Lost lines are not written later.
        assert!(log.seal().is_ok());
    }
}

#[test]
fn packings_have_names() {
    for (name, packing) in [
        ("gzip", Packing::Gzip),
        ("zst", Packing::Zstd),
        ("none", Packing::None),
    ] {
        assert_eq!(name.parse(), Ok(packing));
        let file = format!("conns.ndjson{}", packing.suffix());
        assert_eq!(Packing::of_name(&file), packing);
    }
    let error = "lz4".parse::<Packing>().expect_err("there is none");
    assert!(error.to_string().contains("`gzip`, `zstd` or `none`"));
}
