use super::*;

const CODES: [(u64, TransportError, &str); 18] = [
    (0x00, TransportError::NO_ERROR, "NO_ERROR"),
    (0x01, TransportError::INTERNAL_ERROR, "INTERNAL_ERROR"),
    (
        0x02,
        TransportError::CONNECTION_REFUSED,
        "CONNECTION_REFUSED",
    ),
    (
        0x03,
        TransportError::FLOW_CONTROL_ERROR,
        "FLOW_CONTROL_ERROR",
    ),
    (
        0x04,
        TransportError::STREAM_LIMIT_ERROR,
        "STREAM_LIMIT_ERROR",
    ),
    (
        0x05,
        TransportError::STREAM_STATE_ERROR,
        "STREAM_STATE_ERROR",
    ),
    (0x06, TransportError::FINAL_SIZE_ERROR, "FINAL_SIZE_ERROR"),
    (
        0x07,
        TransportError::FRAME_ENCODING_ERROR,
        "FRAME_ENCODING_ERROR",
    ),
    (
        0x08,
        TransportError::TRANSPORT_PARAMETER_ERROR,
        "TRANSPORT_PARAMETER_ERROR",
    ),
    (
        0x09,
        TransportError::CONNECTION_ID_LIMIT_ERROR,
        "CONNECTION_ID_LIMIT_ERROR",
    ),
    (
        0x0a,
        TransportError::PROTOCOL_VIOLATION,
        "PROTOCOL_VIOLATION",
    ),
    (0x0b, TransportError::INVALID_TOKEN, "INVALID_TOKEN"),
    (0x0c, TransportError::APPLICATION_ERROR, "APPLICATION_ERROR"),
    (
        0x0d,
        TransportError::CRYPTO_BUFFER_EXCEEDED,
        "CRYPTO_BUFFER_EXCEEDED",
    ),
    (0x0e, TransportError::KEY_UPDATE_ERROR, "KEY_UPDATE_ERROR"),
    (
        0x0f,
        TransportError::AEAD_LIMIT_REACHED,
        "AEAD_LIMIT_REACHED",
    ),
    (0x10, TransportError::NO_VIABLE_PATH, "NO_VIABLE_PATH"),
    (
        0x11,
        TransportError::VERSION_NEGOTIATION_ERROR,
        "VERSION_NEGOTIATION_ERROR",
    ),
];

#[test]
fn rfc9000_20_1_codes_and_names() {
    for (code, error, name) in CODES {
        assert_eq!(error.code().get(), code);
        assert_eq!(error.name(), Some(name));
        assert_eq!(error.to_string(), name);
        assert_eq!(error.tls_alert(), None);
    }
}

#[test]
fn rfc9001_4_8_tls_alerts_map_to_the_crypto_error_range() {
    let handshake_failure = TransportError::from_tls_alert(40);
    assert_eq!(handshake_failure.code().get(), 0x128);
    assert_eq!(handshake_failure.tls_alert(), Some(40));
    assert_eq!(handshake_failure.to_string(), "CRYPTO_ERROR(alert 40)");
    let last = TransportError::from(VarInt::from_u32(0x1ff));
    assert_eq!(last.tls_alert(), Some(255));
    let beyond = TransportError::from(VarInt::from_u32(0x200));
    assert_eq!((beyond.tls_alert(), beyond.name()), (None, None));
}

#[test]
fn unknown_codes_are_displayed_as_numbers() {
    let unknown = TransportError::from(VarInt::from_u32(0x12));
    assert_eq!(unknown.to_string(), "error 0x12");
    assert_eq!(TransportError::from(VarInt::MAX).name(), None);
}
