use lastbyte_wire::{Reader, frame::Frame};
use proptest::{collection::vec, prelude::*};

use super::*;

/// The frames that fit into this many bytes: offset and data.
fn written(stream: &mut CryptoStream, room: usize) -> Vec<(u64, Vec<u8>)> {
    let mut buffer = vec![0; room];
    let mut writer = Writer::new(&mut buffer);
    stream.write_frames(&mut writer, &mut |_| {});
    let mut reader = Reader::new(writer.written());
    let mut frames = Vec::new();
    while let Ok(Frame::Crypto(frame)) = Frame::decode(&mut reader) {
        frames.push((frame.offset.get(), frame.data.to_vec()));
    }
    frames
}

fn read(
    stream: &mut CryptoStream,
    offset: u64,
    data: &[u8],
) -> Result<Vec<u8>, CryptoBufferExceeded> {
    let mut bytes = Vec::new();
    stream.on_received(offset, data, &mut |news| {
        bytes.extend_from_slice(news);
        Ok(())
    })?;
    Ok(bytes)
}

#[test]
fn lost_data_is_retransmitted_except_acknowledged_ranges() {
    let mut stream = CryptoStream::default();
    stream.outgoing().extend(0..100);
    assert_eq!(written(&mut stream, 1000).len(), 1);
    assert!(!stream.wants_to_send());
    stream.on_acked(20, 10);
    stream.on_lost(0, 50);
    let offsets: Vec<(u64, usize)> = written(&mut stream, 1000)
        .into_iter()
        .map(|(offset, data)| (offset, data.len()))
        .collect();
    assert_eq!(offsets, [(0, 20), (30, 20)]);
    stream.on_acked(0, 60);
    stream.send_again();
    let offsets: Vec<u64> = written(&mut stream, 1000)
        .into_iter()
        .map(|(offset, _)| offset)
        .collect();
    assert_eq!(offsets, [60]);
}

#[test]
fn rfc9000_7_5_data_too_far_ahead_is_an_error() {
    let mut stream = CryptoStream::default();
    assert_eq!(read(&mut stream, RECEIVE_MAX - 1, &[1]), Ok(vec![]));
    assert_eq!(
        read(&mut stream, RECEIVE_MAX, &[1]),
        Err(CryptoBufferExceeded)
    );
    assert_eq!(read(&mut stream, 0, &[7, 8]), Ok(vec![7, 8]));
    assert_eq!(
        read(&mut stream, RECEIVE_MAX, &[1]),
        Ok(vec![]),
        "two bytes were read"
    );
}

#[test]
fn pieces_out_of_order_are_bounded_in_number() {
    let mut stream = CryptoStream::default();
    let refused = (1..1000).find(|index| read(&mut stream, index * 2, &[1]).is_err());
    assert_eq!(refused, Some(PIECES_MAX as u64 + 1));
}

/// Pieces that overlap count as often as they are kept.
#[test]
fn rfc9000_7_5_buffered_crypto_data_is_bounded_even_if_it_overlaps() {
    let mut receiver = CryptoStream::default();
    let piece = [0; 1000];
    let kept = (1..=PIECES_MAX as u64).take_while(|at| read(&mut receiver, *at, &piece).is_ok());
    assert_eq!(kept.count() as u64, RECEIVE_MAX / 1000);
    assert!(receiver.held <= RECEIVE_MAX);
    read(&mut receiver, 0, &[0]).expect("in bounds");
    assert_eq!(receiver.held, 0, "all of it was read");
}

proptest! {
    /// Whatever is lost, doubled and reordered, the other side reads what was written, once.
    #[test]
    fn written_data_is_read_back(
        len in 1_usize..3000,
        // Of smaller frames more than are kept could come in the wrong order.
        rooms in vec(64_usize..400, 1..50),
        mut fates in vec(0_u8..4, 1..200),
    ) {
        fates.push(3); // A path that loses all carries nothing.
        let data: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
        let mut sender = CryptoStream::default();
        sender.outgoing().extend_from_slice(&data);
        let mut receiver = CryptoStream::default();
        let (mut rooms, mut fates) = (rooms.iter().cycle(), fates.iter().cycle());
        let mut bytes = Vec::new();
        let mut delayed: Vec<(u64, Vec<u8>)> = Vec::new();
        for _ in 0..20_000 {
            if bytes.len() == len {
                break;
            }
            let frames = written(&mut sender, *rooms.next().expect("cycles"));
            if frames.is_empty() {
                // All is on its way: what is delayed comes, and a probe goes.
                for (offset, piece) in delayed.drain(..).rev() {
                    bytes.extend(read(&mut receiver, offset, &piece).expect("in bounds"));
                }
                sender.send_again();
            }
            for (offset, piece) in frames {
                match fates.next().expect("cycles") {
                    0 => sender.on_lost(offset, piece.len() as u64),
                    1 => delayed.push((offset, piece)),
                    2 => {
                        bytes.extend(read(&mut receiver, offset, &piece).expect("in bounds"));
                        bytes.extend(read(&mut receiver, offset, &piece).expect("in bounds"));
                    }
                    _ => {
                        bytes.extend(read(&mut receiver, offset, &piece).expect("in bounds"));
                        sender.on_acked(offset, piece.len() as u64);
                    }
                }
            }
        }
        prop_assert_eq!(bytes, data);
    }
}
