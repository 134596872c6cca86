//! A log as H2O writes it.

use std::fmt::Write as _;

/// Connections of H2O's: each flag of its startups, large and small objects, some outside the experiment.
pub(crate) fn log() -> String {
    let mut log = String::new();
    for at in 0..400_u32 {
        let (rapid, jump) = (at % 2, at / 2 % 2 * 44_160);
        let (paced, size) = (u32::from(at % 17 != 0), 100_000 + at * 997 % 900_000);
        let ttlb = 120 + at * 37 % 300 - rapid * 20;
        writeln!(
            log,
            r#"{{"conn_id":{at},"time":{time},"num-rapid-start":{rapid},"jumpstart.cwnd":{jump},"jumpstart.prev-rate":0,"num-jumpstart-applicable":1,"num-paced":{paced},"content_length":{size},"num-packets.sent":{sent},"num-packets.lost":{lost},"ttlb":{ttlb}}}"#,
            time = 1_773_000_000_000_u64 + u64::from(at) * 1000,
            sent = size / 1400,
            lost = at % 5,
        )
        .expect("a text grows");
    }
    log
}
