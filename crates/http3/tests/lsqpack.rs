//! Field sections exchanged with ls-qpack, both ways: instructions that come late, acknowledgments now and then.
//! Needs Python and `pylsqpack` (`pip install pylsqpack`).

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use lastbyte_http3::{
    Fields,
    qpack::{Decoded, Decoder, EncodeOptions, Encoder, SectionLimits},
};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};

/// Answers one line with one line; bytes are in hexadecimal, none is a dash.
const PEER: &str = r#"
import sys
import pylsqpack
def hexed(data): return data.hex() or "-"
def bytes_of(text): return b"" if text == "-" else bytes.fromhex(text)
def fields_of(words): return [(bytes_of(n), bytes_of(v)) for n, v in zip(words[::2], words[1::2])]
def words_of(fields): return " ".join(hexed(part) for field in fields for part in field)
def answer_to(line):
    global encoder, decoder
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
    elif command == "instruct":
        answer = " ".join("%02x" % (stream // 4) for stream in decoder.feed_encoder(bytes_of(words[0])))
    elif command in ("decode", "resume"):
        try:
            if command == "decode":
                acknowledgments, fields = decoder.feed_header(int(words[0]), bytes_of(words[1]))
            else:
                acknowledgments, fields = decoder.resume_header(int(words[0]))
            answer = hexed(acknowledgments) + " " + words_of(fields)
        except pylsqpack.StreamBlocked:
            answer = ""
    return answer
for line in sys.stdin:
    try:
        print(answer_to(line), flush=True)
    except Exception as error:
        print("error", repr(error), flush=True)
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
        assert!(!answer.starts_with("error"), "{line}: {answer}");
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

/// One message each way, and what happens around it.
#[derive(Clone, Debug)]
struct Step {
    fields: Fields,
    /// The instructions of this and of the next step come after the section.
    is_late: bool,
    is_acknowledged: bool,
}

/// Fields as they come on a connection, much the same each time; and any others.
fn fields() -> impl Strategy<Value = Fields> {
    let known = select(vec![
        ":method",
        ":path",
        ":authority",
        "accept",
        "cookie",
        "user-agent",
        "x-a",
        "x-b",
        "authorization",
    ]);
    let name = prop_oneof![4 => known.prop_map(str::to_owned), 1 => "[a-z0-9-]{1,12}"];
    let repeated =
        (0..12_u8).prop_map(|number| format!("value {number} of some length").into_bytes());
    let value = prop_oneof![3 => repeated, 1 => vec(any::<u8>(), 0..60)];
    // ls-qpack takes no section without lines, and HTTP has none.
    vec((name, value), 1..12).prop_map(|lines| {
        lines.iter().fold(Fields::new(), |fields, (name, value)| {
            fields.with(name, value)
        })
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        (fields(), any::<bool>(), any::<bool>()).prop_map(|(fields, is_late, is_acknowledged)| {
            Step {
                fields,
                is_late,
                is_acknowledged,
            }
        });
    vec(step, 1..40)
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

/// A connection with the peer: both encoders and both decoders, with what is under way.
struct Exchange<'a> {
    peer: &'a mut Peer,
    encoder: Encoder,
    decoder: Decoder,
    /// Instructions that come late: ours, and the peer's.
    ours_held: Vec<u8>,
    theirs_held: Vec<u8>,
    /// What waits for them, by stream: at the peer, and here with the section.
    peer_waits: BTreeMap<u64, Fields>,
    we_wait: BTreeMap<u64, (Vec<u8>, Fields)>,
    acknowledgments: Vec<u8>,
}

impl<'a> Exchange<'a> {
    fn new(peer: &'a mut Peer, capacity: u32, blocked: u16) -> Self {
        let preface = peer.ask(&format!("begin {capacity} {blocked}")).remove(0);
        let mut encoder = Encoder::new(capacity, blocked);
        encoder.on_peer_settings(u64::from(capacity), u64::from(blocked));
        let mut decoder = Decoder::new(capacity, blocked);
        decoder.on_encoder_stream(&preface).expect("its capacity");
        Self {
            peer,
            encoder,
            decoder,
            ours_held: Vec::new(),
            theirs_held: Vec::new(),
            peer_waits: BTreeMap::new(),
            we_wait: BTreeMap::new(),
            acknowledgments: Vec::new(),
        }
    }

    /// The peer has decoded a section.
    fn peer_decoded(&mut self, answer: Vec<Vec<u8>>, fields: &Fields) {
        let mut answer = answer.into_iter();
        self.acknowledgments
            .extend(answer.next().expect("acknowledgments"));
        let lines = fields
            .iter()
            .flat_map(|line| [line.name.into(), line.value.to_vec()]);
        assert!(answer.eq(lines), "{fields:?}");
    }

    fn send(&mut self, stream: u64, step: &Step) {
        let options = EncodeOptions {
            instructions_max: 4096,
            may_block: true,
        };
        let mut section = Vec::new();
        self.encoder
            .encode(stream, step.fields.iter(), options, &mut section);
        self.ours_held.append(self.encoder.instructions());
        if !step.is_late {
            self.send_held();
        }
        let answer = self
            .peer
            .ask(&format!("decode {stream} {}", hexed(&section)));
        if answer.is_empty() {
            assert!(!self.ours_held.is_empty(), "it waits for nothing");
            self.peer_waits.insert(stream, step.fields.clone());
        } else {
            self.peer_decoded(answer, &step.fields);
        }
    }

    fn send_held(&mut self) {
        let held = std::mem::take(&mut self.ours_held);
        for unblocked in self.peer.ask(&format!("instruct {}", hexed(&held))) {
            let stream = u64::from(unblocked[0]) * 4;
            let fields = self.peer_waits.remove(&stream).expect("it waited");
            let answer = self.peer.ask(&format!("resume {stream}"));
            self.peer_decoded(answer, &fields);
        }
        assert!(self.peer_waits.is_empty(), "nothing is pending");
    }

    fn receive(&mut self, stream: u64, step: &Step) {
        let mut answer = self
            .peer
            .ask(&format!("encode {stream}{}", words(&step.fields)));
        let section = answer.pop().expect("a section");
        self.theirs_held
            .append(&mut answer.pop().expect("instructions"));
        if !step.is_late {
            self.receive_held();
        }
        let mut fields = Fields::new();
        match self.decoder.decode(stream, &section, LIMITS, &mut fields) {
            Ok(Decoded::Done) => assert_eq!(fields, step.fields),
            Ok(Decoded::Blocked) => {
                assert!(!self.theirs_held.is_empty(), "we wait for nothing");
                self.we_wait.insert(stream, (section, step.fields.clone()));
            }
            other => panic!("{other:?}"),
        }
    }

    fn receive_held(&mut self) {
        let held = std::mem::take(&mut self.theirs_held);
        self.decoder
            .on_encoder_stream(&held)
            .expect("its instructions");
        while let Some(stream) = self.decoder.next_unblocked() {
            let (section, expected) = self.we_wait.remove(&stream).expect("it waited");
            let mut fields = Fields::new();
            let outcome = self.decoder.decode(stream, &section, LIMITS, &mut fields);
            assert_eq!((outcome, &fields), (Ok(Decoded::Done), &expected));
        }
        assert!(self.we_wait.is_empty(), "nothing is pending");
    }

    fn acknowledge(&mut self) {
        self.encoder
            .on_decoder_stream(&self.acknowledgments)
            .expect("its acknowledgments");
        self.acknowledgments.clear();
        let ours = std::mem::take(self.decoder.instructions());
        self.peer.ask(&format!("acknowledge {}", hexed(&ours)));
    }
}

#[test]
fn arbitrary_fields_interoperate_with_ls_qpack() {
    let Some(peer) = Peer::start() else {
        return lastbyte_testkit::skip("no Python package `pylsqpack`");
    };
    let peer = RefCell::new(peer);
    let waited = Cell::new(0);
    let sizes = select(vec![0_u32, 64, 256, 4096, 1 << 16]);
    let blocked = select(vec![0_u16, 1, 16, 100]);
    TestRunner::default()
        .run(&(sizes, blocked, steps()), |(capacity, blocked, steps)| {
            let mut peer = peer.borrow_mut();
            let mut exchange = Exchange::new(&mut peer, capacity, blocked);
            for (stream, step) in (0..).step_by(4).zip(&steps) {
                exchange.send(stream, step);
                exchange.receive(stream, step);
                let waiting = exchange.peer_waits.len() + exchange.we_wait.len();
                waited.set(waited.get() + waiting);
                assert!(exchange.peer_waits.len() <= usize::from(blocked));
                if step.is_acknowledged {
                    exchange.acknowledge();
                }
            }
            exchange.send_held();
            exchange.receive_held();
            exchange.acknowledge();
            Ok(())
        })
        .expect("both say the same");
    // The tables were used, or no stream would have waited.
    assert!(waited.get() > 0);
}
