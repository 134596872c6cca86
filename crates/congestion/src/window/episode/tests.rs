use super::*;

fn windows(window: u64) -> Windows {
    Windows {
        window,
        slow_start_threshold: u64::MAX,
    }
}

#[test]
fn an_episode_covers_packets_sent_before_it_until_an_acknowledgment() {
    let mut recovery = Recovery::new();
    assert!(!recovery.is_active() && !recovery.answers(0));
    recovery.begin(Cause::Loss, 10, windows(100), Stage::Startup);
    assert!(recovery.is_active() && recovery.is_first());
    assert!(recovery.answers(9) && !recovery.answers(10));
    recovery.finish();
    assert!(!recovery.is_active() && recovery.answers(9));
}

#[test]
fn an_episode_is_undone_once_all_its_losses_arrive() {
    let mut recovery = Recovery::new();
    recovery.begin(Cause::Loss, 10, windows(100), Stage::Startup);
    assert!(!recovery.on_losses(2));
    recovery.on_avoidance_informed();
    assert_eq!(recovery.on_late(3), None);
    assert_eq!(recovery.on_late(4), Some(0));
    let undo = recovery.undo(0, 50).expect("an event");
    assert_eq!(undo.avoidance_age, Some(0));
    assert_eq!(undo.to, Some((windows(100), Stage::Startup)));
    assert!(!recovery.answers(9));
}

#[test]
fn undoing_an_earlier_episode_passes_its_window_to_the_later() {
    let mut recovery = Recovery::new();
    recovery.begin(Cause::Loss, 10, windows(100), Stage::Startup);
    recovery.on_losses(1);
    recovery.begin(Cause::Loss, 20, windows(50), Stage::Found);
    recovery.on_losses(1);
    assert_eq!(recovery.on_late(5), Some(1));
    assert_eq!(recovery.undo(1, 25).expect("an event").to, None);
    assert_eq!(recovery.on_late(15), Some(0));
    let undo = recovery.undo(0, 25).expect("an event");
    assert_eq!(undo.to, Some((windows(100), Stage::Startup)));
}

#[test]
fn marked_and_outgrown_episodes_are_not_undone() {
    let mut recovery = Recovery::new();
    recovery.begin(Cause::Loss, 10, windows(100), Stage::Found);
    recovery.on_losses(1);
    recovery.on_answered_mark();
    assert_eq!(recovery.on_late(5), None);
    recovery.begin(Cause::Loss, 20, windows(100), Stage::Found);
    recovery.on_losses(1);
    assert_eq!(recovery.on_late(15), Some(0));
    assert!(recovery.undo(0, 100).is_none());
}

#[test]
fn losses_of_a_marked_episode_are_counted_once() {
    let mut recovery = Recovery::new();
    recovery.begin(Cause::EcnCe, 10, windows(100), Stage::Found);
    assert!(recovery.on_losses(1));
    assert!(!recovery.on_losses(1));
}
