//! What a controller costs: a round of a hundred packets in flight, of which each ACK frame acknowledges two, and the
//! pacer. Figures are per ACK frame; one packet costs half of it.
//!
//! `cargo bench -p lastbyte-congestion` measures time. For instructions, see `examples/cost.rs`.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use lastbyte_congestion::{Bandwidth, Pacer, Pacing, Time};

#[path = "../examples/cost/steady.rs"]
mod steady;

fn controllers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ack_of_two_packets");
    for (label, spec, loss) in steady::CASES {
        let mut flow = steady::Flow::new(spec, *loss);
        group.bench_function(*label, |bencher| bencher.iter(|| flow.frame()));
    }
    group.finish();
}

fn pacer(criterion: &mut Criterion) {
    let pacing = Pacing::at(Bandwidth::from_bits_per_second(1_000_000_000), 1452);
    let mut pacer = Pacer::new();
    let mut now = Time::ZERO;
    criterion.bench_function("pacer_train_of_ten", |bencher| {
        bencher.iter(|| {
            now = now + Duration::from_micros(120);
            let budget = pacer.budget(now, black_box(&pacing));
            pacer.on_sent(now, budget.min(14_520), &pacing);
            black_box(pacer.next_release(now, &pacing))
        });
    });
}

criterion_group!(benches, controllers, pacer);
criterion_main!(benches);
