use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use crate::budget::{Budget, ConnectionBudget, Limits};

use super::{
    ExchangeAborted, Piece, ResponsePart,
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

#[test]
fn the_last_bytes_and_the_end_of_a_response_are_sent_together() {
    let (exchange, channels) = super::exchange(&room(1 << 20));
    let mut context = Context::from_waker(Waker::noop());
    let mut outgoing = exchange.outgoing;
    // The last piece fills the channel: an end that waited for room would come later.
    let piece = bytes::Bytes::from(vec![0; super::PIECE_LEN]);
    let mut size = 0;
    while size + piece.len() < super::RESPONSE_BOUND {
        let sent = std::pin::pin!(outgoing.data(piece.clone())).poll(&mut context);
        assert_eq!(sent, Poll::Ready(Ok(())));
        size += ResponsePart::Data(piece.clone()).size();
    }
    let last = bytes::Bytes::from(vec![1; super::PIECE_LEN]);
    let sent = std::pin::pin!(outgoing.end_with(last.clone())).poll(&mut context);
    assert_eq!(sent, Poll::Ready(Ok(())));
    let mut parts = Vec::new();
    while let Poll::Ready(Some(part)) = channels.outgoing.poll_next(&mut context) {
        parts.push(part);
    }
    assert!(matches!(parts.pop(), Some(ResponsePart::End(None))));
    assert!(matches!(parts.pop(), Some(ResponsePart::Data(bytes)) if bytes == last));
}

#[test]
fn what_a_reader_keeps_counts_and_does_not_block_the_writer() {
    let budget = room(10);
    let mut context = Context::from_waker(Waker::noop());
    let (sender, receiver) = channel(10, Arc::clone(&budget));
    receiver.set_kept(20);
    assert!(!budget.has_room());
    assert_eq!(sender.poll_ready(&mut context), Poll::Ready(Ok(())));
    sender.push(Heavy(1));
    assert_eq!(sender.poll_ready(&mut context), Poll::Pending);
    receiver.set_kept(5);
    assert_eq!(sender.poll_ready(&mut context), Poll::Ready(Ok(())));
    receiver.set_kept(20);
    drop(receiver);
    assert!(budget.has_room());
}
