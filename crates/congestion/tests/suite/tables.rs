//! Tables of what is sent, acknowledged and lost, with the window that follows: one snapshot each.
//!
//! Datagrams are of 1000 bytes, so that a window reads in packets.

use crate::script::play;

/// Compares with the snapshot of the test's name.
#[track_caller]
fn table(name: &str, spec: &str, script: &str) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, play(spec, script));
    });
}

#[test]
fn slow_start_doubles_and_is_halved_on_loss() {
    table(
        "slow_start_doubles_and_is_halved_on_loss",
        "slow-start:initial-window=10p",
        "+40ms
         send 10
         +40ms
         ack 0-1
         ack 2-9
         send 20
         +40ms
         ack 10-19
         ack 24-29 lose 20-23
         send 5
         +40ms
         ack 30-34",
    );
}

#[test]
fn jumpstart_without_loss_ends_at_twice_the_jump() {
    table(
        "jumpstart_without_loss_ends_at_twice_the_jump",
        "jumpstart",
        "+40ms
         send 1
         +40ms
         ack 0
         send 10
         send 50
         +40ms
         ack 1-10
         ack 11-60",
    );
}

#[test]
fn jumpstart_with_a_quarter_lost_falls_to_the_bytes_delivered() {
    // 46 packets of the jump arrive: the window ends at 0.7 × that (Pico's beta), as quicly's does.
    table(
        "jumpstart_with_a_quarter_lost_falls_to_the_bytes_delivered",
        "jumpstart:congestion=pico",
        "+40ms
         send 1
         +40ms
         ack 0
         send 60
         +40ms
         ack 11-20
         ack 24-40 lose 1-10 21-23
         ack 42-60 lose 41
         send 5
         +40ms
         ack 61-65",
    );
}

#[test]
fn jumpstart_after_congestion_does_not_jump() {
    table(
        "jumpstart_after_congestion_does_not_jump",
        "jumpstart",
        "+40ms
         send 9
         +40ms
         ack 3-8 lose 0-2
         send 20
         +40ms
         ack 9-28",
    );
}

#[test]
fn jumpstart_of_a_short_flight_is_not_less_than_the_initial_window() {
    table(
        "jumpstart_of_a_short_flight_is_not_less_than_the_initial_window",
        "jumpstart",
        "+40ms
         send 1
         +40ms
         ack 0
         send 12
         dry
         +40ms
         ack 1-12",
    );
}

#[test]
fn rapid_start_triples_then_exits_recovery_at_half_of_the_bytes_delivered() {
    // 159 packets are in flight when the first loss shows, and 99 of them arrive: 0.5 × 99 = 49.5.
    table(
        "rapid_start_triples_then_exits_recovery_at_half_of_the_bytes_delivered",
        "rapid-start",
        "+40ms
         send 1
         +40ms
         ack 0
         send 60
         +40ms
         ack 1-10
         send 20
         ack 11-60
         send 100
         +40ms
         ack 61-80
         send 59
         +40ms
         ack 81-120 lose 121-160
         ack 161-200 lose 201-220
         ack 221-239
         send 3
         +40ms
         ack 240-242",
    );
}

#[test]
fn rapid_start_falls_back_to_doubling_while_queueing() {
    // From 40 ms on, the threshold is 44 ms.
    table(
        "rapid_start_falls_back_to_doubling_while_queueing",
        "rapid-no-jump",
        "+40ms
         send 30
         +40ms
         ack 0-29
         send 60
         +45ms
         ack 30-59
         +1ms
         ack 60-89
         send 180
         +40ms
         ack 90-149",
    );
}

#[test]
fn rapid_start_with_marks_and_no_loss_exits_at_half() {
    // CE only: beta × pre.
    table(
        "rapid_start_with_marks_and_no_loss_exits_at_half",
        "rapid-no-jump",
        "+40ms
         send 30
         +40ms
         ack 0-29
         send 90
         +40ms
         ack 30-39 ce 3
         ack 40-119 ce 9
         send 2
         +40ms
         ack 120-121",
    );
}

#[test]
fn rapid_start_of_the_editors_copy_paces_over_a_round_trip_and_keeps_more_at_a_mark() {
    // §3.1.2: a window a round trip; §3.3.1: 0.8 × pre.
    table(
        "rapid_start_of_the_editors_copy_paces_over_a_round_trip_and_keeps_more_at_a_mark",
        "rapid-start:burst=2p,startup-pacing-gain=1,startup-beta-ecn=0.8",
        "+40ms
         send 10
         +40ms
         ack 0-9
         send 60
         +40ms
         ack 10-69
         send 120
         +40ms
         ack 70-79 ce 3
         ack 80-189 ce 9
         send 2
         +40ms
         ack 190-191",
    );
}

