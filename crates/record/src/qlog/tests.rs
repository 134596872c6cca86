use lastbyte_wire::packet::PacketType;

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

fn header(dialect: Dialect) -> Header {
    Header {
        dialect,
        title: "a \"title\"".to_owned(),
        vantage_point: Side::Server,
        group_id: "0011".to_owned(),
    }
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

fn written(dialect: Dialect) -> String {
    let shared = Shared::default();
    let epoch = Time::from_nanos(1_000_000);
    let (mut qlog, health) = Qlog::new(&header(dialect), epoch, shared.clone());
    let now = |micros: u64| Time::from_nanos(1_000_000 + micros * 1000);
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
    let limits = FlowLimits {
        data: 4000,
        bidi_local: 3000,
        bidi_remote: 2000,
        uni: 1000,
    };
    for is_local in [true, false] {
        qlog.on_event(now(3500), &Event::FlowLimits { is_local, limits });
    }
    qlog.on_event(now(4000), &Event::Closed(CloseReason::IdleTimeout));
    drop(qlog);
    assert!(health.take_error().is_none());
    let bytes = shared.0.lock().expect("one thread").clone();
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn events_of_version_0_3() {
    insta::assert_snapshot!(written(Dialect::V03).replace('\u{1e}', ""));
}

#[test]
fn events_of_the_drafts() {
    insta::assert_snapshot!(written(Dialect::Draft).replace('\u{1e}', ""));
}

#[test]
fn every_record_is_a_json_text_of_rfc_7464() {
    for dialect in [Dialect::V03, Dialect::Draft] {
        let text = written(dialect);
        assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
        for record in text.split('\u{1e}').skip(1) {
            let value: serde_json::Value = serde_json::from_str(record).expect("JSON");
            assert!(value.is_object());
        }
        // draft-ietf-quic-qlog-main-schema-14: the format is named within the first 256 bytes.
        let start = &text[..256];
        assert!(start.contains("JSON-SEQ") || start.contains("application/qlog+json-seq"));
    }
}

#[test]
fn a_failed_writer_is_not_used_again_and_its_error_is_kept() {
    let (mut qlog, health) = Qlog::new(
        &header(Dialect::V03),
        Time::ZERO,
        Shared(Arc::default(), Some(300)),
    );
    for _ in 0..10 {
        qlog.on_event(Time::ZERO, &Event::PacketSent(packet(PAYLOAD)));
    }
    drop(qlog);
    let error = health.take_error().expect("no room");
    assert_eq!(error.to_string(), "no room");
}
