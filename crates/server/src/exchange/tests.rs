use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::budget::{Budget, ConnectionBudget, Limits};

use super::{
    ExchangeAborted, Piece,
    channel::{Size, channel},
};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Heavy(usize);

impl Size for Heavy {
    fn size(&self) -> usize {
        self.0
    }
}

/// The budget of a connection with this limit in bytes.
fn room(connection: usize) -> Arc<ConnectionBudget> {
    Budget::new(Limits {
        connection,
        ..Limits::default()
    })
    .connection()
}

#[test]
fn a_full_queue_blocks_its_writer_until_it_is_read() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let (sender, receiver) = channel(10, room(1 << 20));
    assert_eq!(receiver.poll_next(&mut context), Poll::Pending);
    for heavy in [4, 5, 6] {
        assert_eq!(sender.poll_ready(&mut context), Poll::Ready(Ok(())));
        sender.push(Heavy(heavy));
    }
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "the reader, once");
    assert_eq!(sender.poll_ready(&mut context), Poll::Pending);
    assert_eq!(
        receiver.poll_next(&mut context),
        Poll::Ready(Some(Heavy(4)))
    );
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "11 are still too many");
    assert_eq!(
        receiver.poll_next(&mut context),
        Poll::Ready(Some(Heavy(5)))
    );
    assert_eq!(count.0.load(Ordering::Relaxed), 2, "the writer");
    assert_eq!(sender.poll_ready(&mut context), Poll::Ready(Ok(())));
    drop(sender);
    assert_eq!(
        receiver.poll_next(&mut context),
        Poll::Ready(Some(Heavy(6)))
    );
    assert_eq!(receiver.poll_next(&mut context), Poll::Ready(None));
}

#[test]
fn a_writer_is_woken_when_the_reader_is_dropped() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let (sender, receiver) = channel::<Piece>(1, room(1 << 20));
    sender.push(Piece::End);
    assert_eq!(sender.poll_aborted(&mut context), Poll::Pending);
    assert!(sender.poll_ready(&mut context).is_pending());
    drop(receiver);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(
        sender.poll_ready(&mut context),
        Poll::Ready(Err(ExchangeAborted))
    );
    assert_eq!(sender.poll_aborted(&mut context), Poll::Ready(()));
}

/// A peer that sends one byte at a time uses no more memory than another.
#[test]
fn the_number_of_one_byte_pieces_is_bounded() {
    let mut context = Context::from_waker(Waker::noop());
    let (sender, _receiver) = channel(super::REQUEST_BOUND, room(1 << 20));
    let mut count = 0;
    while sender.poll_ready(&mut context).is_ready() {
        sender.push(Piece::Data(bytes::Bytes::from_static(b"x")));
        count += 1;
    }
    assert_eq!(count, super::REQUEST_BOUND.div_ceil(129));
}

/// Two responses on one connection: the first uses the budget up, the other advances piece by piece.
#[test]
fn a_queue_waits_for_the_budget_of_its_connection_unless_it_is_empty() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let budget = room(100);
    let (first, first_out) = channel(1000, Arc::clone(&budget));
    let (second, second_out) = channel(1000, Arc::clone(&budget));
    for _ in 0..2 {
        assert_eq!(first.poll_ready(&mut context), Poll::Ready(Ok(())));
        first.push(Heavy(50));
    }
    assert_eq!(first.poll_ready(&mut context), Poll::Pending);
    assert_eq!(second.poll_ready(&mut context), Poll::Ready(Ok(())));
    second.push(Heavy(10));
    assert_eq!(second.poll_ready(&mut context), Poll::Pending);
    // Bytes taken out and not acknowledged still count.
    let taken = second_out.poll_next(&mut context);
    assert_eq!(taken, Poll::Ready(Some(Heavy(10))));
    assert_eq!(count.0.load(Ordering::Relaxed), 1, "it is empty");
    second_out.set_held(10);
    assert_eq!(second.poll_ready(&mut context), Poll::Pending);
    second_out.set_held(0);
    assert_eq!(count.0.load(Ordering::Relaxed), 2, "it is empty again");
    assert_eq!(second.poll_ready(&mut context), Poll::Ready(Ok(())));
    drop(first_out);
    assert!(budget.has_room(), "data without a reader is not counted");
}
