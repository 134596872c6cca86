use super::Csv;
use proptest::prelude::*;
use std::io::Read;

/// Gives this many bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn lines(csv: &[u8], size: usize) -> (String, Option<String>) {
    let mut out = Vec::new();
    let failure = Csv::new(Slow(csv, size)).read_to_end(&mut out).err();
    (
        String::from_utf8_lossy(&out).into_owned(),
        failure.map(|failure| failure.to_string()),
    )
}

#[test]
fn csv_records_become_json_lines() {
    for (csv, json) in [
        ("a,b\n1,x\n", "\n{\"a\":1,\"b\":\"x\"}\n"),
        // Without a last line feed, with CR LF, with a byte-order mark, and with blank lines.
        ("a\n-2.5e1", "\n{\"a\":-2.5e1}\n"),
        ("a,b\r\n1,\"x\"\r\n", "\n{\"a\":1,\"b\":\"x\"}\n"),
        ("\u{feff}a\n\n1\n", "\n\n{\"a\":1}\n"),
        (
            "\u{feff}\"a\",\u{ff41}\n1\n",
            "\n{\"a\":1,\"\u{ff41}\":null}\n",
        ),
        // Null, empty text, quoted number, numbers that are not JSON.
        (
            "a,b,c,d\n,\"\",\"7\",07\n",
            "\n{\"a\":null,\"b\":\"\",\"c\":\"7\",\"d\":\"07\"}\n",
        ),
        ("a\n1e400\n", "\n{\"a\":\"1e400\"}\n"),
        // Fields that are missing.
        ("a,b\n1\n", "\n{\"a\":1,\"b\":null}\n"),
        // Commas, quotes, line ends and control characters in quoted fields; lines keep their numbers.
        (
            "a,b\n\"x,\"\"y\"\"\n\tz\",1\n2,3\n",
            "\n{\"a\":\"x,\\\"y\\\"\\u000a\\u0009z\",\"b\":1}\n\n{\"a\":2,\"b\":3}\n",
        ),
        ("\"a\"\"b\"\n1\n", "\n{\"a\\\"b\":1}\n"),
        // Other line ends: CR; CR CR LF; CR at the end; and blank lines.
        ("a,b\r1,x\r", "\n{\"a\":1,\"b\":\"x\"}\n"),
        ("a,b\r\r\n1,2\r\r\n", "\n{\"a\":1,\"b\":2}\n"),
        (
            "a\r\"x\r\"\r\r\"y\"\r\n2",
            "\n{\"a\":\"x\\u000d\"}\n\n{\"a\":\"y\"}\n{\"a\":2}\n",
        ),
        ("a\n1\r", "\n{\"a\":1}\n"),
        ("a,b\n1,\r\n", "\n{\"a\":1,\"b\":null}\n"),
        ("", ""),
        ("a,b\n", "\n"),
    ] {
        for size in [1, 2, 1000] {
            assert_eq!(
                lines(csv.as_bytes(), size),
                (json.to_owned(), None),
                "{csv:?}"
            );
        }
    }
}

#[test]
fn invalid_records_end_the_input_after_those_before_them() {
    for (csv, wrong) in [
        (
            "a\n1\n2,3\n4\n",
            "invalid CSV in line 3: 2 fields (expected 1, as in the header)",
        ),
        (
            "a\n1\n\"2\n\n",
            "invalid CSV in line 5: the quoted field that begins in line 3 has no end",
        ),
        (
            "a\n1\n\"2\"x\n",
            "invalid CSV in line 3: a quoted field continues after its closing quote",
        ),
        (
            "a\n1\n2\"\n",
            "invalid CSV in line 3: a quote in a field that does not begin with one",
        ),
        (
            "a\n1\n2\r3\n",
            "invalid CSV in line 3: a carriage return in a field without quotes (expected line ends like that of the header)",
        ),
        (
            "a;b\n1;2\n",
            "invalid CSV in line 1: the header has one column, with ';' in its name (expected columns separated by commas)",
        ),
        (
            "a,b,a\n",
            "invalid CSV in line 1: the header has two columns `a`",
        ),
    ] {
        for size in [1, 1000] {
            let (json, failure) = lines(csv.as_bytes(), size);
            assert_eq!(failure.as_deref(), Some(wrong), "{csv:?}");
            assert_eq!(
                json.contains("{\"a\":1}"),
                csv.starts_with("a\n1\n"),
                "{csv:?}"
            );
        }
    }
}

#[test]
fn a_record_has_a_maximum_size() {
    let mut endless = Csv::new(std::io::repeat(b'"').chain(std::io::empty()));
    endless.record_bytes_max = 1000;
    let failure = endless.read_to_end(&mut Vec::new()).err();
    assert_eq!(
        failure.map(|failure| failure.to_string()).as_deref(),
        Some("invalid CSV in line 1: the record is longer than 1000 bytes")
    );
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_lines_in_reads_of_any_size(
        csv in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b'\n'), Just(b'\r'), any::<u8>()], 0..64),
        size in 1..16_usize,
    ) {
        let (all, piece) = (lines(&csv, 1000), lines(&csv, size));
        prop_assert_eq!(&all, &piece);
        for line in all.0.lines().filter(|line| !line.is_empty() && !line.contains('\u{fffd}')) {
            prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{}", line);
        }
    }
}
