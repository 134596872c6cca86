use super::*;

fn take_all(outgoing: &mut Outgoing) -> Vec<(u32, u64)> {
    core::iter::from_fn(|| outgoing.take(1448))
        .map(|payload| (payload.len, payload.progress.application))
        .collect()
}

#[test]
fn rfc8446_5_2_a_record_adds_22_bytes_and_is_complete_at_its_end() {
    let mut outgoing = Outgoing::new(&Tls::v13(0));
    outgoing.write(20_000);
    assert_eq!(outgoing.take(1448), None, "the handshake comes first");
    outgoing.open();
    let segments = take_all(&mut outgoing);
    assert_eq!(
        segments.iter().map(|(len, _)| len).sum::<u32>(),
        20_000 + 2 * 22
    );
    // The first record ends within the twelfth segment: 16 406 = 11 × 1448 + 478.
    assert_eq!(segments[10], (1448, 0));
    assert_eq!(segments[11], (1448, 16_384));
    assert_eq!(segments[13], (1220, 20_000));
}

#[test]
fn without_tls_each_byte_is_complete() {
    let mut outgoing = Outgoing::new(&Tls::none());
    outgoing.open();
    outgoing.write(2000);
    assert_eq!(take_all(&mut outgoing), [(1448, 1448), (552, 2000)]);
}

#[test]
fn a_flight_precedes_data_and_completes_no_data() {
    let mut outgoing = Outgoing::new(&Tls::v13_early());
    outgoing.write_flight(500);
    outgoing.write(100);
    outgoing.open();
    let payload = outgoing.take(1448).expect("data");
    assert_eq!((payload.len, payload.push), (622, true));
    assert_eq!(
        payload.progress,
        Progress {
            flights: 1,
            application: 100
        }
    );
    assert!(!outgoing.has_data());
}
