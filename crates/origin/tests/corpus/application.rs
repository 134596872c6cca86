//! A hostile client, with the keys of its connection, against the whole HTTP/3 server: its handler answers at once, late, in
//! pieces, never, or with what cannot be sent, and the access log is on. What is kept for requests stays within its bounds, and
//! each request has one end. Shared by the replay of the corpus and the fuzz target.

use std::{task::Poll, time::Duration};

use lastbyte_http3::{Fields, Response};
use lastbyte_origin::{FullResponse, exchange::Exchange};
use lastbyte_testkit::Input;
use lastbyte_wire::{Direction, StreamId, VarInt};

use super::world::{DELAY, World, frame, head, poll_once};

const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "OPTIONS"];
const PATHS: [&str; 8] = [
    "/", "/large", "/late", "/hint", "/invalid", "/short", "/failing", "/task",
];
/// The streams that the bytes name: the last ones of the client.
const RECENT: usize = 16;

/// One client of the world.
pub(crate) struct Peer {
    index: usize,
    streams: Vec<StreamId>,
}

impl Peer {
    pub(crate) const fn new(index: usize) -> Self {
        Self {
            index,
            streams: Vec::new(),
        }
    }

    fn stream(&self, which: u8) -> Option<StreamId> {
        let recent = self.streams.len().min(RECENT);
        let from = self.streams.len() - recent;
        self.streams
            .get(from + usize::from(which) % recent.max(1))
            .copied()
    }

    /// Does the next thing that the bytes say.
    pub(crate) fn step(&mut self, world: &mut World, input: &mut Input<'_>) {
        let now = world.now;
        let what = input.byte();
        let client = &mut world.clients[self.index];
        match what & 15 {
            // A request, whole or without its end, many times.
            0..=3 => {
                let how = input.byte();
                let method = METHODS[usize::from(how & 3)];
                let path = PATHS[usize::from(how >> 2 & 7)];
                let count = if how & 0x80 == 0 { 1 } else { 20 };
                for _ in 0..count {
                    let Some(id) = client.open(Direction::Bidirectional) else {
                        break;
                    };
                    self.streams.push(id);
                    if how & 0x20 != 0 && what & 1 != 0 {
                        client.stop(now, id);
                    }
                    client.write(id, &head(method, path, &[]), method != "POST");
                    if how & 0x40 != 0 && what & 2 != 0 {
                        client.stop(now, id);
                    }
                }
            }
            4 => {
                if let Some(id) = self.stream(what >> 4) {
                    client.write(id, &frame(0, input.data()), input.byte() & 1 == 0);
                }
            }
            5 => {
                if let Some(id) = self.stream(what >> 4) {
                    client.write(id, input.data(), input.byte() & 1 == 0);
                }
            }
            6 => {
                if let Some(id) = self.stream(what >> 4) {
                    client.stop(now, id);
                }
            }
            7 => {
                if let (Some(id), Some(quic)) = (self.stream(what >> 4), client.quic()) {
                    let _ = quic.streams().reset(id, VarInt::from_u32(0x10c));
                }
            }
            // A control stream with settings, or what the bytes say.
            8 => {
                if let Some(id) = client.open(Direction::Unidirectional) {
                    let size = input.byte();
                    let settings = [0, 4, 2, 6, size & 63];
                    client.write(id, &settings, false);
                    client.write(id, input.data(), false);
                }
            }
            9 => client.reads = !client.reads,
            10..=12 => answer(world, input),
            13 => world.pass(Duration::from_millis(u64::from(input.byte()))),
            14 if what >> 4 == 0 => world.turn(),
            14 => {
                if let Some(id) = client.open(Direction::Bidirectional) {
                    self.streams.push(id);
                    let protocol = [(":protocol", "websocket"), ("sec-websocket-version", "13")];
                    client.write(id, &head("CONNECT", "/socket", &protocol), false);
                }
            }
            _ => world.pass(2 * DELAY),
        }
    }
}

/// A handler's task does one thing with its exchange.
fn answer(world: &mut World, input: &mut Input<'_>) {
    let how = input.byte();
    let taken = {
        let mut exchanges = world.scripted.exchanges.lock().expect("no panic");
        let len = exchanges.len();
        (len > 0).then(|| exchanges.swap_remove(usize::from(how >> 4) % len))
    };
    let Some(mut exchange) = taken else {
        return;
    };
    if progress(&mut exchange, how & 15, input) {
        let mut exchanges = world.scripted.exchanges.lock().expect("no panic");
        exchanges.push(exchange);
    } else {
        finish(exchange, how & 15);
    }
}

/// Does a step of a response. Returns whether others may follow.
fn progress(exchange: &mut Exchange, how: u8, input: &mut Input<'_>) -> bool {
    let outgoing = &mut exchange.outgoing;
    match how {
        0..=2 => {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            while let Poll::Ready(Some(_)) = exchange.incoming.poll_next(&mut context) {}
        }
        3 => {
            let _ = poll_once(outgoing.inform(Response::new(103)));
        }
        4 | 5 if !outgoing.has_begun() => {
            let length = input.byte();
            let mut response = Response::new([200, 204, 304, 200][usize::from(length & 3)]);
            if length & 4 != 0 {
                response = response.with("content-length", length.to_string());
            }
            if length & 8 != 0 {
                response = response.with("x", "a\nb");
            }
            let _ = poll_once(outgoing.begin(response));
        }
        6..=9 => {
            let len = usize::from(input.byte()) * 100;
            let _ = poll_once(outgoing.data(vec![b'x'; len].into()));
        }
        _ => return false,
    }
    true
}

/// Ends a response, or gives it up.
fn finish(exchange: Exchange, how: u8) {
    let outgoing = exchange.outgoing;
    match how {
        4 | 5 | 10 => {
            let _ = poll_once(outgoing.end(None));
        }
        11 => {
            let mut trailers = Fields::new();
            trailers.push("x-sum", "1");
            let _ = poll_once(outgoing.end(Some(trailers)));
        }
        12 => drop(poll_once(
            outgoing.respond(FullResponse::text(200, "whole")),
        )),
        _ => {}
    }
}

/// Does what the bytes say.
pub(crate) fn play(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(2);
    let mut peers = [0, 1].map(Peer::new);
    while !input.is_empty() {
        let which = usize::from(input.byte() & 1);
        peers[which].step(&mut world, &mut input);
        world.check();
    }
    world.end();
}
