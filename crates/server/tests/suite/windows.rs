//! Receive windows for request bodies over HTTP/2 (RFC 9113 §5.2, §6.9), seen by a client whose path is long: what the server sends
//! reaches it after a round trip.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use lastbyte_http3::Request;
use lastbyte_server::{
    Handler, HandlerResponse, Peer, Settings,
    exchange::{Exchange, Piece},
};

use crate::{
    limits::{ACK, DATA, HEADERS, PING, SETTINGS, WINDOW_UPDATE, frame, http2, next_with_flags},
    serving::{Client, PATIENCE, Serving, settings},
};

/// Reads each body, and sends the length of each piece.
struct Reading(Sender<usize>);

impl Handler for Reading {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let read = self.0.clone();
        HandlerResponse::Task(Box::new(move |mut exchange| {
            let receive = async move {
                while let Some(Piece::Data(bytes)) = exchange.incoming.next().await {
                    let _ = read.send(bytes.len());
                }
            };
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            let runtime = runtime.expect("a runtime");
            let work = move || runtime.block_on(receive);
            thread::Builder::new().spawn(work).expect("a thread");
        }))
    }
}

/// Reads nothing, and keeps each exchange.
struct Stalling(Sender<Exchange>);

impl Handler for Stalling {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let kept = self.0.clone();
        HandlerResponse::Task(Box::new(move |exchange| drop(kept.send(exchange))))
    }
}

/// A client with a body that does not end, on stream 1.
struct Uploading {
    client: Client,
    /// What it may send on the connection and on the stream.
    credit: [u64; 2],
    /// `SETTINGS_INITIAL_WINDOW_SIZE` of the server.
    window: u64,
    sent: u64,
}

impl Uploading {
    fn start(serving: &Serving) -> Self {
        let mut client = http2(serving);
        let block = [&[0x83, 0x87, 0x84, 0x01, 9][..], b"localhost"].concat();
        client.send(&frame(HEADERS, 0x4, 1, &block));
        let mut uploading = Self {
            client,
            credit: [65_535, 65_535],
            window: 65_535,
            sent: 0,
        };
        uploading.round_trip();
        uploading
    }

    /// Sends all that it may. Returns how many bytes.
    fn send(&mut self) -> u64 {
        let most = self.credit[0].min(self.credit[1]);
        let mut left = most;
        while left > 0 {
            let len = left.min(16_384);
            let data = vec![0; len as usize];
            self.client.send(&frame(DATA, 0, 1, &data));
            left -= len;
        }
        self.credit = self.credit.map(|credit| credit - most);
        self.sent += most;
        most
    }

    /// Receives everything that the server had to say, and only then answers.
    fn round_trip(&mut self) {
        self.client.send(&frame(PING, 0, 0, b"client's"));
        let mut answers = Vec::new();
        loop {
            let next = next_with_flags(&mut self.client, |_| false);
            let (kind, flags, stream, payload) = next.expect("it stays open");
            match (kind, flags & ACK) {
                (PING, ACK) if payload == b"client's" => break,
                (PING, 0) => answers.extend(frame(PING, ACK, 0, &payload)),
                (SETTINGS, 0) => {
                    for setting in payload.chunks(6) {
                        if setting[..2] == [0, 4] {
                            let size = [setting[2], setting[3], setting[4], setting[5]];
                            let size = u64::from(u32::from_be_bytes(size));
                            self.credit[1] += size - self.window;
                            self.window = size;
                        }
                    }
                    answers.extend(frame(SETTINGS, ACK, 0, &[]));
                }
                (WINDOW_UPDATE, _) => {
                    let bytes = payload.try_into().expect("four bytes");
                    let index = usize::from(stream > 0);
                    self.credit[index] += u64::from(u32::from_be_bytes(bytes));
                }
                _ => {}
            }
        }
        self.client.send(&answers);
    }
}

fn wait_for(read: &Receiver<usize>, mut bytes: u64) {
    while bytes > 0 {
        bytes -= read.recv_timeout(PATIENCE).expect("it is read") as u64;
    }
}

/// Sends `len` bytes to a handler that reads them. Returns the round trips that it took, and the window at the end.
fn upload(change: impl FnOnce(&mut Settings), len: u64) -> (u32, u64) {
    let (sender, read) = channel();
    let mut all = settings(Reading(sender));
    change(&mut all);
    let serving = Serving::start(all);
    let mut uploading = Uploading::start(&serving);
    let mut round_trips = 0;
    while uploading.sent < len {
        let sent = uploading.send();
        wait_for(&read, sent);
        uploading.round_trip();
        round_trips += 1;
        assert!(round_trips < 1000, "{} of {len}", uploading.sent);
    }
    let window = uploading.window;
    drop(uploading);
    serving.end();
    (round_trips, window)
}

/// With a window of 256 KiB it takes 160 round trips.
#[test]
fn rfc9113_5_2_the_window_of_a_body_that_is_read_grows_with_what_arrives_in_a_round_trip() {
    let (round_trips, window) = upload(|_| {}, 40 << 20);
    assert!(round_trips <= 20, "{round_trips}");
    assert!((8 << 20..=16 << 20).contains(&window), "{window}");
}

#[test]
fn the_window_of_a_body_has_a_maximum_and_stays_within_the_budget() {
    let (_, window) = upload(|settings| settings.tcp.upload_window = 1 << 20, 10 << 20);
    assert_eq!(window, 1 << 20);
    let (_, window) = upload(|settings| settings.tcp.upload_window = 65_536, 1 << 20);
    assert_eq!(window, 65_536);
    let budget = lastbyte_quic::stream::WindowBudget::new(16 << 20);
    let of_all = budget.clone();
    let (_, window) = upload(move |settings| settings.window_budget = of_all, 10 << 20);
    let most = (256 << 10) + (1 << 20);
    assert!((1 << 20..=most).contains(&window), "a sixteenth: {window}");
    assert_eq!(budget.used(), 0, "its connection is closed");
}

#[test]
fn another_maximum_is_for_new_connections() {
    let (sender, read) = channel();
    let serving = Serving::start(settings(Reading(sender)));
    let grown = |uploading: &mut Uploading| {
        let mut round_trips = 0;
        while uploading.window <= 1 << 20 && round_trips < 20 {
            let sent = uploading.send();
            wait_for(&read, sent);
            uploading.round_trip();
            round_trips += 1;
        }
        uploading.window
    };
    let mut first = Uploading::start(&serving);
    serving.server.set_upload_window(1 << 20);
    let mut second = Uploading::start(&serving);
    assert!(grown(&mut first) > 1 << 20);
    assert_eq!(grown(&mut second), 1 << 20);
    drop((first, second));
    serving.end();
}

/// However often the client answers PINGs, and opens further bodies.
#[test]
fn the_windows_of_bodies_that_are_not_read_do_not_grow() {
    let (sender, kept) = channel();
    let serving = Serving::start(settings(Stalling(sender)));
    let mut uploading = Uploading::start(&serving);
    let initial = uploading.window;
    for _ in 0..20 {
        uploading.send();
        uploading.round_trip();
    }
    let exchange = kept.recv_timeout(PATIENCE).expect("a request");
    assert_eq!(uploading.window, initial);
    assert!(
        uploading.sent <= initial + (64 << 10) + 16_384,
        "{}",
        uploading.sent
    );
    drop(exchange);
    drop(uploading);
    serving.end();
}
