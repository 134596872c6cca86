//! A transport of a few lines that does what a script says, and writes down what the controller answers.
//!
//! One action a line, numbers of packets in the order of sending:
//!
//! | action | meaning |
//! |---|---|
//! | `+40ms` | time passes |
//! | `send 10` | ten packets leave |
//! | `ack 0-4 7 lose 5-6` | one ACK frame acknowledges 0 to 4 and 7, and declares 5 and 6 lost |
//! | `ack 0-4 ce 2` | the frame reports two more CE marks |
//! | `lose 5-6` | the loss timer fires |
//! | `persistent lose 0-9` | the same, and establishes persistent congestion |
//! | `late 5-6` | packets declared lost are acknowledged after all |
//! | `dry` | nothing is left to send |
//! | `idle 2s` | two seconds pass, then sending is about to start again |
//! | `mtu 1400` | the datagram size changes |

use std::{fmt::Write, time::Duration};

use lastbyte_congestion::{
    Ack, Controller, ControllerFactory, EcnCe, Environment, IdleRestart, Loss, Packet, Rtt, Sent,
    Spec, Time,
};

struct Player {
    controller: Box<dyn Controller>,
    now: Time,
    rtt: Rtt,
    datagram: u64,
    in_flight: u64,
    sent: Vec<Packet>,
}

/// Plays `script` with a controller of `spec` on a path of 1000-byte datagrams (so that windows read in packets), and
/// returns the table of what happened.
pub(crate) fn play(spec: &str, script: &str) -> String {
    let spec: Spec = spec.parse().expect("a spec");
    let mut player = Player {
        controller: spec.build(&Environment {
            max_datagram_size: 1000,
            seed: 1,
        }),
        now: Time::ZERO,
        rtt: Rtt::default(),
        datagram: 1000,
        in_flight: 0,
        sent: Vec::new(),
    };
    let mut table = format!(
        "{spec}\n\n{:<32} {:>9} {:>9} {:>9} {:>9} {:>10}  {}\n",
        "action", "time ms", "flight", "window", "ssthresh", "pacing", "phase"
    );
    player.row("start", &mut table);
    for action in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        player.act(action);
        player.row(action, &mut table);
    }
    table
}

impl Player {
    fn row(&self, action: &str, table: &mut String) {
        let state = self.controller.state();
        let threshold = state
            .slow_start_threshold
            .map_or("-".to_owned(), |bytes| bytes.to_string());
        writeln!(
            table,
            "{action:<32} {:>9} {:>9} {:>9} {:>9} {:>10}  {}",
            self.now.as_nanos() as f64 / 1e6,
            self.in_flight,
            state.window,
            threshold,
            self.controller.pacing(&self.rtt).rate.to_string(),
            state.phase
        )
        .expect("a String takes all");
    }

    fn act(&mut self, action: &str) {
        let words: Vec<&str> = action.split_whitespace().collect();
        match words.as_slice() {
            [time] if time.starts_with('+') => self.now = self.now + span(&time[1..]),
            ["send", count] => (0..number(count)).for_each(|_| self.send()),
            ["dry"] => self.controller.on_app_limited(self.now, self.in_flight),
            ["mtu", size] => {
                self.datagram = number(size);
                self.controller.on_mtu(self.datagram);
            }
            ["idle", time] => {
                let idle = span(time);
                self.now = self.now + idle;
                self.controller.on_idle_restart(&IdleRestart {
                    now: self.now,
                    idle,
                    rtt: &self.rtt,
                });
            }
            ["late", ranges @ ..] => {
                for index in numbers(ranges) {
                    self.controller
                        .on_spurious_loss(self.now, &self.sent[index]);
                }
            }
            frame => self.frame(frame),
        }
    }

    fn send(&mut self) {
        self.in_flight += self.datagram;
        let receipt = self.controller.on_sent(&Sent {
            now: self.now,
            bytes: self.datagram,
            in_flight: self.in_flight,
            rtt: &self.rtt,
        });
        self.sent.push(Packet {
            bytes: self.datagram,
            sent_at: self.now,
            receipt,
        });
    }

    /// An ACK frame, or an expiry of the loss timer, in the order that [`Controller`] asks for.
    fn frame(&mut self, words: &[&str]) {
        let mut words = words.to_vec();
        let persistent = words.first() == Some(&"persistent");
        if persistent {
            words.remove(0);
        }
        let part = |name: &str| -> Vec<&str> {
            let from = words.iter().position(|word| *word == name);
            let keyword = |word: &&&str| !matches!(**word, "ack" | "lose" | "ce");
            from.map_or(Vec::new(), |from| {
                words[from + 1..]
                    .iter()
                    .take_while(keyword)
                    .copied()
                    .collect()
            })
        };
        let (acked, lost) = (numbers(&part("ack")), numbers(&part("lose")));
        let marked: u64 = part("ce").first().map_or(0, |count| number(count));
        assert!(
            acked.len() + lost.len() > 0,
            "not an action: {}",
            words.join(" ")
        );
        for index in acked.iter().chain(&lost) {
            self.in_flight -= self.sent[*index].bytes;
        }
        if let Some(largest) = acked.iter().max() {
            let sample = self.now.since(self.sent[*largest].sent_at);
            self.rtt.update(self.now, sample, Duration::ZERO, None);
        }
        for index in &acked {
            self.controller
                .on_packet_acked(self.now, &self.sent[*index]);
        }
        for index in &lost {
            self.controller.on_packet_lost(self.now, &self.sent[*index]);
        }
        if let Some(largest) = acked.iter().max().filter(|_| marked > 0) {
            self.controller.on_ecn_ce(&EcnCe {
                now: self.now,
                newly_marked: marked,
                largest_acked: self.sent[*largest].receipt,
                in_flight: self.in_flight,
                rtt: &self.rtt,
            });
        }
        if !lost.is_empty() {
            self.controller.on_lost(&Loss {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                persistent,
            });
        }
        if !acked.is_empty() {
            self.controller.on_ack(&Ack {
                now: self.now,
                in_flight: self.in_flight,
                rtt: &self.rtt,
                has_rtt_sample: true,
            });
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("a number: {text}"))
}

/// `0-4 7` as 0, 1, 2, 3, 4, 7.
fn numbers(ranges: &[&str]) -> Vec<usize> {
    let mut numbers = Vec::new();
    for range in ranges {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        numbers.extend(number(first) as usize..=number(last) as usize);
    }
    numbers
}

fn span(text: &str) -> Duration {
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(millis), _) => Duration::from_millis(number(millis)),
        (None, Some(seconds)) => Duration::from_secs(number(seconds)),
        (None, None) => panic!("a time: {text}"),
    }
}
