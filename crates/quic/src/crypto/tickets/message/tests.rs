#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use proptest::{collection::vec, prelude::*};

use super::*;

/// A message written by hand from RFC 8446 §4.6.1.
const MESSAGE: [u8; 30] = [
    4, 0, 0, 26, // NewSessionTicket
    0, 1, 0x51, 0x80, // a day
    1, 2, 3, 4, // age_add
    2, 0xaa, 0xbb, // nonce
    0, 3, b'a', b'b', b'c', // ticket
    0, 8, 0, 42, 0, 4, 0xff, 0xff, 0xff, 0xff, // early_data
];

#[test]
fn rfc8446_4_6_1_tickets_round_trip() {
    let read = NewSessionTicket::decode(&MESSAGE).unwrap();
    assert_eq!((read.lifetime_s, read.age_add), (86_400, 0x0102_0304));
    assert_eq!((read.nonce, read.ticket), (&[0xaa, 0xbb][..], &b"abc"[..]));
    assert_eq!(read.extensions, [0, 42, 0, 4, 255, 255, 255, 255]);
    assert_eq!(read.encode().unwrap(), MESSAGE);
    // An empty list of extensions.
    let plain = NewSessionTicket {
        extensions: &[],
        ..read
    };
    let encoded = plain.encode().unwrap();
    assert_eq!(NewSessionTicket::decode(&encoded), Some(plain));
    let overlong = NewSessionTicket {
        ticket: &vec![0; 65_536],
        ..read
    };
    assert_eq!(overlong.encode(), None);
}

#[test]
fn incomplete_messages_are_not_tickets() {
    for len in 0..MESSAGE.len() {
        let mut cut = MESSAGE[..len].to_vec();
        assert_eq!(NewSessionTicket::decode(&cut), None);
        // Nor with a header that matches the truncated length.
        if let Some(body) = len.checked_sub(HEADER_LEN) {
            cut[3] = body as u8;
            assert_eq!(NewSessionTicket::decode(&cut), None, "{len}");
        }
    }
    let mut longer = MESSAGE.to_vec();
    longer.push(0);
    longer[3] += 1;
    assert_eq!(NewSessionTicket::decode(&longer), None);
    let mut other = MESSAGE;
    other[0] = 24;
    assert_eq!(NewSessionTicket::decode(&other), None);
}

#[test]
fn an_endless_message_is_overlong() {
    let mut messages = Messages::default();
    messages.push(&[4, 0, 0xff]);
    assert!(!messages.is_overlong());
    messages.push(&[0xfc]);
    assert!(!messages.is_overlong(), "64 KiB with the header");
    let mut messages = Messages::default();
    messages.push(&[4, 0, 0xff, 0xfd]);
    assert!(messages.is_overlong());
    assert_eq!(messages.take_rest(), [4, 0, 0xff, 0xfd]);
}

proptest! {
    #[test]
    fn any_segmentation_gives_the_same_messages(
        bodies in vec((any::<u8>(), vec(any::<u8>(), 0..300)), 0..6),
        portion in 1..400usize,
        tail in vec(Just(0xee), 0..3),
    ) {
        let whole: Vec<Vec<u8>> = bodies
            .iter()
            .map(|(kind, body)| {
                let length = (body.len() as u32).to_be_bytes();
                [&[*kind], &length[1..], body].concat()
            })
            .collect();
        let mut messages = Messages::default();
        let mut out = Vec::new();
        for data in [whole.concat(), tail.clone()].concat().chunks(portion) {
            messages.push(data);
            while let Some(message) = messages.next() {
                out.push(message);
            }
        }
        prop_assert_eq!(out, whole);
        prop_assert_eq!(messages.take_rest(), tail);
    }
}
