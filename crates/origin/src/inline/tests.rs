use core::{future::poll_fn, task::Poll};
use std::thread;

use super::*;
use crate::{
    budget::{Budget, Limits},
    exchange::{Piece, exchange},
};

#[test]
fn a_task_that_wakes_itself_goes_on() {
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    run(async move {
        let mut left = 3;
        poll_fn(|context| {
            left -= 1;
            context.waker().wake_by_ref();
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        end.store(true, Ordering::Relaxed);
    });
    assert!(ended.load(Ordering::Relaxed));
}

/// Each piece is taken by one of the threads that push, and none is left.
#[test]
fn pieces_of_several_threads_are_all_taken() {
    for _ in 0..200 {
        let budget = Budget::new(Limits::default()).connection();
        let (exchange, channels) = exchange(&budget);
        let taken = Arc::new(Mutex::new(0));
        let count = Arc::clone(&taken);
        let mut incoming = exchange.incoming;
        run(async move {
            while incoming.next().await == Some(Piece::End) {
                *count.lock().expect("no panic") += 1;
            }
        });
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        channels.incoming.push(Piece::End);
                    }
                });
            }
        });
        assert_eq!(*taken.lock().expect("no panic"), 80);
    }
}
