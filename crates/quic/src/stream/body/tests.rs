use lastbyte_wire::VarInt;
use proptest::{collection::vec, prelude::*};

use super::*;

proptest! {
    #[test]
    fn a_body_is_the_concatenation_of_its_parts(
        parts in vec((any::<bool>(), vec(any::<u8>(), 0..50)), 0..20),
        reads in vec((0..1000_u64, 0..60_usize, 0..200_u64), 0..40),
    ) {
        let mut body = Body::default();
        let mut model = Vec::new();
        for (is_source, bytes) in parts {
            model.extend_from_slice(&bytes);
            if is_source {
                body.push(Box::new(bytes));
            } else {
                body.write(&bytes);
            }
        }
        prop_assert_eq!(body.end(), model.len() as u64);
        let mut released = 0;
        for (offset, len, release) in reads {
            let from = (offset as usize).clamp(released, model.len());
            let len = len.min(model.len() - from);
            let mut buffer = vec![0; len];
            body.read_at(from as u64, &mut buffer).expect("within the limits");
            prop_assert_eq!(&buffer[..], &model[from..from + len]);
            released = released.max((release as usize).min(model.len()));
            body.release(released as u64);
        }
        body.release(model.len() as u64);
        prop_assert_eq!(body.written(), 0);
        prop_assert!(body.parts() <= 1);
    }
}

struct Broken;

impl Source for Broken {
    fn len(&self) -> u64 {
        10
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), SourceError> {
        Err(SourceError {
            code: VarInt::from_u32(7),
        })
    }
}

#[test]
fn errors_of_a_source_are_returned() {
    let mut body = Body::default();
    body.write(b"head");
    body.push(Box::new(Broken));
    assert_eq!(body.read_at(0, &mut [0; 4]), Ok(()));
    assert!(body.read_at(0, &mut [0; 5]).is_err());
}

#[test]
fn an_acknowledged_body_keeps_only_a_long_buffer() {
    for (len, kept) in [(100, 0), (REUSED_MIN, 1)] {
        let mut body = Body::default();
        body.write(&vec![7; len]);
        body.release(len as u64 - 1);
        assert_eq!(body.parts(), 1);
        body.release(len as u64);
        assert_eq!(body.parts(), kept, "{len} bytes");
        body.write(b"more");
        let mut read = [0; 4];
        assert_eq!(body.read_at(len as u64, &mut read), Ok(()));
        assert_eq!(&read, b"more");
    }
}
