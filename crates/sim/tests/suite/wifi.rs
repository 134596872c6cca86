//! Transfers over Wi-Fi, where a transmission carries what waits.

use core::time::Duration;

use lastbyte_link::{Capacity, Rate, Wifi};
use lastbyte_scenario::Path;

use crate::paths::{bottleneck, lost, run, transfer, ttlb_ms};

/// 130 Mb/s and 20 ms, in both directions.
fn wifi(packets: u16) -> Path {
    let mut path = bottleneck(130, 20, 50);
    for link in [&mut path.down, &mut path.up] {
        link.capacity = Capacity::Wifi(Wifi {
            rate: Rate::from_bits_per_second(130_000_000),
            packets,
            airtime: Duration::from_millis(4),
        });
    }
    path
}

#[test]
fn a_transfer_is_as_fast_as_its_aggregates_permit() {
    let time = |packets| {
        let outcome = run(&transfer(wifi(packets), "cubic", 20_000_000));
        assert!(lost(&outcome) < 2000, "{}", lost(&outcome));
        ttlb_ms(&outcome)
    };
    let (single, full) = (time(1), time(64));
    // A packet of 1280 bytes lasts 79 us, and what surrounds a transmission 198.5 us in the mean.
    let least = |packets: f64| {
        let packet = 1280.0 * 8.0 / 130.0;
        20e6 * 8.0 / 130e3 * (packet + 198.5 / packets) / packet
    };
    assert!((1.0..1.15).contains(&(single / least(1.0))), "{single}");
    // 4 ms hold 51 packets.
    assert!((1.0..1.15).contains(&(full / least(51.0))), "{full}");
    assert!(single > 3.0 * full);
}

#[test]
fn acknowledgments_that_wait_arrive_together() {
    // A transmission on the way up then carries several, and the medium is in use for a shorter time.
    let busy = |packets| run(&transfer(wifi(packets), "cubic", 2_000_000)).up.busy;
    let (single, full) = (busy(1), busy(64));
    assert!(full * 2 < single, "{full:?} {single:?}");
}
