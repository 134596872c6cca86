//! Floods of frames over HTTP/2 (RFC 9113 §10.5): what ends a connection, and how soon. h2 has these limits; an update must not
//! lose them.

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_http3::Request;
use lastbyte_server::{Handler, HandlerResponse, Peer, Site, exchange::Exchange};

use crate::{
    interim::{status, until_end},
    limits::{
        ACK, DATA, GOAWAY, HEADERS, PING, SETTINGS, WINDOW_UPDATE, frame, get, http2,
        next_with_flags,
    },
    serving::{Serving, settings},
};

const PRIORITY: u8 = 2;
const CONTINUATION: u8 = 9;
/// Error codes (RFC 9113 §7): of a frame that is never valid, and of a flood.
const PROTOCOL_ERROR: [u8; 4] = [0, 0, 0, 1];
const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];

/// Never responds, and never reads a body.
#[derive(Default)]
struct Silent(Arc<Mutex<Vec<Exchange>>>);

impl Handler for Silent {
    fn handle(&self, _: &Request, _: &Peer) -> HandlerResponse {
        let kept = Arc::clone(&self.0);
        HandlerResponse::Task(Box::new(move |exchange| {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(exchange);
        }))
    }
}

/// `POST /` without the end of its stream.
fn post(stream: u32) -> Vec<u8> {
    let block = [&[0x83, 0x87, 0x84, 0x01, 9][..], b"localhost"].concat();
    frame(HEADERS, 0x4, stream, &block)
}

/// A flood with which the server ends the connection, after this many frames at most.
fn is_ended(most: u32, first: &[u8], next: impl FnMut(u32) -> Vec<u8>) {
    is_ended_with(ENHANCE_YOUR_CALM, most, first, next);
}

fn is_ended_with(code: [u8; 4], most: u32, first: &[u8], next: impl FnMut(u32) -> Vec<u8>) {
    let serving = Serving::start(settings(Silent::default()));
    let mut client = http2(&serving);
    client.send(&frame(SETTINGS, ACK, 0, &[]));
    client.send(first);
    for bytes in (0..most).map(next) {
        // It may be closed already.
        if client.stream.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = client.stream.flush();
    let mut frames = std::iter::from_fn(|| next_with_flags(&mut client, |_| false));
    // Closed without it if too many responses were cancelled.
    if let Some((.., reason)) = frames.find(|(kind, ..)| *kind == GOAWAY) {
        assert_eq!(reason[4..8], code, "{reason:?}");
    }
    drop(client);
    serving.end();
}

/// `HEADERS` whose block goes on.
fn open_block() -> Vec<u8> {
    frame(HEADERS, 0, 1, &[0x83, 0x87, 0x84])
}

#[test]
fn rfc9113_6_10_empty_continuations_close_the_connection() {
    is_ended(4000, &open_block(), |_| frame(CONTINUATION, 0, 1, &[]));
}

#[test]
fn rfc9113_6_10_continuations_with_fields_close_the_connection() {
    let field = [&[0, 1, b'a', 100][..], &[b'b'; 100]].concat();
    is_ended(4000, &open_block(), |_| frame(CONTINUATION, 0, 1, &field));
}

/// A field of the dynamic table, referred to by single bytes (RFC 7541 §2.3).
#[test]
fn rfc7541_7_3_references_to_a_large_field_close_the_connection() {
    let mut block = vec![0x83, 0x87, 0x84, 0x40, 1, b'a', 0x7f, 0xbd, 0x1d];
    block.extend([b'b'; 3900]);
    let first = frame(HEADERS, 0x5, 1, &block);
    let block = [&[0x83, 0x87, 0x84][..], &[0xbe; 16_000]].concat();
    is_ended(300, &first, |index| {
        frame(HEADERS, 0x5, 3 + 2 * index, &block)
    });
}

#[test]
fn rfc9113_6_1_empty_data_that_is_not_read_closes_the_connection() {
    is_ended(10_000, &post(1), |_| frame(DATA, 0, 1, &[]));
}

#[test]
fn rfc9113_6_1_padding_that_is_not_read_closes_the_connection() {
    let padding = [&[255][..], &[0; 255]].concat();
    is_ended(10_000, &post(1), |_| frame(DATA, 0x8, 1, &padding));
}

#[test]
fn rfc9113_6_1_single_bytes_that_are_not_read_close_the_connection() {
    is_ended(10_000, &post(1), |_| frame(DATA, 0, 1, b"x"));
}

/// A request on each stream, and a frame for which the server resets it ("made you reset").
fn reset_by(offence: fn(u32) -> Vec<u8>) -> impl FnMut(u32) -> Vec<u8> {
    move |index| {
        let stream = 1 + 2 * index;
        [get(stream, "/"), offence(stream)].concat()
    }
}

#[test]
fn rfc9113_6_9_1_window_overflows_close_the_connection() {
    let overflow = |stream| frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff]);
    is_ended(2000, &[], reset_by(overflow));
}

#[test]
fn rfc9113_5_3_1_streams_that_depend_on_themselves_close_the_connection() {
    let circle = |stream: u32| {
        let priority = [&stream.to_be_bytes()[..], &[0]].concat();
        frame(PRIORITY, 0, stream, &priority)
    };
    is_ended(2000, &[], reset_by(circle));
}

/// The first of these ends the connection.
#[test]
fn rfc9113_10_5_frames_that_are_never_valid_close_the_connection() {
    let offences: [fn(u32) -> Vec<u8>; 3] = [
        |stream| frame(WINDOW_UPDATE, 0, stream, &[0; 4]),
        |stream| frame(DATA, 0, stream, b"x"),
        |stream| frame(PRIORITY, 0, stream, &[0; 4]),
    ];
    for offence in offences {
        is_ended_with(PROTOCOL_ERROR, 1, &[], reset_by(offence));
    }
}

/// Each of these frames is answered at once or ignored, and none is kept.
#[test]
fn rfc9113_10_5_settings_pings_and_priorities_are_answered_or_ignored() {
    let serving = Serving::site(Site::generated());
    let mut client = http2(&serving);
    let answers = [(SETTINGS, 0, 0, vec![]), (PING, 0, 0, vec![0; 8])];
    for (kind, flags, stream, payload) in answers {
        for _ in 0..100 {
            client.send(&frame(kind, flags, stream, &payload).repeat(100));
            let mut acknowledged = 0;
            while acknowledged < 100 {
                let (kind_of_next, flags, ..) =
                    next_with_flags(&mut client, |_| true).expect("it stays open");
                acknowledged += u32::from(kind_of_next == kind && flags == ACK);
            }
        }
    }
    client.send(&frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 0]).repeat(10_000));
    client.send(&get(5, "/0"));
    assert_eq!(status(&until_end(&mut client, 5)[0].payload), 200);
    drop(client);
    serving.end();
}

/// The table of the encoder does not grow with it (RFC 7541 §4.2).
#[test]
fn rfc9113_6_5_2_the_largest_header_table_is_not_used() {
    let serving = Serving::site(Site::generated());
    let mut client = http2(&serving);
    client.send(&frame(SETTINGS, 0, 0, &[0, 1, 0xff, 0xff, 0xff, 0xff]));
    client.send(&get(1, "/0"));
    // Not preceded by an update of the size of the table, which begins with 0b001.
    assert_eq!(status(&until_end(&mut client, 1)[0].payload), 200);
    drop(client);
    serving.end();
}
