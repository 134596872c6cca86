use proptest::prelude::*;

use super::*;

proptest! {
    /// RFC 9114 §7.1: a header may arrive in any number of pieces.
    #[test]
    fn frame_headers_are_parsed_from_fragments_of_any_size(
        frame_type in 0u64..1 << 62,
        len in 0u64..1 << 62,
        small in any::<bool>(),
        cuts in proptest::collection::vec(1usize..5, 1..20),
    ) {
        let (frame_type, len) = if small { (frame_type % 64, len % 64) } else { (frame_type, len) };
        let wanted = FrameHeader { frame_type: FrameType(frame_type), len };
        let mut bytes = Vec::new();
        FrameHeader::put(wanted.frame_type, len, &mut bytes);
        let header_len = bytes.len();
        bytes.extend_from_slice(b"payload");
        let mut partial = PartialHeader::default();
        let mut at = 0;
        let mut cuts = cuts.iter().cycle();
        loop {
            let end = (at + cuts.next().expect("endless")).min(bytes.len());
            let mut piece = &bytes[at..end];
            let header = partial.take(&mut piece);
            at = end - piece.len();
            if let Some(header) = header {
                prop_assert_eq!(header, wanted);
                prop_assert_eq!(at, header_len);
                prop_assert!(partial.is_empty());
                break;
            }
            prop_assert!(piece.is_empty());
        }
    }

    #[test]
    fn any_reserved_identifier_is_unknown(n in any::<u64>()) {
        let id = reserved(n).get();
        prop_assert_eq!((id - 0x21) % 0x1f, 0);
        prop_assert!(!FrameType(id).is_known());
    }
}
