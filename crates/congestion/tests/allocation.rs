//! A controller allocates nothing after its first loss, whatever happens to it. For that one it makes room to undo episodes.

#![expect(unsafe_code, reason = "an allocator that counts must be an allocator")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

#[path = "../examples/cost/steady.rs"]
mod steady;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator; counting touches a thread-local without a destructor, which does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_controller_allocates_nothing_after_its_first_loss() {
    for (label, spec, loss) in steady::CASES {
        let mut flow = steady::Flow::new(spec, *loss);
        flow.frame();
        flow.lose();
        let before = ALLOCATIONS.get();
        for round in 0..5000 {
            flow.frame();
            if round % 500 == 0 {
                flow.lose();
            }
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{label}");
    }
    // The count counts.
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert!(ALLOCATIONS.get() > before);
}
