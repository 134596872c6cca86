//! Property tests: encoded parameters decode to the same value, and arbitrary input never panics.

use core::net::{SocketAddrV4, SocketAddrV6};

use proptest::prelude::*;

use super::{super::*, Kind, id};
use crate::{BufferFull, Encode, Side, Writer, packet::VersionNumber};

fn integer() -> impl Strategy<Value = VarInt> {
    (0..=VarInt::MAX.get(), 0..62)
        .prop_map(|(value, shift)| VarInt::new(value >> shift).expect("in range"))
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 1..=20).prop_map(|bytes| id(&bytes))
}

fn preferred_address() -> impl Strategy<Value = PreferredAddress> {
    let ipv4 =
        (any::<[u8; 4]>(), 1_u16..).prop_map(|(ip, port)| SocketAddrV4::new(ip.into(), port));
    let ipv6 = (any::<[u8; 16]>(), 1_u16..)
        .prop_map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0));
    let token = any::<[u8; 16]>().prop_map(StatelessResetToken::new);
    (
        prop::option::of(ipv4),
        prop::option::of(ipv6),
        connection_id(),
        token,
    )
        .prop_map(
            |(ipv4, ipv6, connection_id, reset_token)| PreferredAddress {
                ipv4,
                ipv6,
                connection_id,
                reset_token,
            },
        )
}

prop_compose! {
    fn parameters()(
        integers in prop::array::uniform6(integer()),
        counts in (0..=1_u64 << 60, 0..=1_u64 << 60),
        max_ack_delay_ms in 0_u32..1 << 14,
        small in (1200_u32.., 2_u32.., 0_u8..=20, any::<[bool; 2]>()),
        ids in prop::array::uniform3(prop::option::of(connection_id())),
        token in prop::option::of(any::<[u8; 16]>()),
        preferred_address in prop::option::of(preferred_address()),
        versions in prop::option::of(prop::collection::vec(1_u32.., 1..6)),
        has_min_ack_delay in any::<bool>(),
    ) -> TransportParameters {
        let [idle, data, local, remote, uni, min_ack_delay] = integers;
        let versions: Option<Vec<_>> = versions.map(|list| list.into_iter().map(VersionNumber::new).collect());
        TransportParameters {
            original_destination_connection_id: ids[0],
            max_idle_timeout_ms: idle,
            stateless_reset_token: token.map(StatelessResetToken::new),
            max_udp_payload_size: VarInt::from_u32(small.0),
            initial_max_data: data,
            initial_max_stream_data_bidi_local: local,
            initial_max_stream_data_bidi_remote: remote,
            initial_max_stream_data_uni: uni,
            initial_max_streams_bidi: StreamCount::new(counts.0).expect("in range"),
            initial_max_streams_uni: StreamCount::new(counts.1).expect("in range"),
            ack_delay_exponent: small.2,
            max_ack_delay_ms: VarInt::from_u32(max_ack_delay_ms),
            disable_active_migration: small.3[0],
            preferred_address: preferred_address.map(Box::new),
            active_connection_id_limit: VarInt::from_u32(small.1),
            initial_source_connection_id: ids[1],
            retry_source_connection_id: ids[2],
            version_information: versions.map(|available| VersionInformation { chosen: available[0], available }),
            grease_quic_bit: small.3[1],
            min_ack_delay_us: has_min_ack_delay
                .then(|| VarInt::saturating(min_ack_delay.get().min(u64::from(max_ack_delay_ms) * 1000))),
        }
    }
}

proptest! {
    #[test]
    fn decode_inverts_encode(parameters in parameters()) {
        let mut buffer = vec![0; parameters.encoded_len()];
        let mut writer = Writer::new(&mut buffer);
        prop_assert_eq!(parameters.encode(&mut writer), Ok(()));
        prop_assert_eq!(writer.remaining(), 0);
        prop_assert_eq!(&parameters.to_vec(), &buffer);
        let decoded = TransportParameters::decode(&buffer, Side::Server);
        prop_assert_eq!(decoded.as_ref(), Ok(&parameters));
        // The remembered subset survives encoding and decoding.
        let remembered = parameters.remembered();
        let restored = TransportParameters::decode(&remembered.to_vec(), Side::Client);
        prop_assert_eq!(restored.as_ref(), Ok(&remembered));
        prop_assert_eq!(remembered.check_not_reduced(&parameters), Ok(()));
    }

    /// Input truncated between parameters decodes to fewer parameters; truncated anywhere else, it is an error.
    #[test]
    fn truncated_parameters_are_fewer_or_an_error(parameters in parameters()) {
        let bytes = parameters.to_vec();
        for cut in 0..bytes.len() {
            let space = &mut vec![0; cut];
            prop_assert_eq!(parameters.encode(&mut Writer::new(space)), Err(BufferFull));
            match TransportParameters::decode(&bytes[..cut], Side::Server) {
                Ok(fewer) => prop_assert_eq!(fewer.to_vec(), &bytes[..cut]),
                Err(error) => prop_assert_eq!(error.kind, Kind::Truncated),
            }
        }
    }

    #[test]
    fn any_bytes_decode_or_fail(bytes in prop::collection::vec(prop_oneof![0_u8..0x21, any::<u8>()], 0..200)) {
        for sender in [Side::Client, Side::Server] {
            if let Ok(parameters) = TransportParameters::decode(&bytes, sender) {
                let again = TransportParameters::decode(&parameters.to_vec(), sender);
                prop_assert_eq!(again, Ok(parameters));
            }
        }
    }
}
