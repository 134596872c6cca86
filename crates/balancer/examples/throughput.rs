//! Datagrams per second of CPU time: the balancer, and a relay that does nothing but receive and send, as the floor.
//!
//! ```text
//! cargo run --profile dist -p lastbyte-balancer --example throughput -- lb 2000000 16 8
//! ```
//!
//! The arguments are `lb` or `relay`, the number of datagrams to send, how many each client sends together (GSO), and the
//! number of clients. CPU time is that of the forwarding thread, system calls included. For instructions, run with
//! `valgrind --tool=callgrind --toggle-collect='*Worker::run*'` (or `'*relay*'`), for system calls with `strace -f -c`.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it measures, and prints the result"
)]

use std::{
    env, fs, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use lastbyte_balancer::{Counter, Fleet, FlowLimits, Forwarder, Retry, Server, Settings, Table};
use lastbyte_quic::cid::{QuicLb, QuicLbConfig};
use lastbyte_udp::{Batch, Ecn, Options, Socket, Transmit, Waiter};

/// Bytes per datagram.
const LEN: usize = 1200;
/// Datagrams in flight at most, so that none is lost.
const WINDOW: u64 = 512;

fn socket() -> Socket {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    Socket::bind(any, &Options::default()).expect("a socket")
}

/// What only receives and sends.
fn relay(listener: &Socket, to: SocketAddr, sent: &AtomicU64, is_over: &AtomicBool) {
    let (mut batch, upstream) = (Batch::new(), socket());
    let mut waiter = Waiter::new().expect("a waiter");
    while !is_over.load(Ordering::Relaxed) {
        let patience = Some(Duration::from_millis(100));
        waiter.wait(listener, false, patience).expect("it waits");
        listener.receive(&mut batch).expect("it receives");
        for received in batch.received() {
            let transmit = Transmit {
                remote: to,
                local: None,
                ecn: received.ecn,
                bytes: received.bytes,
                segment_len: received.segment_len,
            };
            upstream.send(&transmit).expect("sent");
            let datagrams = received.bytes.len().div_ceil(received.segment_len);
            sent.fetch_add(datagrams as u64, Ordering::Relaxed);
        }
    }
}

/// CPU time of the thread with this name, in hundredths of a second.
fn cpu_time(name: &str) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("tasks");
    let mut total = 0;
    for task in tasks.filter_map(Result::ok) {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        if let Some((start, rest)) = stat.split_once(") ")
            && start.ends_with(name)
        {
            let fields: Vec<&str> = rest.split(' ').collect();
            // User and system time are fields 14 and 15.
            total +=
                fields[11].parse::<u64>().unwrap_or(0) + fields[12].parse::<u64>().unwrap_or(0);
        }
    }
    total
}

/// Counts what arrives at the server.
fn start_sink(
    server: Socket,
    received: &Arc<AtomicU64>,
    is_over: &Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    let (received, is_over) = (Arc::clone(received), Arc::clone(is_over));
    let run = move || {
        let (mut batch, mut waiter) = (Batch::new(), Waiter::new().expect("a waiter"));
        while !is_over.load(Ordering::Relaxed) {
            let patience = Some(Duration::from_millis(100));
            waiter.wait(&server, false, patience).expect("it waits");
            server.receive(&mut batch).expect("it receives");
            let datagrams =
                |one: lastbyte_udp::Received<'_>| one.bytes.len().div_ceil(one.segment_len);
            let count: usize = batch.received().map(datagrams).sum();
            received.fetch_add(count as u64, Ordering::Relaxed);
        }
    };
    thread::Builder::new().name("sink".into()).spawn(run)
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let is_relay = words.first().is_some_and(|word| word == "relay");
    let wanted = number(1).unwrap_or(1_000_000);
    let (together, clients) = (number(2).unwrap_or(16), number(3).unwrap_or(8) as u8);
    let config = QuicLbConfig {
        rotation: 0,
        server_id_len: 2,
        nonce_len: 14,
        key: Some([9; 16]),
        encodes_length: false,
    };
    let server = socket();
    let received = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let fleet = Fleet {
        ids: vec![config.clone()],
        servers: vec![Server::new(1, server.local_address())],
        hash_key: [3; 16],
        retry: None,
    };
    let sink = start_sink(server, &received, &is_over);
    let mut forwarder = None;
    let mut floor = None;
    let listen = if is_relay {
        let (listener, to) = (socket(), fleet.servers[0].address);
        let address = listener.local_address();
        let (sent, is_over) = (Arc::new(AtomicU64::new(0)), Arc::clone(&is_over));
        let run = move || relay(&listener, to, &sent, &is_over);
        floor = Some(thread::Builder::new().name("lb-0".into()).spawn(run));
        address
    } else {
        let settings = Settings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            workers: 1,
            limits: FlowLimits::default(),
            key: [5; 16],
            retry: Retry::Never,
        };
        let table = Arc::new(Table::new(&fleet, |_| true).expect("valid"));
        let started = Forwarder::start(&settings, table).expect("started");
        let address = started.address();
        forwarder = Some(started);
        address
    };
    let codec = QuicLb::new(config).expect("valid");
    let senders: Vec<(Socket, Vec<u8>)> = (0..clients)
        .map(|client: u8| {
            let id = codec.encode(&[0, 1], &[client; 14], 0).expect("lengths");
            let mut packet = [&[0x40], id.as_slice()].concat();
            packet.resize(LEN, client);
            (socket(), packet.repeat(together as usize))
        })
        .collect();
    let mut sent = 0;
    'sending: loop {
        for (socket, bytes) in &senders {
            if sent >= wanted {
                break 'sending;
            }
            let mut patience = 0_u32;
            while sent > received.load(Ordering::Relaxed) + WINDOW && patience < 1_000_000 {
                patience += 1;
                thread::yield_now();
            }
            let transmit = Transmit {
                remote: listen,
                local: None,
                ecn: Ecn::NotEct,
                bytes,
                segment_len: LEN,
            };
            if socket.send(&transmit).is_ok() {
                sent += together;
            }
        }
    }
    let ticks = cpu_time("lb-0");
    let arrived = received.load(Ordering::Relaxed);
    let rate = arrived as f64 / (ticks.max(1) as f64 / 100.0);
    println!("sent {sent}, arrived {arrived}, CPU {ticks}0 ms, {rate:.0} datagrams/s");
    if let Some(forwarder) = &forwarder {
        let count = |counter| forwarder.count(counter);
        println!(
            "by connection ID {}, flows {}",
            count(Counter::ByConnectionId),
            count(Counter::FlowsOpened)
        );
    }
    is_over.store(true, Ordering::Relaxed);
    drop(forwarder);
    for thread in [Some(sink), floor].into_iter().flatten() {
        let _ = thread.expect("a thread").join();
    }
}
