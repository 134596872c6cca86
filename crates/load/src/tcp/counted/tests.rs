use super::*;

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("small").to_be_bytes();
    [&len[1..], &[kind, 0, 0, 0, 0, 1], payload].concat()
}

/// Only payloads of HEADERS and CONTINUATION count, however the stream is cut.
#[test]
fn headers_are_counted_for_any_segmentation_of_the_stream() {
    let stream = [
        frame(4, &[0; 18]),
        frame(HEADERS, &[1; 300]),
        frame(CONTINUATION, &[9; 45]),
        frame(0, &vec![1; 70_000]),
        frame(HEADERS, &[]),
        frame(HEADERS, &[7; 5]),
    ]
    .concat();
    for len in [1, 2, 9, 10, 1000, stream.len()] {
        let mut counter = HeaderCounter::default();
        let count: u64 = stream.chunks(len).map(|part| counter.count(part)).sum();
        assert_eq!(count, 350, "pieces of {len} bytes");
    }
}
