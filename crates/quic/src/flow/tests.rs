use super::*;

const RTT: Duration = Duration::from_millis(40);

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn window(initial: u64, maximum: u64) -> ReceiveWindow {
    ReceiveWindow::new(WindowSize { initial, maximum })
}

#[test]
fn rfc9000_4_1_a_lower_limit_is_ignored() {
    let mut credit = SendCredit::new(100);
    assert!(credit.raise(200));
    assert!(!credit.raise(150) && !credit.raise(200));
    assert_eq!(credit.available(), 200);
}

#[test]
fn rfc9000_4_1_data_blocked_is_sent_once_per_limit() {
    let mut credit = SendCredit::new(10);
    assert_eq!(credit.blocked_to_send(), None);
    credit.consume(10);
    assert_eq!(credit.blocked_to_send(), Some(10));
    credit.on_blocked_sent();
    assert_eq!(credit.blocked_to_send(), None);
    credit.raise(12);
    credit.consume(2);
    assert_eq!(credit.blocked_to_send(), Some(12));
    credit.on_blocked_sent();
    credit.on_blocked_lost();
    assert_eq!(credit.blocked_to_send(), Some(12));
    credit.raise(13);
    assert_eq!(credit.blocked_to_send(), None);
}

#[test]
fn rfc9000_4_1_data_beyond_the_limit_is_an_error() {
    let mut window = window(100, 100);
    assert_eq!(window.on_received(100, at(0)), Ok(()));
    assert_eq!(window.on_received(1, at(0)), Err(LimitExceeded));
    assert_eq!(window.received, 100);
}

#[test]
fn limit_is_due_at_half_the_window() {
    let mut window = window(100, 100);
    window.on_received(100, at(0)).expect("within the limits");
    assert!(!window.on_consumed(49, at(0), RTT));
    assert!(window.on_consumed(1, at(0), RTT));
    assert_eq!(window.next_limit().get(), 150);
    assert!(window.on_consumed(20, at(0), RTT), "still due");
    assert_eq!(window.next_limit().get(), 170);
    window.on_limit_sent();
    assert!(!window.is_due());
    assert_eq!(window.limit(), 170);
    window.on_lost();
    assert!(window.is_due());
    assert_eq!(window.next_limit().get(), 170);
}

#[test]
fn window_doubles_when_half_is_consumed_within_two_round_trips() {
    let mut window = window(100, 350);
    for (now, size) in [(79, 200), (158, 350), (200, 350)] {
        let half = window.size / 2;
        window.on_received(half, at(0)).expect("within the limits");
        assert!(window.on_consumed(half, at(now), RTT));
        assert_eq!(window.size, size, "at {now} ms");
        window.on_limit_sent();
    }
}

#[test]
fn window_stays_when_the_application_is_slow() {
    let mut window = window(100, 1000);
    for now in [80, 160, 240] {
        window.on_received(50, at(0)).expect("within the limits");
        assert!(window.on_consumed(50, at(now), RTT));
        window.on_limit_sent();
    }
    assert_eq!(window.size, 100);
}

#[test]
fn limits_stay_below_2_to_the_62() {
    let mut window = window(u64::MAX, 1);
    assert_eq!(window.limit(), VarInt::MAX.get());
    window
        .on_received(VarInt::MAX.get(), at(0))
        .expect("within the limits");
    window.on_consumed(VarInt::MAX.get(), at(0), RTT);
    assert_eq!(window.next_limit(), VarInt::MAX);
}

/// However many uploads stall after their windows have grown.
#[test]
fn the_windows_of_100_connections_exceed_their_initial_sizes_by_no_more_than_the_budget() {
    let budget = WindowBudget::new(64 << 20);
    let mut windows: Vec<_> = (0..100)
        .map(|_| (window(1 << 20, 16 << 20), WindowShare::new(budget.clone())))
        .collect();
    for (window, share) in &mut windows {
        for _ in 0..10 {
            let room = window.limit() - window.received;
            window.on_received(room, at(0)).expect("within the limits");
            window.on_consumed_within(room, at(1), RTT, |growth| share.take(growth));
            window.on_limit_sent();
        }
    }
    let sizes = windows.iter().map(|(window, _)| window.size);
    let beyond: u64 = sizes.clone().map(|size| size - (1 << 20)).sum();
    assert_eq!(beyond, budget.used());
    assert!(beyond <= 64 << 20);
    assert!(sizes.clone().all(|size| size > 1 << 20), "each has a part");
    assert!(sizes.max() <= Some(5 << 20), "a sixteenth, and what it had");
    drop(windows);
    assert_eq!(budget.used(), 0);
}
