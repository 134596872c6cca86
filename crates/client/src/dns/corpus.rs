//! Checks for arbitrary answers of a DNS server, most of them well-formed: decoding is deterministic, and the result is
//! bounded. Shared by the replay of the corpus and the fuzz target.

use super::message::{Kind, RECORDS_MAX, answer, query};

const NAME: &str = "www.example.com";

/// Takes `len` bytes off the front, or all if there are fewer.
fn take<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    taken
}

fn byte(bytes: &mut &[u8]) -> u8 {
    take(bytes, 1).first().copied().unwrap_or_default()
}

/// Appends a name: the queried one, another one, an arbitrary compression pointer, or arbitrary bytes.
fn put_name(bytes: &mut &[u8], message: &mut Vec<u8>) {
    match byte(bytes) % 6 {
        0..=2 => message.extend([0xc0, 12]),
        3 => message.extend(b"\x05other\x07example\0"),
        4 => message.extend([0xc0 | byte(bytes) & 0x3f, byte(bytes)]),
        _ => {
            let len = usize::from(byte(bytes) & 31);
            message.extend(take(bytes, len));
        }
    }
}

/// Appends a record: an address, an alias, a service, or any other.
fn put_record(bytes: &mut &[u8], message: &mut Vec<u8>) {
    put_name(bytes, message);
    let kind = byte(bytes) % 8;
    let number: u16 = match kind {
        0 => 1,
        1 => 28,
        2 => 5,
        7 => u16::from(byte(bytes)),
        _ => 65,
    };
    message.extend(number.to_be_bytes());
    message.extend([0, 1, 0, 0, 0, 60, 0, 0]);
    let start = message.len();
    match kind {
        0 => message.extend(take(bytes, 4)),
        1 => message.extend(take(bytes, 16)),
        2 => put_name(bytes, message),
        3..=5 => {
            message.extend([0, byte(bytes)]);
            put_name(bytes, message);
            for _ in 0..byte(bytes) % 5 {
                message.extend([0, byte(bytes) % 9]);
                let len = usize::from(byte(bytes) & 31);
                let value = take(bytes, len);
                message.extend([0, value.len() as u8]);
                message.extend(value);
            }
        }
        _ => {
            let len = usize::from(byte(bytes));
            message.extend(take(bytes, len));
        }
    }
    // In some records the length is wrong.
    let len = (message.len() - start) as u16;
    let len = if byte(bytes) == 255 { len ^ 1 } else { len };
    message[start - 2..start].copy_from_slice(&len.to_be_bytes());
}

/// Builds an answer from the bytes, decodes it, and checks the result.
pub(super) fn play(bytes: &[u8]) {
    let mut bytes = bytes;
    let control = byte(&mut bytes);
    let kind = [Kind::A, Kind::Aaaa, Kind::Https, Kind::Https][usize::from(control & 3)];
    let message = if control & 0x80 == 0 {
        let mut message = query(7, NAME, kind).expect("a name");
        // Remove the additional section, and mark the message as an answer.
        message.truncate(12 + NAME.len() + 2 + 4);
        message[2] |= 0x80;
        message[3] = control >> 2 & 3;
        message[10..12].fill(0);
        let count = byte(&mut bytes) % 32;
        message[7] = count;
        for _ in 0..count {
            put_record(&mut bytes, &mut message);
        }
        message
    } else {
        bytes.to_vec()
    };
    let read = answer(&message, 7, NAME, kind);
    assert_eq!(read, answer(&message, 7, NAME, kind));
    // An answer to another query is not accepted.
    assert!(answer(&message, 8, NAME, kind).is_err());
    let Ok(read) = read else { return };
    assert!(read.addresses.len() <= RECORDS_MAX);
    assert!(read.services.len() <= RECORDS_MAX);
    assert!(read.services.is_sorted_by_key(|service| service.priority));
    for service in &read.services {
        assert!(service.port != Some(0));
        assert!(service.has_quic() || service.has_tcp());
        let targets = service.target.iter().chain(&read.alias);
        for target in targets {
            assert!(!target.is_empty() && !target.ends_with('.'), "{target}");
            let is_host = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
            assert!(target.bytes().all(is_host), "{target}");
        }
    }
}
