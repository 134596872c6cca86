use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use super::{
    Gone, Piece,
    channel::{Weigh, channel},
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

impl Weigh for Heavy {
    fn weight(&self) -> usize {
        self.0
    }
}

#[test]
fn a_full_queue_holds_its_writer_back_until_it_is_read() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let (sender, receiver) = channel(10);
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
fn a_writer_is_woken_when_nobody_reads_any_more() {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let (sender, receiver) = channel::<Piece>(1);
    sender.push(Piece::End);
    assert_eq!(sender.poll_gone(&mut context), Poll::Pending);
    assert!(sender.poll_ready(&mut context).is_pending());
    drop(receiver);
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert_eq!(sender.poll_ready(&mut context), Poll::Ready(Err(Gone)));
    assert_eq!(sender.poll_gone(&mut context), Poll::Ready(()));
}

/// A peer that sends one byte at a time fills no more memory than another.
#[test]
fn pieces_of_one_byte_have_a_bound_too() {
    let mut context = Context::from_waker(Waker::noop());
    let (sender, _receiver) = channel(super::REQUEST_BOUND);
    let mut count = 0;
    while sender.poll_ready(&mut context).is_ready() {
        sender.push(Piece::Data(bytes::Bytes::from_static(b"x")));
        count += 1;
    }
    assert_eq!(count, super::REQUEST_BOUND.div_ceil(129));
}
