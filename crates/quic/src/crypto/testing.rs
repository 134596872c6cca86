//! Shared by the tests of this module: a handshake of two sessions in memory, and packets between keys.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, Writer,
    packet::{
        DecodeConfig, LongHeader, LongKind, Packet, PacketNumber, PacketNumberLen, Packets,
        Protected, ShortHeader, Version,
    },
};

use super::{
    DirectionalKeys, Keys, NewKeys, OneRttKeys, OneRttOpened, OpenError, Session, SessionError,
    Space,
};

pub(crate) mod vectors;

/// A PTO for all tests.
pub(crate) const PTO: Duration = Duration::from_millis(100);

/// The results of one end of a handshake.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) session: Box<dyn Session>,
    pub(crate) early: Option<DirectionalKeys>,
    pub(crate) handshake: Option<Keys>,
    pub(crate) one_rtt: Option<OneRttKeys>,
    /// All its output, in order.
    pub(crate) sent_data: Vec<(Space, Vec<u8>)>,
}

impl End {
    pub(crate) fn new(session: Box<dyn Session>) -> Self {
        Self {
            session,
            early: None,
            handshake: None,
            one_rtt: None,
            sent_data: Vec::new(),
        }
    }

    /// Takes keys and output.
    pub(crate) fn take_output(&mut self) -> Vec<(Space, Vec<u8>)> {
        while let Some(keys) = self.session.next_keys() {
            match keys {
                NewKeys::ZeroRtt(keys) => self.early = Some(keys),
                NewKeys::Handshake(keys) => self.handshake = Some(keys),
                NewKeys::OneRtt(keys) => self.one_rtt = Some(*keys),
            }
        }
        let mut sent_data = Vec::new();
        for space in Space::ALL {
            let mut data = Vec::new();
            let len = self.session.write_crypto(space, &mut data);
            assert_eq!(len, data.len());
            if len > 0 {
                sent_data.push((space, data));
            }
        }
        self.sent_data.extend_from_slice(&sent_data);
        sent_data
    }

    pub(crate) fn receive(
        &mut self,
        sent_data: &[(Space, Vec<u8>)],
        chunk: usize,
    ) -> Result<(), SessionError> {
        for (space, data) in sent_data {
            for chunk in data.chunks(chunk) {
                self.session.read_crypto(*space, chunk)?;
            }
        }
        Ok(())
    }

    pub(crate) fn keys(&mut self) -> &mut OneRttKeys {
        self.one_rtt.as_mut().expect("1-RTT keys")
    }
}

/// Runs both ends until neither has any output left. Data is delivered in portions of `chunk` bytes. The error says
/// whether the client failed.
pub(crate) fn drive(
    client: &mut End,
    server: &mut End,
    chunk: usize,
) -> Result<(), (bool, SessionError)> {
    loop {
        let from_client = client.take_output();
        server
            .receive(&from_client, chunk)
            .map_err(|error| (false, error))?;
        let from_server = server.take_output();
        client
            .receive(&from_server, chunk)
            .map_err(|error| (true, error))?;
        if from_client.is_empty() && from_server.is_empty() {
            if let Some(session) = server.session.established() {
                server.session = session;
            }
            return Ok(());
        }
    }
}

/// A connection ID of 8 bytes, the length that [`first`] expects in short headers.
pub(crate) fn connection_id() -> ConnectionId {
    ConnectionId::new(b"lastbyte").expect("8 bytes are a connection ID")
}

/// The first packet of a datagram.
pub(crate) fn first(datagram: &mut [u8], connection_id_len: usize) -> Option<Protected<'_>> {
    let config = DecodeConfig {
        connection_id_len,
        grease_quic_bit: true,
    };
    match Packets::new(datagram, config).next() {
        Some(Ok(Packet::Protected(packet))) => Some(packet),
        _ => None,
    }
}

pub(crate) fn number(number: u32) -> PacketNumber {
    PacketNumber::from(number)
}

/// A Handshake packet.
pub(crate) fn handshake_packet(keys: &DirectionalKeys, number: u32, payload: &[u8]) -> Vec<u8> {
    let number = self::number(number);
    let header = LongHeader {
        kind: LongKind::Handshake,
        version: Version::V1,
        destination: connection_id(),
        source: ConnectionId::EMPTY,
        number: number.truncate_to(PacketNumberLen::Two),
        fixed_bit: true,
    };
    let mut buffer = vec![0; payload.len() + 64];
    let mut writer = Writer::new(&mut buffer);
    let open = header.begin(&mut writer).unwrap();
    writer.bytes(payload).unwrap();
    let finished = open.finish(&mut writer, super::TAG_LEN).unwrap();
    keys.protect(number, &finished, writer.written_mut())
        .unwrap();
    writer.written().to_vec()
}

/// A 1-RTT packet.
pub(crate) fn short_packet(
    keys: &mut OneRttKeys,
    number: u32,
    payload: &[u8],
) -> Result<Vec<u8>, super::SealError> {
    let number = self::number(number);
    let header = ShortHeader {
        destination: &connection_id(),
        number: number.truncate_to(PacketNumberLen::Four),
        spin_bit: false,
        key_phase: keys.key_phase(),
        fixed_bit: true,
    };
    let mut buffer = vec![0; payload.len() + 64];
    let mut writer = Writer::new(&mut buffer);
    let open = header.begin(&mut writer).unwrap();
    writer.bytes(payload).unwrap();
    let finished = open.finish(&mut writer, super::TAG_LEN).unwrap();
    keys.protect(number, &finished, writer.written_mut())?;
    Ok(writer.written().to_vec())
}

/// Opens a 1-RTT packet.
pub(crate) fn open_short<'a>(
    keys: &mut OneRttKeys,
    packet: &'a mut [u8],
    now: Time,
) -> Result<OneRttOpened<'a>, OpenError> {
    let packet = first(packet, 8).expect("a packet with a sample");
    keys.unprotect(packet, None, now, || PTO)
}

/// Sends a 1-RTT packet from one end's keys to the other's and checks that the payload arrives.
pub(crate) fn passes(from: &mut OneRttKeys, to: &mut OneRttKeys, number: u32) {
    let payload = [0x01; 1180];
    let mut packet = short_packet(from, number, &payload).unwrap();
    let opened = open_short(to, &mut packet, Time::ZERO).unwrap();
    assert_eq!(opened.packet.payload(), payload);
    assert_eq!(opened.packet.number, self::number(number));
    opened.packet.packet.check_reserved_bits().unwrap();
}
