use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    task::Wake,
};

use lastbyte_units::SplitMix64;

use super::*;

const PIECE: usize = 16 << 10;

/// The tasks of a thread that were woken, in order: 0 is the connection, n the response n - 1.
#[derive(Clone, Default)]
struct Woken(Arc<Mutex<VecDeque<usize>>>);

struct Task {
    number: usize,
    woken: Woken,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !woken.contains(&self.number) {
            woken.push_back(self.number);
        }
    }
}

impl Woken {
    fn waker(&self, number: usize) -> Waker {
        Arc::new(Task {
            number,
            woken: self.clone(),
        })
        .into()
    }

    fn next(&self) -> Option<usize> {
        let mut woken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        woken.pop_front()
    }
}

struct Response {
    turn: Turn,
    /// Bytes that h2 has not received, and of those, the ones that exist.
    left: usize,
    there: usize,
    /// The window of the stream.
    window: usize,
    /// A piece that was taken, and waits for the window.
    held: usize,
    is_waiting: bool,
    is_over: bool,
}

/// A connection and the tasks of its responses.
#[derive(Default)]
struct Bench {
    turns: Turns,
    woken: Woken,
    responses: Vec<Response>,
    /// Bytes that h2 has, and those that the socket takes.
    queued: usize,
    socket: usize,
    /// The responses in the order in which they took their pieces.
    taken: Vec<usize>,
    taken_since_sent: usize,
}

impl Bench {
    fn begin(&mut self, text: &str, len: usize) {
        let priority = Priority::default().updated(text.as_bytes());
        self.responses.push(Response {
            turn: self.turns.begin(priority).expect("an index"),
            left: len,
            there: len,
            window: usize::MAX,
            held: 0,
            is_waiting: false,
            is_over: false,
        });
    }

    fn wake(&self, number: usize) {
        self.woken.waker(number).wake();
    }

    /// As the task of a response does: pieces of the body, as long as there is room in the window.
    fn poll_response(&mut self, index: usize) {
        let waker = self.woken.waker(index + 1);
        let mut context = Context::from_waker(&waker);
        loop {
            let response = &mut self.responses[index];
            if response.is_over {
                return;
            }
            if response.held > 0 {
                if response.window == 0 {
                    return;
                }
                let sent = mem::take(&mut response.held);
                response.window -= sent.min(response.window);
                self.queued += sent;
                self.wake(0);
                continue;
            }
            if response.left == 0 {
                response.is_over = true;
                self.turns.end(response.turn);
                return;
            }
            if response.there == 0 {
                return;
            }
            let piece = response.there.min(PIECE);
            let all = (piece, response.there as u64);
            response.is_waiting = self
                .turns
                .poll_take(&mut context, response.turn, all)
                .is_pending();
            if response.is_waiting {
                return;
            }
            response.there -= piece;
            response.left -= piece;
            response.held = piece;
            self.taken.push(index);
            self.taken_since_sent += piece;
            assert!(
                self.taken_since_sent < ROOM + PIECE,
                "more than there is room for"
            );
            self.check_order(index);
        }
    }

    /// No more urgent response waits.
    fn check_order(&self, index: usize) {
        let taken = self.responses[index].turn;
        for other in self
            .responses
            .iter()
            .filter(|it| it.is_waiting && !it.is_over)
        {
            let waits = other.turn;
            let is_before = waits.priority.urgency < taken.priority.urgency
                || waits.priority == taken.priority
                    && !waits.priority.is_incremental
                    && waits.id < taken.id;
            assert!(!is_before, "{waits:?} waits for {taken:?}");
        }
    }

    fn poll_connection(&mut self) {
        let sent = self.queued.min(self.socket);
        self.queued -= sent;
        self.socket -= sent;
        if self.queued == 0 {
            self.taken_since_sent = 0;
        }
        self.turns.on_polled(&self.woken.waker(0), self.queued == 0);
    }

    /// Polls tasks until all wait for something else.
    fn run(&mut self) {
        let mut polls = 0;
        while let Some(number) = self.woken.next() {
            match number.checked_sub(1) {
                None => self.poll_connection(),
                Some(index) => self.poll_response(index),
            }
            polls += 1;
            assert!(polls < 100_000, "it does not come to rest");
        }
    }

    /// Requests that arrive together: their tasks run after the connection was polled.
    fn arrive(&mut self, requests: &[(&str, usize)]) {
        self.poll_connection();
        let first = self.responses.len();
        for (text, len) in requests {
            self.begin(text, *len);
        }
        self.poll_connection();
        for index in first..self.responses.len() {
            self.wake(index + 1);
        }
    }

    /// The order in which responses took pieces, repetitions apart.
    fn order(&self) -> Vec<usize> {
        let mut order = self.taken.clone();
        order.dedup();
        order
    }
}

#[test]
fn rfc9218_10_urgent_responses_come_first_and_others_in_the_order_of_requests() {
    let mut bench = Bench {
        socket: usize::MAX,
        ..Bench::default()
    };
    bench.arrive(&[
        ("u=5", 300_000),
        ("", 200_000),
        ("u=1", 100_000),
        ("", 1000),
    ]);
    bench.run();
    assert_eq!(bench.order(), [2, 1, 3, 0]);
    assert!(bench.responses.iter().all(|response| response.is_over));
}

