use lastbyte_wire::{Reader, StatelessResetToken, frame::Frame};

use super::*;

/// IDs of four bytes that count up.
struct Counter(u8);

impl ConnectionIdGenerator for Counter {
    fn generate(&mut self) -> ConnectionId {
        self.0 += 1;
        id(self.0)
    }

    fn reset_token(&self, id: &ConnectionId) -> StatelessResetToken {
        StatelessResetToken::new([id.as_slice().last().copied().unwrap_or(0); 16])
    }
}

fn id(last: u8) -> ConnectionId {
    ConnectionId::new(&[9, 9, 9, last]).expect("short")
}

const ROUND_TRIP: Duration = Duration::from_millis(100);

struct Issuer {
    ids: LocalIds,
    generator: Counter,
    now: Time,
}

impl Issuer {
    fn new() -> Self {
        Self {
            ids: LocalIds::new(id(0)),
            generator: Counter(0),
            now: Time::ZERO,
        }
    }

    fn started(limit: u64) -> Self {
        let mut issuer = Self::new();
        issuer.ids.start(limit);
        issuer
    }

    fn retire(
        &mut self,
        sequence: u64,
        destination: u8,
    ) -> Result<Option<ConnectionId>, RetireError> {
        self.ids.on_retire(sequence, id(destination).as_slice())
    }

    /// Sequence numbers and IDs of the frames written into this many bytes.
    fn written(&mut self, room: usize) -> Vec<(u64, ConnectionId)> {
        let mut buffer = vec![0; room];
        let mut writer = Writer::new(&mut buffer);
        let mut receipts = Vec::new();
        self.ids.write_frames(
            self.now,
            ROUND_TRIP,
            &mut writer,
            &mut self.generator,
            &mut |receipt| receipts.push(receipt),
        );
        let mut reader = Reader::new(writer.written());
        let mut frames = Vec::new();
        while let Ok(Frame::NewConnectionId(frame)) = Frame::decode(&mut reader) {
            assert_eq!(
                frame.reset_token(),
                self.generator.reset_token(&frame.connection_id())
            );
            frames.push((frame.sequence().get(), frame.connection_id()));
        }
        let expected: Vec<Receipt> = frames
            .iter()
            .map(|(sequence, _)| Receipt::NewConnectionId(*sequence))
            .collect();
        assert_eq!(receipts, expected);
        frames
    }

    /// A round trip later.
    fn wait(&mut self) {
        self.now = self.now + ROUND_TRIP;
        self.ids.on_timeout(self.now);
    }
}

#[test]
fn rfc9000_5_1_1_ids_are_issued_up_to_the_peers_limit_and_four() {
    let mut issuer = Issuer::started(3);
    assert!(issuer.ids.wants_to_send());
    assert_eq!(issuer.written(1000), [(1, id(1)), (2, id(2))]);
    assert!(!issuer.ids.wants_to_send());
    assert_eq!(issuer.ids.deadline(), None);
    let mut most = Issuer::started(u64::MAX);
    most.written(1000);
    assert_eq!(most.ids.iter().count(), LocalIds::IDS_MAX);
}

#[test]
fn rfc9000_5_1_1_retired_ids_are_replaced_once_per_round_trip() {
    let mut issuer = Issuer::started(3);
    issuer.written(1000);
    assert_eq!(issuer.retire(1, 0), Ok(Some(id(1))));
    assert!(!issuer.ids.wants_to_send());
    assert_eq!(issuer.ids.deadline(), Some(Time::ZERO + ROUND_TRIP));
    assert_eq!(issuer.written(1000), []);
    issuer.wait();
    assert_eq!(issuer.ids.deadline(), None);
    assert!(issuer.ids.wants_to_send());
    assert_eq!(issuer.written(1000), [(3, id(3))]);
    assert_eq!(issuer.retire(1, 0), Ok(None), "again");
    assert_eq!(issuer.retire(0, 2), Ok(Some(id(0))));
    issuer.wait();
    assert_eq!(issuer.written(1000), [(4, id(4))]);
    assert_eq!(issuer.ids.iter().collect::<Vec<_>>(), [id(2), id(3), id(4)]);
}

#[test]
fn rfc9000_19_16_unsent_ids_and_the_one_in_use_must_not_be_retired() {
    let mut issuer = Issuer::started(3);
    assert_eq!(issuer.retire(1, 0), Err(RetireError::NeverSent));
    assert_eq!(issuer.written(30), [(1, id(1))]); // 1 + 1 + 1 + 1 + 4 + 16 bytes a frame
    assert_eq!(issuer.retire(2, 0), Err(RetireError::NeverSent), "made");
    assert_eq!(issuer.written(1000), [(2, id(2))]);
    assert_eq!(issuer.retire(3, 0), Err(RetireError::NeverSent));
    assert_eq!(issuer.retire(2, 2), Err(RetireError::InUse));
    assert_eq!(issuer.retire(2, 0), Ok(Some(id(2))));
}

#[test]
fn a_peer_that_retires_every_id_gets_few_new_ones_per_round_trip() {
    let mut issuer = Issuer::started(100);
    for _ in 0..10 {
        let sequences: Vec<u64> = issuer.written(1000).iter().map(|(it, _)| *it).collect();
        assert!(sequences.len() < LocalIds::IDS_MAX);
        for sequence in &sequences {
            assert!(issuer.retire(*sequence, 0).expect("it was sent").is_some());
            assert_eq!(issuer.written(1000), []);
        }
        // The next one is guessed.
        let next = sequences.last().expect("some") + 1;
        assert_eq!(issuer.retire(next, 0), Err(RetireError::NeverSent));
        issuer.wait();
    }
    assert_eq!(
        usize::from(issuer.generator.0),
        10 * (LocalIds::IDS_MAX - 1)
    );
}

#[test]
fn ids_that_do_not_fit_or_are_lost_are_sent_later() {
    let mut issuer = Issuer::started(4);
    assert_eq!(issuer.written(30), [(1, id(1))]);
    assert!(issuer.ids.wants_to_send());
    issuer.ids.on_lost(1);
    issuer.ids.on_lost(77);
    assert_eq!(issuer.written(1000).len(), 3);
}

#[test]
fn rfc9000_5_1_1_an_empty_id_has_no_successors() {
    let mut issuer = Issuer::new();
    issuer.ids = LocalIds::new(ConnectionId::EMPTY);
    issuer.ids.start(8);
    assert!(!issuer.ids.wants_to_send());
    assert_eq!(issuer.written(1000), []);
}

#[test]
fn rfc9000_5_1_1_the_preferred_address_takes_number_one() {
    let mut issuer = Issuer::new();
    issuer.generator = Counter(10);
    issuer.ids.add_of_preferred_address(id(1));
    issuer.ids.start(3);
    assert_eq!(issuer.written(1000), [(2, id(11))]);
}
