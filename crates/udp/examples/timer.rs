//! Measures how late a paced packet would be sent. Waits for intervals like those between packets and prints the delay
//! of each wake-up, with the kernel's default timer slack of 50 µs and without.
//!
//!     cargo run --release -p lastbyte-udp --example timer

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "measures the clock and prints the result"
)]

use std::{
    io,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use lastbyte_udp::{Options, Socket, Waiter, sharpen_timers};

fn main() -> io::Result<()> {
    let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &Options::default())?;
    let mut waiter = Waiter::new()?;
    println!("slack      wait     P50     P90     P99      most   (µs late)");
    for is_sharp in [false, true] {
        if is_sharp && !sharpen_timers() {
            println!("this system has no timer slack to change");
            break;
        }
        let slack = if is_sharp { "1 ns" } else { "default" };
        for micros in [20, 100, 1000, 10_000] {
            let span = Duration::from_micros(micros);
            let rounds = (2_000_000 / micros).clamp(200, 5000);
            let mut late = Vec::new();
            for _ in 0..rounds {
                let start = Instant::now();
                waiter.wait(&socket, false, Some(span))?;
                late.push(start.elapsed().saturating_sub(span).as_secs_f64() * 1e6);
            }
            late.sort_by(f64::total_cmp);
            let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize];
            println!(
                "{slack:7} {micros:7} {:7.1} {:7.1} {:7.1} {:9.1}",
                at(0.5),
                at(0.9),
                at(0.99),
                at(1.0)
            );
        }
    }
    Ok(())
}
