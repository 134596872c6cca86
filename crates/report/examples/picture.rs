//! Draws four made-up arms over 55 Mb/s, 39 ms and a queue of 50 ms: `transfer.html`, `.svg` and `.png`, in the folder that
//! is given, or here.
//!
//!     cargo run --release -p lastbyte-report --example picture -- /tmp

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example is a program, at the edge"
)]

use std::{collections::VecDeque, error::Error, path::PathBuf};

use lastbyte_report::transfer::{Arm, Guides, Picture, Point};

const PACKET: f64 = 1252.0;
const RATE: f64 = 55e6;
const RTT: f64 = 39.0;
const QUEUE: f64 = RATE / 8.0 * 0.050;
const SIZE: f64 = 1.6e6;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    let mut arms = vec![
        transfer(
            "slow-start",
            &Rules {
                jump: 30.0,
                over: 0.5,
                growth: 2.0,
                in_proportion: false,
            },
        ),
        transfer(
            "jumpstart",
            &Rules {
                jump: 60.0,
                over: 1.0,
                growth: 2.0,
                in_proportion: false,
            },
        ),
        transfer(
            "rapid-no-jump",
            &Rules {
                jump: 30.0,
                over: 0.5,
                growth: 3.0,
                in_proportion: true,
            },
        ),
        transfer(
            "rapid-start",
            &Rules {
                jump: 60.0,
                over: 1.0,
                growth: 3.0,
                in_proportion: true,
            },
        ),
    ];
    if let Some(count) = std::env::args().nth(2) {
        arms.truncate(count.parse()?);
    }
    let picture = Picture {
        title: "1.6 MB over VDSL, four ways to start".into(),
        subtitle: "55 Mb/s, round trip 39 ms, queue 50 ms (drop-tail), no random loss, seed 1"
            .into(),
        arms,
        guides: Guides {
            rate: Some(RATE),
            queue_limit: Some(QUEUE),
            rtt: Some(RTT),
        },
    };
    std::fs::write(folder.join("transfer.html"), picture.html())?;
    std::fs::write(folder.join("transfer.svg"), picture.svg())?;
    std::fs::write(folder.join("transfer.png"), picture.png()?)?;
    println!("{}", folder.join("transfer.html").display());
    Ok(())
}

/// How an arm starts, and what it does about losses.
struct Rules {
    /// Packets of the first flight.
    jump: f64,
    /// Round trips that the first flight takes.
    over: f64,
    /// Growth of the window a round trip.
    growth: f64,
    /// Whether the window in recovery follows what is delivered.
    in_proportion: bool,
}

struct Packet {
    upto: f64,
    sent: f64,
    /// When the sender hears of it, or of those behind it if it was dropped.
    back: f64,
    dropped: bool,
    fresh: bool,
}

