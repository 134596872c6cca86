use super::*;

const SIZE: u64 = 1448;

#[test]
fn the_window_doubles_with_what_is_read_in_a_round_trip() {
    let mut window = Window::new(64_240, 3 << 20, SIZE);
    window.on_established(Time::ZERO);
    let rtt = Duration::from_millis(40);
    let mut next = 0;
    // Slow start from ten segments.
    for (round, segments) in (1..).zip([10_u64, 20, 40, 80, 160]) {
        let offered = window.offer(next, 0);
        assert!(offered >= segments * SIZE, "round {round}: {offered}");
        for index in 0..segments {
            next += SIZE;
            let now = Time::ZERO + rtt * round + Duration::from_micros(10 * index);
            window.on_segment(now, SIZE as u32, next, Some(rtt));
        }
    }
    assert!(window.limit <= 3 << 20);
}

#[test]
fn what_was_offered_is_not_taken_back() {
    let mut window = Window::new(64_240, 3 << 20, SIZE);
    assert_eq!(window.offer(0, 0), 64_240);
    assert_eq!(window.offer(10_000, 30_000), 54_240);
}