#[test]
fn rapid_start_with_heavy_loss_stops_at_the_floor() {
    // A third of beta × pre, 15 packets.
    table(
        "rapid_start_with_heavy_loss_stops_at_the_floor",
        "rapid-no-jump",
        "+40ms
         send 30
         +40ms
         ack 0-29
         send 90
         +40ms
         ack 119 lose 30-116
         lose 117-118
         send 1
         +40ms
         ack 120",
    );
}

#[test]
fn rapid_start_reduces_normally_when_application_limited() {
    table(
        "rapid_start_reduces_normally_when_application_limited",
        "rapid-no-jump",
        "+40ms
         send 30
         +40ms
         ack 0-29
         send 20
         dry
         +40ms
         ack 33-49 lose 30-32",
    );
}

#[test]
fn rapid_start_variant_quicly() {
    // The threshold follows losses alone, so slow start goes on up to it after recovery.
    table(
        "rapid_start_variant_quicly",
        "rapid-start:variant=quicly,congestion=pico,initial-window=30p,beta=0.7",
        "+40ms
         send 1
         +40ms
         ack 0
         send 60
         +40ms
         ack 1-60
         send 178
         +40ms
         ack 61-100 lose 101-140
         ack 141-200 lose 201-238
         send 3
         +40ms
         ack 239-241",
    );
}

#[test]
fn hystart_slows_down_then_stops_without_a_loss() {
    table(
        "hystart_slows_down_then_stops_without_a_loss",
        "hystart:initial-window=16p,congestion=newreno",
        "+40ms
         send 16
         +40ms
         ack 0
         ack 1
         ack 2
         ack 3
         ack 4
         ack 5
         ack 6
         ack 7
         ack 8
         ack 9
         ack 10
         ack 11
         ack 12
         ack 13
         ack 14
         ack 15
         send 32
         +46ms
         ack 16-19
         ack 20-23
         ack 24-27
         ack 28-31
         ack 32-35
         ack 36-39
         ack 40-43
         ack 44-47
         send 16
         +46ms
         ack 48-63
         send 16
         +46ms
         ack 64-79
         send 16
         +46ms
         ack 80-95
         send 16
         +46ms
         ack 96-111
         send 16
         +46ms
         ack 112-127
         send 16
         +46ms
         ack 128-143",
    );
}

#[test]
fn newreno_grows_by_a_datagram_a_window() {
    table(
        "newreno_grows_by_a_datagram_a_window",
        "newreno:initial-window=10p",
        "+40ms
         send 10
         +40ms
         ack 3-9 lose 0-2
         send 5
         +40ms
         ack 10-14
         send 5
         +40ms
         ack 15-19
         send 6
         +40ms
         ack 20-25
         send 6
         +40ms
         ack 26-31",
    );
}

#[test]
fn losses_of_packets_sent_before_recovery_have_no_effect() {
    // Packet 21 was sent after recovery began, so its loss is a new event; of its frame, 16 to 19 do not count for growth.
    table(
        "losses_of_packets_sent_before_recovery_have_no_effect",
        "newreno:initial-window=20p",
        "+40ms
         send 20
         +40ms
         ack 3-5 lose 0-2
         ack 9-12 lose 6-8
         ack 13-15
         send 4
         +40ms
         ack 16-20 22-23 lose 21",
    );
}

#[test]
fn persistent_congestion_restarts_from_the_minimum_window() {
    table(
        "persistent_congestion_restarts_from_the_minimum_window",
        "cubic:initial-window=20p",
        "+40ms
         send 20
         +40ms
         ack 3-19 lose 0-2
         send 14
         +2s
         persistent lose 20-33
         send 2
         +40ms
         ack 34-35
         send 4
         +40ms
         ack 36-39
         send 8
         +40ms
         ack 40-47
         send 10
         +40ms
         ack 48-57",
    );
}

#[test]
fn spurious_loss_is_undone_when_all_of_it_arrives() {
    table(
        "spurious_loss_is_undone_when_all_of_it_arrives",
        "cubic:initial-window=20p",
        "+40ms
         send 20
         +40ms
         ack 5-9 lose 0-2
         late 0-1
         late 2
         send 5
         +40ms
         ack 10-24",
    );
}

#[test]
fn spurious_losses_of_several_round_trips_are_undone_together() {
    table(
        "spurious_losses_of_several_round_trips_are_undone_together",
        "cubic:initial-window=20p",
        "+40ms
         send 20
         +40ms
         ack 5-9 lose 0-2
         send 5
         +40ms
         ack 23-24 lose 20-21
         late 0-2
         late 20-21
         send 5
         +40ms
         ack 10-19
         ack 22-29",
    );
}

