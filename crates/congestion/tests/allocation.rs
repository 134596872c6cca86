//! A controller allocates nothing after its first loss, whatever happens to it. For that one it makes room to undo episodes.

use lastbyte_testkit::{CountingAllocator, allocation_count};

#[path = "../examples/cost/steady.rs"]
mod steady;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_controller_does_not_allocate_after_its_first_loss() {
    for (label, spec, loss) in steady::CASES {
        let mut flow = steady::Flow::new(spec, *loss);
        flow.frame();
        flow.lose();
        let before = allocation_count();
        for round in 0..5000 {
            flow.frame();
            if round % 500 == 0 {
                flow.lose();
            }
        }
        assert_eq!(allocation_count() - before, 0, "{label}");
    }
    // The count counts.
    let before = allocation_count();
    drop(std::hint::black_box(Box::new(1)));
    assert!(allocation_count() > before);
}
