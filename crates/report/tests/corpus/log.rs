//! Any lines for a report, most of them near those of real logs: its numbers are JSON, its page has them, and nothing of the
//! log breaks out of it. Shared by the replay of the corpus and the fuzz target.

use core::fmt::Write as _;

use lastbyte_query::Input;
use lastbyte_report::comparison::{Comparison, Settings};

const KEYS: [&str; 16] = [
    "content_length",
    "ttlb",
    "client.handshake",
    "client.ttfb",
    "handshake-confirmed-msec",
    "num-packets.sent",
    "num-packets.lost",
    "cc.num-loss-episodes",
    "cc.cwnd-exiting-slow-start",
    "num-ptos",
    "seed",
    "num-rapid-start",
    "jumpstart.cwnd",
    "jumpstart.prev-rate",
    "num-jumpstart-applicable",
    "num-paced",
];

const VALUES: [&str; 24] = [
    "0",
    "1",
    "2.5",
    "200000",
    "399999.999",
    "1e6",
    "-1",
    "-0.0",
    "0.1",
    "462.7",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e-308",
    "4294967296",
    "null",
    "true",
    "false",
    "\"\"",
    "\"7\"",
    "[]",
    "{}",
    "\"<script>\"",
];

const ARMS: [&str; 8] = [
    "\"baseline\"",
    "\"a\"",
    "\"b\"",
    "\"</script>\"",
    "\"#{x}\\\"\"",
    "null",
    "3",
    "\"\\u0000\\ud800\"",
];

struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

/// Lines made as the bytes say.
fn lines(bytes: &[u8]) -> Vec<u8> {
    let mut choices = Choices(bytes);
    let mut text = String::new();
    while let Some(what) = choices.next() {
        let arm = ARMS[usize::from(what & 7)];
        let mut line = format!(
            "{{\"content_length\":300000,\"ttlb\":{}",
            100 + u32::from(what)
        );
        if what & 0x40 == 0 {
            let _ = write!(line, ",\"arm\":{arm}");
        } else {
            line += ",\"num-jumpstart-applicable\":1,\"num-paced\":1,\"jumpstart.prev-rate\":0";
            let _ = write!(
                line,
                ",\"num-rapid-start\":{},\"jumpstart.cwnd\":{}",
                what & 1,
                what & 2
            );
        }
        for _ in 0..what >> 3 & 7 {
            let (Some(key), Some(value)) = (choices.next(), choices.next()) else {
                break;
            };
            let value = if value < 128 {
                VALUES[usize::from(value) % VALUES.len()].to_owned()
            } else {
                u64::from(value).pow(u32::from(key >> 5)).to_string()
            };
            let _ = write!(line, ",\"{}\":{value}", KEYS[usize::from(key & 15)]);
        }
        if what & 0x80 != 0 {
            let _ = write!(line, ",\"site\":{arm},\"experiment\":{arm}");
        }
        text += &line;
        text += "}\n";
    }
    text.into_bytes()
}

/// The first byte says how the log is made: as it stands, or line by line.
pub(crate) fn play(bytes: &[u8]) {
    let Some((how, bytes)) = bytes.split_first() else {
        return;
    };
    let log = if how & 1 == 0 {
        lines(bytes)
    } else {
        bytes.to_vec()
    };
    let settings = Settings {
        replicates: 20,
        arm: (how & 2 != 0).then(|| "_[\"proto\"] || _[\"arm\"]".to_owned()),
        ..Settings::default()
    };
    let inputs = vec![Input::from_bytes("log", log)];
    match Comparison::read(inputs, settings) {
        Ok(comparison) => {
            let json = comparison.json();
            let numbers: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            assert!(numbers.is_object());
            assert!(!comparison.sentences().is_empty());
            for text in comparison.sentences() {
                assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
            }
            if how & 4 != 0 {
                let html = comparison.html();
                assert_eq!(
                    html.matches("<script").count(),
                    html.matches("</script").count()
                );
                assert!(!html.contains("<script>\""));
                for figure in comparison.figures() {
                    let print = figure.print("3in".parse().expect("a width"));
                    let svg = print.expect("it fits on a page").svg();
                    assert!(!svg.contains("NaN"));
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
