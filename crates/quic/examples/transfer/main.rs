//! What the transport costs, end to end: a stream of 1 GB from a server to a client, both in this process and on one core.
//!
//! ```text
//! cargo run --profile dist -p lastbyte-quic --example transfer
//! ```
//!
//! prints for each datagram size the nanoseconds a datagram at both ends, and beside them those of sealing, or opening, the
//! same bytes with the bare AEAD, measured in turns. Datagrams go in batches, as with segmentation offload; there are no
//! system calls in it. For instructions:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*::server_works*' target/dist/examples/transfer plain 1200 100MB
//! ```
//!
//! and the same with `client_works`. The plaintext twin of TLS leaves the AEAD out, which valgrind would not run as the
//! machine does.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program that measures reads the clock, and says what it found"
)]

mod pair;

use std::{
    hint::black_box,
    process::ExitCode,
    time::{Duration, Instant},
};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::pair::{End, Pair, Protection};

/// Bytes of a header and a tag, which are not sealed.
const HEADER_AND_TAG: usize = 11 + 16;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => {
            println!(
                "{:>12} {:>9} {:>9} {:>12} {:>12} {:>10} {:>10} {:>8} {:>8}",
                "protection",
                "datagram",
                "MB/s",
                "sender ns",
                "receiver ns",
                "seal ns",
                "open ns",
                "ratio",
                "ratio"
            );
            for protection in [Protection::Aes128Gcm, Protection::Plain] {
                for datagram in [1200, 1452, 9000] {
                    measure(protection, datagram, 1_000_000_000);
                }
            }
            ExitCode::SUCCESS
        }
        [protection, datagram, megabytes] => {
            let protection = match *protection {
                "aes-128-gcm" => Some(Protection::Aes128Gcm),
                "plain" => Some(Protection::Plain),
                _ => None,
            };
            let megabytes = megabytes.strip_suffix("MB").and_then(|n| n.parse().ok());
            match (protection, datagram.parse(), megabytes) {
                (Some(protection), Ok(datagram), Some(megabytes)) => {
                    count(protection, datagram, megabytes)
                }
                _ => usage(),
            }
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: transfer [aes-128-gcm|plain 1200..9000 MEGABYTESMB]");
    ExitCode::from(2)
}

/// For callgrind to look at, and nothing else.
#[inline(never)]
fn server_works(work: &mut dyn FnMut()) {
    black_box(End::Server);
    work();
}

/// For callgrind to look at, and nothing else.
#[inline(never)]
fn client_works(work: &mut dyn FnMut()) {
    black_box(End::Client);
    work();
}

fn count(protection: Protection, datagram: u16, megabytes: u64) -> ExitCode {
    let bytes = megabytes * 1_000_000;
    let mut pair = Pair::new(&protection.crypto(), datagram, "cubic", 0);
    pair.start(bytes);
    while pair.arrived() < bytes {
        pair.step(&mut |end, work| match end {
            End::Server => server_works(work),
            End::Client => client_works(work),
        });
    }
    let (server, client) = pair.packets_sent();
    println!("packets sent: {server} by the server, {client} by the client");
    ExitCode::SUCCESS
}

/// The bare AEAD, on payloads of packets of one size.
struct Bare {
    key: LessSafeKey,
    payload: Vec<u8>,
}

impl Bare {
    fn new(datagram: u16) -> Self {
        let key = UnboundKey::new(&AES_128_GCM, &[1; 16]).expect("16 bytes");
        Self {
            key: LessSafeKey::new(key),
            payload: vec![0; usize::from(datagram) - HEADER_AND_TAG],
        }
    }

    fn nonce() -> Nonce {
        Nonce::assume_unique_for_key([2; 12])
    }

    fn seal(&mut self) -> Duration {
        let before = Instant::now();
        for _ in 0..ROUND {
            let tag = self.key.seal_in_place_separate_tag(
                Self::nonce(),
                Aad::from([0; 11]),
                black_box(&mut self.payload),
            );
            let _ = black_box(tag.expect("it is sealed"));
        }
        before.elapsed()
    }

    fn open(&mut self) -> Duration {
        let mut sealed = self.payload.clone();
        let tag = self
            .key
            .seal_in_place_separate_tag(Self::nonce(), Aad::from([0; 11]), &mut sealed)
            .expect("it is sealed");
        sealed.extend_from_slice(tag.as_ref());
        let mut copies = vec![sealed; ROUND];
        let before = Instant::now();
        for copy in &mut copies {
            let opened = self
                .key
                .open_in_place(Self::nonce(), Aad::from([0; 11]), black_box(copy));
            black_box(opened.expect("it is authentic"));
        }
        before.elapsed()
    }
}

/// Datagrams of the bare AEAD at a time.
const ROUND: usize = 64;
/// Steps of the transfer between them.
const STEPS: u32 = 50;

fn measure(protection: Protection, datagram: u16, bytes: u64) {
    let mut pair = Pair::new(&protection.crypto(), datagram, "cubic", 0);
    let mut bare = Bare::new(datagram);
    pair.start(bytes);
    let (mut server, mut client) = (Duration::ZERO, Duration::ZERO);
    let (mut sealing, mut opening, mut rounds) = (Duration::ZERO, Duration::ZERO, 0u32);
    let mut steps = 0u32;
    while pair.arrived() < bytes {
        pair.step(&mut |end, work| {
            let before = Instant::now();
            work();
            *match end {
                End::Server => &mut server,
                End::Client => &mut client,
            } += before.elapsed();
        });
        steps += 1;
        if steps.is_multiple_of(STEPS) {
            sealing += bare.seal();
            opening += bare.open();
            rounds += 1;
        }
    }
    let (packets, _) = pair.packets_sent();
    let each = |time: Duration, count: f64| time.as_secs_f64() * 1e9 / count;
    let bare_count = f64::from(rounds.max(1)) * ROUND as f64;
    let (seal, open) = (each(sealing, bare_count), each(opening, bare_count));
    let (sender, receiver) = (each(server, packets as f64), each(client, packets as f64));
    println!(
        "{:>12} {datagram:>9} {:>9.0} {sender:>12.0} {receiver:>12.0} {seal:>10.0} {open:>10.0} {:>8.2} {:>8.2}",
        match protection {
            Protection::Aes128Gcm => "AES-128-GCM",
            Protection::Plain => "plain",
        },
        bytes as f64 / 1e6 / (server + client).as_secs_f64(),
        sender / seal,
        receiver / open,
    );
}