/// A sender in steps of 50 µs: enough to look like one, and no more.
#[expect(
    clippy::too_many_lines,
    reason = "a loop of two halves is easier to follow in one piece"
)]
fn transfer(label: &str, rules: &Rules) -> Arm {
    const STEP: f64 = 0.05;
    let mut arm = Arm::new(label);
    let start = RTT * 1.02 + 1.3;
    arm.events.push((start, "request".into()));
    let mut window = rules.jump * PACKET;
    let (mut now, mut sent, mut acked, mut fresh_left, mut again) =
        (start, 0.0, 0.0, SIZE, 0.0_f64);
    let (mut in_flight, mut credit, mut queue_empty_at) = (0.0, PACKET, 0.0_f64);
    let mut smoothed = RTT;
    let mut flight: VecDeque<Packet> = VecDeque::new();
    let (mut delivered, mut recovery_until, mut recovery_from) = (0.0, 0.0, None);
    let (mut startup, mut ssthresh, mut lost_count) = (true, f64::INFINITY, 0.0);
    let mut first_byte = None;
    while delivered < SIZE && now < 3000.0 {
        // What comes back.
        while flight.front().is_some_and(|packet| packet.back <= now) {
            let Some(packet) = flight.pop_front() else {
                break;
            };
            in_flight -= PACKET;
            if packet.dropped {
                lost_count += 1.0;
                again += PACKET;
                arm.lost.push(Point::new(now, packet.upto));
                if recovery_from.is_none() {
                    recovery_from = Some(now);
                    recovery_until = sent;
                    if startup {
                        arm.events.push((now, "startup ends".into()));
                        startup = false;
                    }
                    window *= if rules.in_proportion { 5.0 / 6.0 } else { 0.5 };
                } else if rules.in_proportion {
                    window = (window - PACKET * 5.0 / 6.0).max(10.0 * PACKET);
                }
                ssthresh = window;
            } else {
                acked += PACKET;
                delivered += PACKET * f64::from(u8::from(packet.fresh || again <= 0.0));
                if !packet.fresh && again > 0.0 {
                    delivered += PACKET;
                }
                arm.acked.push(Point::new(now, acked));
                // A receiver is not always as quick.
                let rtt = now - packet.sent + (acked / 7919.0).sin().abs() * 1.5;
                smoothed += (rtt - smoothed) / 8.0;
                arm.rtt.push(Point::new(now, rtt));
                arm.rtt_smoothed.push(Point::new(now, smoothed));
                if let Some(from) = recovery_from {
                    if rules.in_proportion {
                        window = (window - PACKET / 3.0).max(10.0 * PACKET);
                    }
                    if packet.upto > recovery_until {
                        arm.recovery.push((from, now));
                        recovery_from = None;
                    }
                    ssthresh = window;
                } else if window < ssthresh {
                    window += PACKET * (rules.growth - 1.0);
                    if rtt > RTT * 1.3 && rules.growth > 2.0 {
                        window -= PACKET;
                    }
                } else {
                    window += PACKET * PACKET / window;
                }
            }
        }
        // What leaves.
        let first_flight = now < start + RTT;
        let rate = if first_flight {
            rules.jump * PACKET / (RTT * rules.over)
        } else {
            window * if startup { 2.0 } else { 1.25 } / smoothed
        };
        credit = (credit + rate * STEP).min(10.0 * PACKET);
        while credit >= PACKET && in_flight + PACKET <= window && (fresh_left > 0.0 || again > 0.0)
        {
            credit -= PACKET;
            let fresh = again <= 0.0;
            *(if fresh { &mut fresh_left } else { &mut again }) -= PACKET;
            sent += PACKET;
            in_flight += PACKET;
            let at_queue = now + 1.0;
            let depth = ((queue_empty_at - at_queue) * RATE / 8000.0).max(0.0);
            let dropped = depth + PACKET > QUEUE;
            if dropped {
                arm.drops.push(Point::new(at_queue, depth));
            } else {
                queue_empty_at = queue_empty_at.max(at_queue) + PACKET * 8000.0 / RATE;
                first_byte.get_or_insert(queue_empty_at + RTT / 2.0);
            }
            let back = queue_empty_at.max(at_queue) + RTT - 1.0 + if dropped { 0.7 } else { 0.0 };
            arm.sent.push(Point::new(now, sent));
            flight.push_back(Packet {
                upto: sent,
                sent: now,
                back,
                dropped,
                fresh,
            });
        }
        let depth = ((queue_empty_at - now - 1.0) * RATE / 8000.0).max(0.0);
        arm.queue.push(Point::new(now + 1.0, depth));
        arm.window.push(Point::new(now, window));
        arm.in_flight.push(Point::new(now, in_flight));
        arm.pacing.push(Point::new(now, rate * 8000.0));
        now += STEP;
    }
    if let Some(from) = recovery_from {
        arm.recovery.push((from, now));
    }
    arm.events
        .extend(first_byte.map(|ms| (ms, "first byte".into())));
    arm.events.push((now - RTT / 2.0, "last byte".into()));
    let share = lost_count * PACKET / sent * 100.0;
    arm.note = format!(
        "last byte after {:.0} ms, {share:.1} % lost",
        now - RTT / 2.0
    );
    arm
}