#[test]
fn rfc9218_10_incremental_responses_share() {
    let mut bench = Bench {
        socket: usize::MAX,
        ..Bench::default()
    };
    bench.arrive(&[("i", 10 * PIECE), ("i", 10 * PIECE), ("i", 10 * PIECE)]);
    bench.run();
    // The first was alone when it began.
    let rest = &bench.taken[ROOM / PIECE..];
    for turn in rest.chunks(3).take(6) {
        let mut turn = turn.to_vec();
        turn.sort_unstable();
        assert_eq!(turn, [0, 1, 2], "{:?}", bench.taken);
    }
}

#[test]
fn a_response_that_cannot_be_sent_does_not_delay_others() {
    let mut bench = Bench {
        socket: usize::MAX,
        ..Bench::default()
    };
    bench.arrive(&[("u=0", 1_000_000); 100]);
    for (index, response) in bench.responses.iter_mut().enumerate() {
        match index % 3 {
            0 => response.window = 0,
            1 => response.there = 0,
            _ => response.window = 20_000,
        }
    }
    bench.begin("u=7", 500_000);
    bench.run();
    assert_eq!(bench.responses.iter().filter(|it| it.is_over).count(), 0);
    bench.wake(101);
    bench.run();
    assert!(bench.responses[100].is_over);
    // Each of the others holds one piece, beyond those that its window begins with.
    let held: usize = (0..100)
        .map(|index| bench.taken.iter().filter(|taken| **taken == index).count())
        .sum();
    assert_eq!(held, 34 + 33 * 3);
}

#[test]
fn a_request_without_bytes_yet_holds_others_up_for_one_turn_only() {
    let mut bench = Bench {
        socket: usize::MAX,
        ..Bench::default()
    };
    bench.arrive(&[("u=6", 100_000), ("u=2", 100_000)]);
    bench.responses[1].there = 0;
    bench.run();
    assert!(bench.responses[0].is_over);
    bench.responses[1].there = 100_000;
    bench.wake(2);
    bench.run();
    assert!(bench.responses[1].is_over);
}

/// Whatever happens: while nothing is woken and the socket has room, no response waits for a turn.
#[test]
fn any_sequence_of_events_ends_without_a_response_that_waits() {
    let priorities = ["", "u=0", "u=7", "i", "u=1, i", "u=7, i", "u=2"];
    for seed in 0..400 {
        let mut random = SplitMix64::new(seed);
        let mut below = |count: usize| (random.number() % count as u64) as usize;
        let mut bench = Bench::default();
        bench.poll_connection();
        for _ in 0..300 {
            let count = bench.responses.len();
            match below(12) {
                0 | 1 if count < 60 => {
                    let text = priorities[below(priorities.len())];
                    bench.begin(text, 1 + below(200_000));
                    let response = bench.responses.last_mut().expect("it began");
                    response.there = below(2) * response.left;
                    response.window = [0, below(100_000), usize::MAX][below(3)];
                    bench.wake(0);
                    bench.wake(count + 1);
                }
                2 => {
                    bench.socket += below(300_000);
                    bench.wake(0);
                }
                3 => bench.run(),
                // As many tasks as another thread's timing allows.
                4 => {
                    if let Some(number) = bench.woken.next() {
                        match number.checked_sub(1) {
                            None => bench.poll_connection(),
                            Some(index) => bench.poll_response(index),
                        }
                    }
                }
                _ if count == 0 => {}
                // A window is opened.
                5 | 6 => {
                    let index = below(count);
                    let window = &mut bench.responses[index].window;
                    *window = window.saturating_add(below(100_000));
                    bench.wake(index + 1);
                }
                // Bytes arrive from elsewhere.
                7 | 8 => {
                    let index = below(count);
                    let response = &mut bench.responses[index];
                    response.there = response.left.min(response.there + below(50_000));
                    bench.wake(index + 1);
                }
                // The client resets the stream.
                9 => {
                    let response = &mut bench.responses[below(count)];
                    if !mem::replace(&mut response.is_over, true) {
                        bench.turns.end(response.turn);
                    }
                }
                10 => {
                    let response = &mut bench.responses[below(count)];
                    let text = priorities[below(priorities.len())];
                    if !response.is_over {
                        let priority = Priority::default().updated(text.as_bytes());
                        bench.turns.prioritise(&mut response.turn, priority);
                    }
                }
                _ => bench.wake(0),
            }
        }
        bench.socket = usize::MAX;
        bench.wake(0);
        bench.run();
        for (index, response) in bench.responses.iter().enumerate() {
            assert!(
                response.is_over || !response.is_waiting,
                "seed {seed}: response {index} waits"
            );
        }
        // And all end once nothing keeps them.
        for index in 0..bench.responses.len() {
            let response = &mut bench.responses[index];
            response.there = response.left;
            response.window = usize::MAX;
            bench.wake(index + 1);
        }
        bench.run();
        assert!(bench.responses.iter().all(|it| it.is_over), "seed {seed}");
        let state = bench.turns.lock();
        assert!(
            state.contenders.is_empty() && state.waiting == 0,
            "seed {seed}"
        );
        assert_eq!(state.in_flight, [0; 8], "seed {seed}");
        assert_eq!(state.scheduler.next(true), None, "seed {seed}");
    }
}
