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
        let mut frames = Frames::default();
        let count: u64 = stream
            .chunks(len)
            .map(|part| frames.read(part).expect("two responses"))
            .sum();
        assert_eq!(count, 350, "pieces of {len} bytes");
    }
}

fn response(stream: u32, flags: u8) -> Vec<u8> {
    [
        &[0, 0, 1, HEADERS, flags],
        &stream.to_be_bytes()[..],
        &[0x88],
    ]
    .concat()
}

/// Interim responses, and the final one of each stream.
#[test]
fn each_request_permits_a_hundred_interim_responses() {
    let mut frames = Frames::default();
    let mut read = |stream: u32, flags: u8| frames.read(&response(stream, flags));
    for _ in 0..101 {
        assert!(read(1, 0).is_ok());
    }
    assert!(read(1, END_STREAM).is_ok(), "trailers");
    for _ in 0..202 {
        assert!(read(5, 0).is_ok(), "a third stream");
    }
    let error = read(5, 0).expect_err("one too many");
    let why = "more than 100 interim responses for each request";
    assert_eq!(error.to_string(), why);
}
