use lastbyte_wire::Direction;

use super::*;
use crate::Config;

fn id() -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, 0).expect("small")
}

fn shared() -> Shared {
    Shared::new(Side::Server, &Config::default())
}

/// A message whose header has arrived, with a body of this announced length.
fn in_body(content_length: Option<u64>) -> Receiving {
    Receiving {
        expects: Expects::Body,
        content_length,
        ..Receiving::default()
    }
}

/// A DATA frame of five bytes.
const DATA: &[u8] = &[0, 5, b'h', b'e', b'l', b'l', b'o'];

#[test]
fn rfc9114_4_1_data_before_headers_is_a_connection_error() {
    let mut receiving = Receiving::default();
    let taken = receiving.take(id(), DATA, None, &mut shared());
    let Err(ReceiveError::Connection(error)) = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(error.code, Code::FRAME_UNEXPECTED);
}

#[test]
fn unread_body_is_reported_once_until_it_is_read() {
    let (mut receiving, mut shared) = (in_body(None), shared());
    assert_eq!(receiving.take(id(), DATA, None, &mut shared), Ok(2));
    assert!(receiving.take_unreported());
    let rest = &DATA[2..];
    assert_eq!(receiving.take(id(), rest, None, &mut shared), Ok(0));
    assert!(!receiving.take_unreported());
    // The application reads a part of it.
    receiving.start_read();
    let mut two = |bytes: &[u8]| bytes.len().min(2);
    let taken = receiving.take(id(), rest, Some(&mut two), &mut shared);
    assert_eq!(taken, Ok(2));
    assert!(!receiving.take_unreported());
    receiving.end_read();
    let taken = receiving.take(id(), &rest[2..], None, &mut shared);
    assert_eq!((taken, receiving.take_unreported()), (Ok(0), true));
}

#[test]
fn rfc9114_4_1_2_the_body_length_must_match_content_length() {
    let mut all = |bytes: &[u8]| bytes.len();
    let (mut receiving, mut shared) = (in_body(Some(4)), shared());
    let taken = receiving.take(id(), DATA, Some(&mut all), &mut shared);
    assert!(matches!(taken, Err(ReceiveError::Stream(_))), "{taken:?}");
    let mut receiving = in_body(Some(6));
    let taken = receiving.take(id(), DATA, Some(&mut all), &mut shared);
    assert_eq!(taken, Ok(7));
    receiving.set_end();
    assert!(receiving.is_at_end());
    let ended = receiving.on_end(id(), &mut shared);
    assert!(matches!(ended, Err(ReceiveError::Stream(_))), "{ended:?}");
    let mut receiving = in_body(Some(5));
    let taken = receiving.take(id(), DATA, Some(&mut all), &mut shared);
    assert_eq!(taken, Ok(7));
    assert_eq!(receiving.on_end(id(), &mut shared), Ok(()));
    assert!(receiving.is_over());
}

#[test]
fn giving_up_takes_effect_once() {
    let mut receiving = in_body(None);
    assert!(receiving.is_in_body());
    assert!(receiving.give_up());
    assert!(!receiving.give_up());
    receiving.set_end();
    assert!(receiving.is_over() && !receiving.is_at_end() && !receiving.is_in_body());
}
