//! The parameters drawn from a seed.

use core::time::Duration;

use lastbyte_wire::Side;

use super::Random;

/// The parameters of a run, drawn before the first packet.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) congestion: &'static str,
    pub(crate) path: PathPlan,
    pub(crate) streams: Vec<StreamPlan>,
    /// Windows of a stream and of a connection, in bytes, and the maximum number of open streams.
    pub(crate) windows: Option<(u64, u64, u64)>,
    /// Packets between key updates.
    pub(crate) key_packets: Option<u64>,
    /// Whether the connection resumes another, with 0-RTT that the server accepts or rejects.
    pub(crate) zero_rtt: Option<bool>,
    pub(crate) always_retry: bool,
    pub(crate) ecn: bool,
    pub(crate) ack_frequency: bool,
    /// Datagrams per buffer.
    pub(crate) batch: usize,
    /// When the client moves to another address, and whether the old one is gone.
    pub(crate) migration: Option<(Duration, bool)>,
    pub(crate) ending: Ending,
}

/// How the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client closes after all responses.
    Complete,
    /// An end closes during the transfer.
    Closes(Side, Duration),
    /// An end disappears silently.
    Vanishes(Side, Duration),
    /// The server restarts and keeps only its keys.
    Restarts(Duration),
}

/// A stream that the client opens: bytes both ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamPlan {
    pub(crate) request: u64,
    pub(crate) response: u64,
    pub(crate) cut: Cut,
}

/// How a stream ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    None,
    /// The client resets its request after this number of bytes.
    RequestReset(u64),
    /// The client stops the response after this number of bytes.
    ResponseStopped(u64),
    /// The server resets its response after this number of bytes.
    ResponseReset(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct PathPlan {
    /// Rate, in bytes per second.
    pub(crate) rate: f64,
    /// Queue limit, in bytes.
    pub(crate) queue: f64,
    pub(crate) delay: Duration,
    pub(crate) loss: f64,
    /// Probabilities for each datagram that a loss burst starts, and that it continues.
    pub(crate) burst: Option<(f64, f64)>,
    pub(crate) jitter: Option<Duration>,
    pub(crate) duplication: f64,
    pub(crate) corruption: f64,
    pub(crate) truncation: f64,
    /// Maximum datagram size, and from when it applies.
    pub(crate) mtu: Option<(usize, Duration)>,
    /// Outages: start and length.
    pub(crate) blackout: Option<(Duration, Duration)>,
    /// Interval of NAT rebinding, and whether the IP address changes as well.
    pub(crate) rebinding: Option<(Duration, bool)>,
    /// When the path stops impairing packets.
    pub(crate) faults_until: Duration,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6368_616f_7300_0000);
        let random = &mut random;
        let windows = random.happens(0.25).then(|| {
            let stream = random.magnitude(16.0, 20_000.0) as u64;
            (
                stream,
                stream + random.below(2 * stream),
                1 + random.below(8),
            )
        });
        let count = random.magnitude(1.0, 120.0) as usize;
        let most = windows.map_or(2_000_000.0, |(stream, ..)| 40.0 * stream as f64);
        let streams = (0..count)
            .map(|_| StreamPlan::draw(random, most / count as f64))
            .collect();
        let some_time = |random: &mut Random| ms(random.below(4000));
        let side = random.one_of(&[Side::Client, Side::Server]);
        let ending = match random.below(10) {
            0 => Ending::Closes(side, some_time(random)),
            1 => Ending::Vanishes(side, some_time(random)),
            2 => Ending::Restarts(some_time(random)),
            _ => Ending::Complete,
        };
        Self {
            seed,
            congestion: random.one_of(&[
                "cubic",
                "newreno",
                "bbr",
                "rapid-start",
                "slow-start",
                "jumpstart",
                "rapid-start:variant=quicly,congestion=pico",
                "cubic:initial-window=10p",
            ]),
            path: PathPlan::draw(random),
            streams,
            windows,
            key_packets: random.happens(0.2).then(|| 100 + random.below(500)),
            zero_rtt: random.happens(0.25).then(|| random.happens(0.7)),
            always_retry: random.happens(0.15),
            ecn: random.happens(0.5),
            ack_frequency: random.happens(0.5),
            batch: 1 + random.below(10) as usize,
            migration: random
                .happens(0.15)
                .then(|| (some_time(random), random.happens(0.5))),
            ending,
        }
    }
}

impl StreamPlan {
    fn draw(random: &mut Random, most: f64) -> Self {
        let len = |random: &mut Random| random.magnitude(1.0, most.max(2.0)) as u64 - 1;
        let (request, response) = (len(random), len(random));
        let cut = match random.below(20) {
            0 => Cut::RequestReset(random.below(request + 1)),
            1 => Cut::ResponseStopped(random.below(response + 1)),
            2 => Cut::ResponseReset(random.below(response + 1)),
            _ => Cut::None,
        };
        Self {
            request,
            response,
            cut,
        }
    }
}

impl PathPlan {
    /// Each fault occurs in about a quarter of the runs, mostly together with others.
    fn draw(random: &mut Random) -> Self {
        let rate = random.magnitude(50_000.0, 50_000_000.0);
        let delay = Duration::from_secs_f64(random.magnitude(0.0001, 0.15));
        let share = |random: &mut Random, most: f64| {
            if random.happens(0.25) {
                most * random.unit()
            } else {
                0.0
            }
        };
        let held = rate * delay.as_secs_f64() * random.magnitude(0.2, 8.0);
        Self {
            rate,
            queue: held.max(8000.0),
            delay,
            loss: share(random, 0.15),
            burst: random
                .happens(0.2)
                .then(|| (0.02 * random.unit(), 0.9 * random.unit())),
            jitter: random
                .happens(0.25)
                .then(|| Duration::from_secs_f64(random.magnitude(0.0001, 0.05))),
            duplication: share(random, 0.2),
            corruption: share(random, 0.1),
            truncation: share(random, 0.05),
            mtu: random.happens(0.2).then(|| {
                let mtu = 1200 + random.below(280) as usize;
                (mtu, ms(random.below(3000)))
            }),
            blackout: random
                .happens(0.15)
                .then(|| (ms(random.below(4000)), ms(random.below(5000)))),
            rebinding: random
                .happens(0.2)
                .then(|| (ms(500 + random.below(1000)), random.happens(0.3))),
            faults_until: ms(2000 + random.below(10_000)),
        }
    }
}
