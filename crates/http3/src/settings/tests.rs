use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn settings_round_trip(
        max_field_section_size in 0u64..1 << 62,
        qpack_max_table_capacity in 0u64..1 << 62,
        qpack_blocked_streams in 0u64..1 << 62,
        enable_connect_protocol in any::<bool>(),
        grease in any::<u64>(),
    ) {
        let settings = Settings {
            max_field_section_size,
            qpack_max_table_capacity,
            qpack_blocked_streams,
            enable_connect_protocol,
        };
        prop_assert_eq!(Settings::from_bytes(&settings.to_bytes()), Some(settings));
        let mut greased = Vec::new();
        let grease = (crate::frame::reserved(grease), VarInt::ZERO);
        settings.encode(Some(grease), &mut greased);
        prop_assert_eq!(Settings::decode(&greased), Ok((settings, 1)));
        prop_assert_eq!(settings.check_remembered(&settings), Ok(()));
    }

    #[test]
    fn arbitrary_bytes_are_settings_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok((settings, _)) = Settings::decode(&bytes) {
            prop_assert_eq!(Settings::from_bytes(&settings.to_bytes()), Some(settings));
        }
    }
}
