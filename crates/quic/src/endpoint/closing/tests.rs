use core::{net::SocketAddr, time::Duration};

use super::*;
use crate::close::CloseReason;

const NOW: Time = Time::from_nanos(1_000_000_000);
const TIMEOUT: Duration = Duration::from_millis(10);

fn path(port: u16) -> NetworkPath {
    NetworkPath {
        local: SocketAddr::from(([192, 0, 2, 1], 443)),
        remote: SocketAddr::from(([192, 0, 2, 2], port)),
    }
}

/// A connection that has sent a `CONNECTION_CLOSE` of 60 bytes.
fn closing() -> Closing {
    let mut close = Close::new();
    close.begin(NOW, CloseReason::LocalApplication { code: 7 }, TIMEOUT);
    close.on_sent();
    Closing::new(close, path(1), &[9; 60])
}

#[test]
fn rfc9000_10_2_1_the_close_is_repeated_for_progressively_fewer_packets() {
    let mut closing = closing();
    let mut buffer = [0; 1500];
    assert_eq!(closing.poll_transmit(&mut buffer), None);
    let mut answered = Vec::new();
    for number in 1..=100 {
        if closing.on_datagram(&path(1), 40) {
            answered.push(number);
            let transmit = closing.poll_transmit(&mut buffer).expect("due");
            assert_eq!((transmit.path, transmit.len), (path(1), 60));
            assert_eq!(buffer[..60], [9; 60]);
            assert_eq!(closing.poll_transmit(&mut buffer), None);
        }
    }
    assert_eq!(answered, [1, 3, 7, 15, 31, 63]);
}

#[test]
fn rfc9000_10_2_1_at_most_three_times_the_bytes_received_are_sent() {
    let mut closing = closing();
    let mut buffer = [0; 1500];
    let (mut received, mut sent) = (0, 0);
    for _ in 0..1000 {
        received += 1;
        if closing.on_datagram(&path(1), 1) {
            let transmit = closing.poll_transmit(&mut buffer);
            sent += transmit.expect("due").len;
        }
        assert!(sent <= 3 * received, "{sent} for {received}");
    }
    assert!(sent > 0);
}

#[test]
fn other_addresses_are_not_answered() {
    let mut closing = closing();
    for _ in 0..100 {
        assert!(!closing.on_datagram(&path(2), 1200));
    }
    assert!(closing.on_datagram(&path(1), 1200));
}

#[test]
fn rfc9000_10_2_2_nothing_is_sent_when_draining() {
    let mut close = Close::new();
    close.begin(NOW, CloseReason::PeerApplication { code: 7 }, TIMEOUT);
    let mut draining = Closing::new(close, path(1), &[]);
    let mut reset = closing();
    reset.on_stateless_reset(NOW);
    for _ in 0..100 {
        assert!(!draining.on_datagram(&path(1), 1200));
        assert!(!reset.on_datagram(&path(1), 1200));
    }
    assert_eq!(draining.poll_transmit(&mut [0; 1500]), None);
}

#[test]
fn rfc9000_10_2_closing_lasts_three_probe_timeouts() {
    let mut closing = closing();
    let end = NOW + 3 * TIMEOUT;
    assert_eq!(closing.deadline(), Some(end));
    assert!(!closing.on_timeout(NOW + 2 * TIMEOUT));
    assert!(closing.on_timeout(end));
}