#[test]
fn spurious_loss_beside_a_real_one_is_not_undone() {
    table(
        "spurious_loss_beside_a_real_one_is_not_undone",
        "cubic:initial-window=20p",
        "+40ms
         send 20
         +40ms
         ack 5-9 lose 0-2
         late 0-1
         ack 10-19",
    );
}

#[test]
fn spurious_loss_switches_rapid_start_to_slow_start() {
    table(
        "spurious_loss_switches_rapid_start_to_slow_start",
        "rapid-no-jump",
        "+40ms
         send 30
         +40ms
         ack 3-29 lose 0-2
         late 0-2
         send 30
         +40ms
         ack 30-59",
    );
}

#[test]
fn marked_packets_reduce_the_window_once_per_round_trip() {
    table(
        "marked_packets_reduce_the_window_once_per_round_trip",
        "cubic:beta-ecn=0.85,initial-window=20p",
        "+40ms
         send 20
         +40ms
         ack 0-4 ce 2
         ack 5-9 ce 2
         ack 10-19 ce 3
         send 17
         +40ms
         ack 20-24 ce 1",
    );
}

#[test]
fn cubic_fast_convergence_applies_below_the_previous_maximum() {
    table(
        "cubic_fast_convergence_applies_below_the_previous_maximum",
        "cubic:initial-window=100p",
        "+40ms
         send 100
         +40ms
         ack 1-99 lose 0
         send 70
         +40ms
         ack 100-169
         send 70
         +40ms
         ack 171-239 lose 170
         send 40
         +40ms
         ack 240-279
         +4s
         send 48
         +40ms
         ack 280-327",
    );
}

#[test]
fn window_never_falls_below_the_minimum() {
    table(
        "window_never_falls_below_the_minimum",
        "newreno:initial-window=4p",
        "+40ms
         send 4
         +40ms
         ack 1-3 lose 0
         send 2
         +40ms
         ack 5 lose 4
         send 2
         +40ms
         ack 7 lose 6",
    );
}

#[test]
fn window_does_not_grow_while_application_limited() {
    // Half a window in flight counts as in use in slow start.
    table(
        "window_does_not_grow_while_application_limited",
        "slow-start:initial-window=20p",
        "+40ms
         send 5
         dry
         +40ms
         ack 0-4
         send 10
         dry
         +40ms
         ack 5-14
         send 30
         +40ms
         ack 15-44",
    );
}

#[test]
fn window_grows_while_application_limited_if_configured() {
    table(
        "window_grows_while_application_limited_if_configured",
        "slow-start:initial-window=20p,respect-app-limited=off",
        "+40ms
         send 5
         dry
         +40ms
         ack 0-4",
    );
}

#[test]
fn initial_window_follows_the_datagram_size_until_it_is_used() {
    table(
        "initial_window_follows_the_datagram_size_until_it_is_used",
        "newreno:initial-window=10p",
        "mtu 1400
         send 10
         +40ms
         ack 0-9
         mtu 1200",
    );
}

/// Two round trips, a pause of one second, and a long one.
fn idle(name: &str, policy: &str) {
    table(
        name,
        &format!("slow-start:initial-window=20p,idle={policy}"),
        "+40ms
         send 20
         +40ms
         ack 0-19
         send 40
         +40ms
         ack 20-59
         idle 1s
         idle 700s",
    );
}

#[test]
fn idle_keep() {
    idle("idle_keep", "keep");
}

#[test]
fn idle_rfc9002() {
    idle("idle_rfc9002", "rfc9002");
}

#[test]
fn idle_rfc5681() {
    idle("idle_rfc5681", "rfc5681");
}

#[test]
fn idle_rfc2861() {
    idle("idle_rfc2861", "rfc2861");
}

#[test]
fn bbr_fills_the_pipe_and_drains_it() {
    table(
        "bbr_fills_the_pipe_and_drains_it",
        "bbr:initial-window=10p",
        "+40ms
         send 10
         +40ms
         ack 0-9
         send 20
         +40ms
         ack 10-29
         send 40
         +80ms
         ack 30-69
         send 40
         +80ms
         ack 70-109
         send 40
         +80ms
         ack 110-149
         send 40
         +80ms
         ack 150-189",
    );
}

/// Found by fuzzing: a cut that the minimum window swallowed went unnoticed, so the datagram size still set the window
/// and the statistics.
#[test]
fn initial_window_is_fixed_by_a_reduction_without_effect() {
    table(
        "initial_window_is_fixed_by_a_reduction_without_effect",
        "newreno:initial-window=2p",
        "+40ms
         send 2
         +40ms
         ack 1 lose 0
         mtu 1400
         mtu 1000
         late 0",
    );
}
