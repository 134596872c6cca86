use super::*;

/// RFC 6937 §4, with segments of one byte: window 20, one loss, threshold 10.
#[test]
fn rfc6937_4_one_segment_is_sent_for_two_delivered() {
    let mut prr = Prr::new(1, 20);
    let mut in_flight = 16; // three were delivered before, one is lost
    let mut sent = Vec::new();
    for _ in 0..16 {
        prr.on_ack(&Delivery {
            delivered: 1,
            in_flight,
            threshold: 10,
            is_good: false,
        });
        let count = prr.window().saturating_sub(in_flight);
        prr.on_sent(count);
        in_flight = (in_flight + count).saturating_sub(1);
        sent.push(count);
    }
    // The first at once, then every second acknowledgment, down to the threshold.
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1]);
}

#[test]
fn rfc6937_3_below_the_threshold_it_sends_what_was_delivered_and_one_more() {
    let mut prr = Prr::new(1, 20);
    prr.on_ack(&Delivery {
        delivered: 12,
        in_flight: 2,
        threshold: 10,
        is_good: false,
    });
    assert_eq!(prr.window(), 10);
    let mut prr = Prr::new(1, 20);
    prr.on_ack(&Delivery {
        delivered: 2,
        in_flight: 2,
        threshold: 10,
        is_good: true,
    });
    assert_eq!(prr.window(), 5);
}
