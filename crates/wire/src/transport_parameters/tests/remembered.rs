//! 0-RTT: the remembered parameters, and the limits that must not be reduced.

use super::{super::*, Kind, id};
use crate::TransportError;

#[test]
fn rfc9000_7_4_1_parameters_remembered_for_0_rtt() {
    let remembered = TransportParameters {
        max_idle_timeout_ms: VarInt::from_u32(1),
        max_udp_payload_size: VarInt::from_u32(1400),
        disable_active_migration: true,
        grease_quic_bit: true,
        ..TransportParameters::default()
    };
    let all = TransportParameters {
        ack_delay_exponent: 4,
        max_ack_delay_ms: VarInt::from_u32(26),
        initial_source_connection_id: Some(id(&[1])),
        original_destination_connection_id: Some(id(&[1])),
        retry_source_connection_id: Some(id(&[1])),
        stateless_reset_token: Some(StatelessResetToken::new([1; 16])),
        preferred_address: Some(Box::new(PreferredAddress {
            ipv4: None,
            ipv6: None,
            connection_id: id(&[1]),
            reset_token: StatelessResetToken::new([1; 16]),
        })),
        min_ack_delay_us: Some(VarInt::from_u32(1)),
        ..remembered.clone()
    };
    assert_eq!(all.remembered(), remembered);
}

#[test]
fn rfc9000_7_4_1_reduced_limits_are_protocol_violations() {
    type Reduce = fn(&mut TransportParameters);
    let many = StreamCount::new(10).expect("in range");
    let old = TransportParameters {
        initial_max_data: VarInt::from_u32(10),
        initial_max_stream_data_bidi_local: VarInt::from_u32(10),
        initial_max_stream_data_bidi_remote: VarInt::from_u32(10),
        initial_max_stream_data_uni: VarInt::from_u32(10),
        initial_max_streams_bidi: many,
        initial_max_streams_uni: many,
        active_connection_id_limit: VarInt::from_u32(4),
        ..TransportParameters::default()
    };
    assert_eq!(old.remembered().check_not_reduced(&old), Ok(()));
    let reductions: [(ParameterId, Reduce); 7] = [
        (ParameterId::INITIAL_MAX_DATA, |p| {
            p.initial_max_data = VarInt::from_u32(9);
        }),
        (ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, |p| {
            p.initial_max_stream_data_bidi_local = VarInt::ZERO;
        }),
        (ParameterId::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, |p| {
            p.initial_max_stream_data_bidi_remote = VarInt::ZERO;
        }),
        (ParameterId::INITIAL_MAX_STREAM_DATA_UNI, |p| {
            p.initial_max_stream_data_uni = VarInt::ZERO;
        }),
        (ParameterId::INITIAL_MAX_STREAMS_BIDI, |p| {
            p.initial_max_streams_bidi = StreamCount::ZERO;
        }),
        (ParameterId::INITIAL_MAX_STREAMS_UNI, |p| {
            p.initial_max_streams_uni = StreamCount::ZERO;
        }),
        (ParameterId::ACTIVE_CONNECTION_ID_LIMIT, |p| {
            p.active_connection_id_limit = VarInt::from_u32(3);
        }),
    ];
    for (id, reduce) in reductions {
        let mut new = old.clone();
        reduce(&mut new);
        let error = old
            .remembered()
            .check_not_reduced(&new)
            .expect_err("is reduced");
        assert_eq!((error.kind, error.id), (Kind::Reduced, Some(id)));
        assert_eq!(error.transport_error(), TransportError::PROTOCOL_VIOLATION);
        assert_eq!(new.check_not_reduced(&old), Ok(()));
    }
}
