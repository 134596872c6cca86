use lastbyte_wire::{ConnectionId, VarInt, packet::PacketType};

use super::*;

/// A writer whose bytes can be read afterwards, with an optional limit.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>, Option<usize>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().expect("one thread");
        if self.1.is_some_and(|max| all.len() + bytes.len() > max) {
            return Err(io::Error::other("no room"));
        }
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn header() -> Header {
    Header {
        title: "a \"title\"".to_owned(),
        vantage_point: Side::Server,
        group_id: "0011".to_owned(),
    }
}

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).expect("at most 20 bytes")
}

/// PING, an ACK of 3 to 5 and 0, a STREAM frame with the end, and padding.
const PAYLOAD: &[u8] = &[
    0x01, 0x02, 5, 10, 1, 2, 1, 0, 0x0b, 0, 3, b'a', b'b', b'c', 0, 0, 0,
];

fn packet(payload: &[u8]) -> Packet<'_> {
    Packet {
        packet_type: PacketType::OneRtt,
        number: 7,
        len: payload.len() + 30,
        payload,
        ecn: lastbyte_quic::ack::Ecn::NotEct,
        is_mtu_probe: false,
    }
}

fn written() -> String {
    let shared = Shared::default();
    let epoch = Time::from_nanos(1_000_000);
    let (mut qlog, health) = Qlog::new(&header(), epoch, shared.clone());
    let now = |micros: u64| Time::from_nanos(1_000_000 + micros * 1000);
    let started = Event::Started {
        original_destination: id(&[1, 2, 3, 4, 5, 6, 7, 8]),
    };
    qlog.on_event(now(0), &started);
    qlog.on_event(now(0), &Event::PacketSent(packet(PAYLOAD)));
    qlog.on_event(
        now(1500),
        &Event::PacketReceived(packet(&[0x10, 0x44, 0x00])),
    );
    qlog.on_event(
        now(2000),
        &Event::PacketLost {
            space: lastbyte_quic::space::Space::Application,
            number: 7,
            len: 40,
            trigger: LossTrigger::TimeThreshold,
        },
    );
    qlog.on_event(now(3000), &Event::DatagramSize(1452));
    let mut parameters = TransportParameters {
        original_destination_connection_id: Some(id(&[1, 2, 3, 4, 5, 6, 7, 8])),
        initial_source_connection_id: Some(id(&[9, 10])),
        ..TransportParameters::default()
    };
    parameters.initial_max_data = VarInt::from_u32(4000);
    parameters.initial_max_stream_data_bidi_local = VarInt::from_u32(3000);
    parameters.initial_max_stream_data_bidi_remote = VarInt::from_u32(2000);
    parameters.initial_max_stream_data_uni = VarInt::from_u32(1000);
    for is_local in [true, false] {
        let parameters = &parameters;
        let event = Event::Parameters {
            is_local,
            parameters,
        };
        qlog.on_event(now(3500), &event);
    }
    let frame = |name, values, text| {
        Event::ApplicationFrame(ApplicationFrame {
            stream: VarInt::from_u32(4).into(),
            is_local: name != "goaway",
            name,
            len: 17,
            values,
            text,
        })
    };
    let settings = [("settings_qpack_blocked_streams", 16)];
    for event in [
        frame("settings", &settings[..], None),
        frame("headers", &[], Some((":status", "200"))),
        frame("headers", &[], None),
        frame("data", &[], None),
        frame("goaway", &[("id", 8)], None),
        frame(
            "priority_update",
            &[("stream_id", 4)],
            Some(("priority_field_value", "u=5, i")),
        ),
    ] {
        qlog.on_event(now(3800), &event);
    }
    let application = CloseReason::PeerApplication { code: 0x100 };
    qlog.on_event(now(4000), &Event::Closed(application));
    qlog.on_event(now(4000), &Event::Closed(CloseReason::IdleTimeout));
    drop(qlog);
    assert!(health.take_error().is_none());
    let bytes = shared.0.lock().expect("one thread").clone();
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn events_of_version_0_3() {
    insta::assert_snapshot!(written().replace('\u{1e}', ""));
}

#[test]
fn every_record_is_a_json_text_of_rfc_7464() {
    let text = written();
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    for record in text.split('\u{1e}').skip(1) {
        let value: serde_json::Value = serde_json::from_str(record).expect("JSON");
        assert!(value.is_object());
    }
    // draft-ietf-quic-qlog-main-schema: the format is named within the first 256 bytes.
    assert!(text[..256].contains("JSON-SEQ"));
}

#[test]
fn a_failed_writer_is_not_used_again_and_its_error_is_kept() {
    let (mut qlog, health) = Qlog::new(&header(), Time::ZERO, Shared(Arc::default(), Some(300)));
    for _ in 0..10 {
        qlog.on_event(Time::ZERO, &Event::PacketSent(packet(PAYLOAD)));
    }
    drop(qlog);
    let error = health.take_error().expect("no room");
    assert_eq!(error.to_string(), "no room");
}

#[test]
fn both_ends_of_a_connection_have_its_original_destination_id_as_their_group() {
    let text = written();
    let header: serde_json::Value =
        serde_json::from_str(text.split('\u{1e}').nth(1).expect("a header")).expect("JSON");
    let common = &header["trace"]["common_fields"];
    assert_eq!(common["group_id"], "0102030405060708");
    assert_eq!(common["ODCID"], "0102030405060708");
}

#[test]
fn a_file_without_events_has_a_header() {
    let shared = Shared::default();
    drop(Qlog::new(&header(), Time::ZERO, shared.clone()));
    let text = String::from_utf8(shared.0.lock().expect("one thread").clone()).expect("UTF-8");
    assert!(text.contains(r#""group_id":"0011""#), "{text}");
}
