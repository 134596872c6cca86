//! Decodes arbitrary bytes as a datagram, payload or transport parameters. Decoding must not panic, and decoded values
//! must encode again. Shared by the corpus replay and the fuzz target.

use lastbyte_wire::{
    Encode, Side, Writer,
    frame::Frames,
    packet::{DecodeConfig, Packet, PacketType, Packets},
    transport_parameters::TransportParameters,
};

/// The first byte selects the decoder for the rest.
pub(crate) fn play(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let side = if choice & 1 == 0 {
        Side::Client
    } else {
        Side::Server
    };
    match choice >> 1 & 3 {
        0 => datagram(rest),
        1 => payload(rest, side, choice >> 3),
        _ => parameters(rest, side),
    }
}

fn datagram(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let config = DecodeConfig {
        connection_id_len: 8,
        grease_quic_bit: true,
    };
    for packet in Packets::new(&mut bytes, config) {
        if let Ok(Packet::Protected(packet)) = packet {
            let unmasked = packet.unmask([0x5a; 5]);
            let _ = unmasked.number().expand(None);
            let _ = unmasked.check_reserved_bits();
        }
    }
}

fn payload(bytes: &[u8], side: Side, choice: u8) {
    let packet_type = [
        PacketType::Initial,
        PacketType::ZeroRtt,
        PacketType::Handshake,
        PacketType::OneRtt,
    ][usize::from(choice & 3)];
    let Ok(frames) = Frames::new(bytes, packet_type, side) else {
        return;
    };
    for frame in frames.flatten() {
        let mut buffer = vec![0; frame.encoded_len()];
        let mut writer = Writer::new(&mut buffer);
        frame
            .encode(&mut writer)
            .expect("the buffer has the encoded length");
        assert_eq!(writer.written().len(), frame.encoded_len());
    }
}

fn parameters(bytes: &[u8], side: Side) {
    if let Ok(parameters) = TransportParameters::decode(bytes, side) {
        let again = TransportParameters::decode(&parameters.to_vec(), side);
        assert_eq!(again.as_ref(), Ok(&parameters));
    }
}
