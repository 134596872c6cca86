//! Field sections exchanged with ls-qpack, both ways, acknowledgments now and then: a compression that nobody here wrote.
//! Without Python and `pylsqpack` (`pip install pylsqpack`) the test says so and passes.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use lastbyte_http3::{
    Fields,
    qpack::{Decoded, Decoder, EncodeOptions, Encoder, SectionLimits},
};

/// Answers one line with one line; bytes are in hexadecimal, none is a dash.
const PEER: &str = r#"
import sys
import pylsqpack
def hexed(data): return data.hex() or "-"
def bytes_of(text): return b"" if text == "-" else bytes.fromhex(text)
def fields_of(words): return [(bytes_of(n), bytes_of(v)) for n, v in zip(words[::2], words[1::2])]
def words_of(fields): return " ".join(hexed(part) for field in fields for part in field)
for line in sys.stdin:
    command, *words = line.split()
    if command == "begin":
        encoder = pylsqpack.Encoder()
        answer = hexed(encoder.apply_settings(int(words[0]), int(words[1])))
        decoder = pylsqpack.Decoder(int(words[0]), int(words[1]))
    elif command == "encode":
        instructions, section = encoder.encode(int(words[0]), fields_of(words[1:]))
        answer = hexed(instructions) + " " + hexed(section)
    elif command == "acknowledge":
        encoder.feed_decoder(bytes_of(words[0]))
        answer = "-"
    elif command == "decode":
        decoder.feed_encoder(bytes_of(words[1]))
        acknowledgments, fields = decoder.feed_header(int(words[0]), bytes_of(words[2]))
        answer = hexed(acknowledgments) + " " + words_of(fields)
    print(answer, flush=True)
"#;

struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Option<Self> {
        let has_it = Command::new("python3")
            .args(["-c", "import pylsqpack"])
            .stderr(Stdio::null())
            .status();
        if !has_it.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut child = Command::new("python3")
            .args(["-c", PEER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        Some(Self {
            to: child.stdin.take()?,
            from: BufReader::new(child.stdout.take()?),
            child,
        })
    }

    fn ask(&mut self, line: &str) -> Vec<Vec<u8>> {
        writeln!(self.to, "{line}").expect("the peer listens");
        let mut answer = String::new();
        self.from.read_line(&mut answer).expect("the peer answers");
        assert!(!answer.is_empty(), "the peer fell silent at {line}");
        answer.split_whitespace().map(bytes_of).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bytes_of(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches('-').as_bytes();
    digits
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(pair, 16).expect("digits")
        })
        .collect()
}

fn hexed(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "-".to_owned();
    }
    bytes.iter().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

/// Heads as they come on a connection: much the same, and something else in each.
fn heads(count: u64, seed: u64) -> impl Iterator<Item = Fields> {
    let mut random = seed | 1;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % below
    };
    (0..count).map(move |number| {
        let mut fields = Fields::new();
        fields.push(":authority", format!("{}.example.com", next(3)));
        fields.push(
            ":path",
            format!("/{number}/{}", "x".repeat(next(40) as usize)),
        );
        fields.push("user-agent", "Mozilla/5.0 (X11; Linux x86_64)");
        for _ in 0..next(6) {
            let value = format!("value {} of some length", next(8));
            fields.push(&format!("x-name-{}", next(10)), value);
        }
        fields.push("cookie", format!("id={}", next(1000)));
        fields.push("accept", if next(2) == 0 { "*/*" } else { "text/html" });
        fields
    })
}

fn words(fields: &Fields) -> String {
    let word = |part: &[u8]| format!(" {}", hexed(part));
    fields
        .iter()
        .map(|line| word(line.name.as_bytes()) + &word(line.value))
        .collect()
}

const LIMITS: SectionLimits = SectionLimits {
    size: 1 << 16,
    fields: 100,
};

fn exchange(peer: &mut Peer, capacity: u32, blocked: u16) {
    let preface = peer.ask(&format!("begin {capacity} {blocked}")).remove(0);
    let mut encoder = Encoder::new(capacity, blocked);
    encoder.on_peer_settings(u64::from(capacity), u64::from(blocked));
    let mut decoder = Decoder::new(capacity, blocked);
    decoder.on_encoder_stream(&preface).expect("its capacity");
    let options = EncodeOptions {
        instructions_max: 4096,
        may_block: true,
    };
    let mut to_us = Vec::new();
    for (stream, fields) in (0..).step_by(4).zip(heads(300, u64::from(capacity))) {
        // From us to it.
        let mut section = Vec::new();
        encoder.encode(stream, fields.iter(), options, &mut section);
        let instructions = std::mem::take(encoder.instructions());
        let ask = format!(
            "decode {stream} {} {}",
            hexed(&instructions),
            hexed(&section)
        );
        let mut answer = peer.ask(&ask).into_iter();
        to_us.extend(answer.next().expect("acknowledgments"));
        assert!(
            answer.eq(fields
                .iter()
                .flat_map(|line| [line.name.into(), line.value.to_vec()]))
        );
        // And back.
        let answer = peer.ask(&format!("encode {stream}{}", words(&fields)));
        decoder
            .on_encoder_stream(&answer[0])
            .expect("its instructions");
        let mut got = Fields::new();
        let outcome = decoder.decode(stream, &answer[1], LIMITS, &mut got);
        assert_eq!((outcome, &got), (Ok(Decoded::Done), &fields));
        if stream % 12 == 0 {
            encoder
                .on_decoder_stream(&to_us)
                .expect("its acknowledgments");
            to_us.clear();
            let acknowledgments = std::mem::take(decoder.instructions());
            peer.ask(&format!("acknowledge {}", hexed(&acknowledgments)));
        }
    }
    assert_eq!(encoder.insert_count() > 0, capacity > 0);
}

#[test]
fn ls_qpack_and_we_read_each_other() {
    let Some(mut peer) = Peer::start() else {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: python3 or pylsqpack is not installed"
        );
        return;
    };
    for (capacity, blocked) in [(0, 0), (256, 0), (256, 16), (4096, 0), (4096, 100)] {
        exchange(&mut peer, capacity, blocked);
    }
}
