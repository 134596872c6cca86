use std::sync::atomic::AtomicUsize;

use lastbyte_quic::{
    Time,
    connection::{Config, NetworkPath},
    crypto::plain::PlainClient,
    endpoint::{Endpoint, EndpointConfig},
};
use lastbyte_wire::{Direction, Side};

use super::*;

#[test]
fn a_worker_is_woken_once_for_entries_before_and_after_it_is_known() {
    let mailbox = Arc::new(Mailbox::default());
    let mut endpoint = Endpoint::<()>::new(EndpointConfig::client(), [1; 32]).expect("an endpoint");
    let config = Config::new("cubic".parse().expect("a spec"));
    let address = ([192, 0, 2, 1], 443).into();
    let path = NetworkPath {
        local: address,
        remote: address,
    };
    let crypto = PlainClient::new(1, vec![b"x".to_vec()]);
    let handle = endpoint
        .connect(
            Time::ZERO,
            path,
            "x",
            &Arc::new(config),
            Arc::new(crypto),
            Vec::new(),
        )
        .expect("a connection");
    let [first, second, third] = [0, 1, 2].map(|number| {
        StreamId::new(Side::Client, Direction::Bidirectional, number).expect("in range")
    });
    let woken = Arc::new(AtomicUsize::new(0));
    let of_one = |stream| waker(&mailbox, handle, stream);
    // Before the worker is known.
    of_one(first).wake();
    let count = Arc::clone(&woken);
    mailbox.connect(move || _ = count.fetch_add(1, Ordering::Relaxed));
    let woken = || woken.swap(0, Ordering::Relaxed);
    assert!(woken() > 0);
    assert_eq!(mailbox.take(), [(handle, first)]);
    assert!(!mailbox.is_full() && mailbox.take().is_empty());
    of_one(second).wake_by_ref();
    of_one(third).wake();
    assert_eq!(woken(), 1, "for both");
    assert_eq!(mailbox.take(), [(handle, second), (handle, third)]);
    of_one(first).wake();
    assert_eq!(woken(), 1);
}
