use lastbyte_wire::VarInt;

use super::*;

fn id(number: u32) -> StreamId {
    VarInt::from_u32(number).into()
}

#[derive(Default)]
struct Bench {
    scheduler: Scheduler,
    places: std::collections::BTreeMap<StreamId, Option<Place>>,
}

impl Bench {
    fn put(&mut self, number: u32, wanted: Option<(Priority, Class)>) {
        let place = self.places.entry(id(number)).or_default();
        self.scheduler.place(id(number), place, wanted);
    }

    fn fresh(&mut self, number: u32, urgency: u8, incremental: bool) {
        self.put(
            number,
            Some((Priority::new(urgency, incremental), Class::Fresh)),
        );
    }

    /// The streams of the next `count` frames, each of which leaves more data to send.
    fn order(&mut self, count: usize) -> Vec<u64> {
        let mut order = Vec::new();
        while order.len() < count
            && let Some(id) = self.scheduler.next(true)
        {
            self.scheduler
                .on_sent(id, self.places.get_mut(&id).expect("within the limits"));
            order.push(id.get());
        }
        order
    }
}

#[test]
fn rfc9218_10_lower_urgency_goes_first() {
    let mut bench = Bench::default();
    for (number, urgency) in [(0, 5), (4, 3), (8, 7), (12, 0)] {
        bench.fresh(number, urgency, false);
    }
    bench.put(16, Some((Priority::CRITICAL, Class::Fresh)));
    let mut order = Vec::new();
    while let Some(next) = bench.scheduler.next(true) {
        order.push(next.get());
        bench.put(next.get() as u32, None);
    }
    assert_eq!(order, [16, 12, 4, 0, 8]);
    assert!(!bench.scheduler.has_fresh());
}

#[test]
fn rfc9218_10_streams_that_are_not_incremental_go_in_order_of_ids() {
    let mut bench = Bench::default();
    for number in [8, 0, 4] {
        bench.fresh(number, 3, false);
    }
    assert_eq!(bench.order(3), [0, 0, 0]);
    bench.put(0, None);
    assert_eq!(bench.order(2), [4, 4]);
}

#[test]
fn rfc9218_10_incremental_streams_take_turns() {
    let mut bench = Bench::default();
    for number in [8, 0, 4] {
        bench.fresh(number, 3, true);
    }
    assert_eq!(bench.order(7), [8, 0, 4, 8, 0, 4, 8]);
    bench.fresh(12, 3, true);
    assert_eq!(bench.order(5), [0, 4, 8, 12, 0]);
}

#[test]
fn both_kinds_of_one_urgency_alternate() {
    let mut bench = Bench::default();
    for number in [0, 4] {
        bench.fresh(number, 3, false);
        bench.fresh(number + 8, 3, true);
    }
    assert_eq!(bench.order(6), [0, 8, 0, 12, 0, 8]);
}

#[test]
fn priority_changes_at_any_time() {
    let mut bench = Bench::default();
    bench.fresh(0, 3, false);
    bench.fresh(4, 3, false);
    bench.fresh(4, 2, true);
    assert_eq!(bench.order(2), [4, 4]);
    bench.fresh(4, 7, false);
    assert_eq!(bench.order(2), [0, 0]);
    assert_eq!(bench.scheduler.fresh, 2);
}

#[test]
fn retransmissions_go_first_within_their_urgency_and_need_no_credit() {
    let mut bench = Bench::default();
    bench.fresh(0, 3, false);
    bench.fresh(4, 3, true);
    bench.put(8, Some((Priority::new(3, false), Class::Unmetered)));
    bench.fresh(12, 1, false);
    assert_eq!(bench.scheduler.next(true), Some(id(12)));
    assert_eq!(bench.scheduler.next(false), Some(id(8)));
    bench.put(12, None);
    assert_eq!(bench.scheduler.next(true), Some(id(8)));
    bench.put(8, None);
    assert_eq!(bench.scheduler.next(false), None);
    assert!(bench.scheduler.has_fresh() && !bench.scheduler.has_unmetered());
}

/// Removed one after the other, the streams come in the order in which they are listed, kinds apart.
#[test]
fn the_first_of_the_streams_with_new_data_sends_next() {
    let mut bench = Bench::default();
    for (number, urgency, incremental) in [
        (0, 3, true),
        (4, 3, false),
        (8, 1, false),
        (12, 3, true),
        (16, 7, true),
        (20, 3, false),
    ] {
        bench.fresh(number, urgency, incremental);
    }
    let listed = |bench: &Bench| {
        bench
            .scheduler
            .fresh()
            .map(StreamId::get)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&bench), [8, 4, 20, 0, 12, 16]);
    bench.put(8, None);
    assert_eq!(bench.order(1), [4]);
    // Now it is the turn of those that share.
    assert_eq!(listed(&bench), [0, 12, 4, 20, 16]);
    let first = |bench: &Bench| bench.scheduler.fresh().next();
    while let Some(first) = first(&bench) {
        assert_eq!(bench.scheduler.next(true), Some(first));
        bench.order(1);
        bench.put(first.get() as u32, None);
    }
    assert_eq!(bench.scheduler.next(true), None);
}
