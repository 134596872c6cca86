use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::Body as _;
use tokio::{runtime, sync::oneshot};

use super::{RequestBody, Source, Upload};
use crate::{
    budget::{Budget, Limits},
    exchange::{Channels, Piece, exchange},
    proxy::slots::Slots,
};

/// A body of which the client has sent nothing but the first byte.
struct Sending {
    upload: Arc<Upload>,
    channels: Channels,
    budget: Budget,
    _over: oneshot::Sender<Infallible>,
}

impl Sending {
    async fn start() -> Self {
        let budget = Budget::new(Limits::default());
        let (exchange, channels) = exchange(&budget.connection());
        let slot = Slots::new(1).take(Duration::ZERO).await.expect("a slot");
        let (sender, over) = oneshot::channel();
        let source = Source {
            incoming: exchange.incoming,
            client: Arc::clone(&slot.client),
            upstream: Arc::new("http://behind".parse().expect("a server")),
            limit: Duration::from_secs(60),
            over,
        };
        let first = Piece::Data(Bytes::from_static(b"0"));
        Self {
            upload: Upload::new(Some(first), source, None),
            channels,
            budget,
            _over: sender,
        }
    }

    fn push(&self, len: usize) {
        let piece = Piece::Data(vec![1; len].into());
        self.channels.incoming.push(piece);
    }

    fn end(&self) {
        self.channels.incoming.push(Piece::End);
    }
}

/// What a body gives until it has no more: the length of each piece, and whether it was the last; and why it stopped.
fn read(body: &mut RequestBody) -> (Vec<(usize, bool)>, &'static str) {
    let mut context = Context::from_waker(Waker::noop());
    let mut pieces = Vec::new();
    loop {
        match Pin::new(&mut *body).poll_frame(&mut context) {
            Poll::Pending => return (pieces, "waits"),
            Poll::Ready(None) => return (pieces, "end"),
            Poll::Ready(Some(Err(_))) => return (pieces, "error"),
            Poll::Ready(Some(Ok(frame))) => {
                let len = frame.into_data().expect("data").len();
                pieces.push((len, body.is_end_stream()));
            }
        }
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(test);
}

#[test]
fn a_body_up_to_64_kib_can_be_sent_again() {
    run(async {
        let sending = Sending::start().await;
        let mut first = sending.upload.attempt();
        assert!(!first.is_end_stream());
        assert_eq!(read(&mut first), (vec![(1, false)], "waits"));
        for _ in 0..7 {
            sending.push(8 << 10);
        }
        let mut expected = vec![(8 << 10, false); 7];
        assert_eq!(read(&mut first), (expected.clone(), "waits"));
        assert!(sending.upload.is_kept());
        assert!(
            sending.budget.used() > 56 << 10,
            "{}",
            sending.budget.used()
        );
        let mut second = sending.upload.attempt();
        sending.push((8 << 10) - 1);
        sending.end();
        expected.insert(0, (1, false));
        expected.push(((8 << 10) - 1, true));
        assert_eq!(read(&mut first), (vec![], "error"), "it was replaced");
        assert_eq!(read(&mut second), (expected.clone(), "end"));
        // All of it was read from the client.
        let mut third = sending.upload.attempt();
        assert_eq!(read(&mut third), (expected, "end"));
        assert!(sending.upload.is_kept() && third.is_end_stream());
        sending.upload.release();
        assert_eq!(sending.budget.used(), 0);
        assert_eq!(read(&mut third), (vec![], "end"));
    });
}

#[test]
fn a_longer_body_is_not_kept() {
    run(async {
        let sending = Sending::start().await;
        let mut first = sending.upload.attempt();
        for _ in 0..10 {
            sending.push(8 << 10);
        }
        let (pieces, why) = read(&mut first);
        assert_eq!((pieces.len(), why), (11, "waits"));
        assert!(!sending.upload.is_kept());
        assert_eq!(sending.budget.used(), 0);
        sending.end();
        assert_eq!(read(&mut first), (vec![], "end"));
    });
}

#[test]
fn a_response_that_begins_early_does_not_lose_what_is_to_be_sent_again() {
    run(async {
        let sending = Sending::start().await;
        sending.push(10);
        sending.end();
        let whole = (vec![(1, false), (10, true)], "end");
        assert_eq!(read(&mut sending.upload.attempt()), whole);
        let mut second = sending.upload.attempt();
        sending.upload.release();
        assert!(!sending.upload.is_kept());
        assert_eq!(read(&mut second), whole);
    });
}

#[test]
fn a_body_that_the_client_truncates_is_not_sent_again() {
    run(async {
        let Sending {
            upload, channels, ..
        } = Sending::start().await;
        let mut first = upload.attempt();
        drop(channels);
        assert_eq!(read(&mut first), (vec![(1, false)], "error"));
        assert!(!upload.is_kept());
    });
}
