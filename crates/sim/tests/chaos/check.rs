//! Invariants of a connection, for any peer and path.

use core::net::IpAddr;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    connection::Connection,
    recovery::{Recovery, SentPackets},
    space::Space,
    statistics::FrameKind,
};

/// The largest datagram.
const DATAGRAM: f64 = 1472.0;

/// Checks one connection.
#[derive(Debug)]
pub(crate) struct BottleneckMonitor {
    /// Maximum bytes that the pacer may release; `None` without pacing.
    credit: Option<f64>,
    updated_at: Time,
    /// The highest rate since then.
    rate: f64,
    /// Bytes that may be sent regardless of window and pacer: probes of RFC 9002 §6.2.4, and datagrams that validate paths.
    beyond_window: f64,
    beyond_pacer: f64,
    /// The state from which these were computed.
    exempt: u64,
    /// The addresses of the path in use: each path has its own pacer (RFC 9000 §9.4).
    addresses: Option<(IpAddr, IpAddr)>,
    pub(crate) ring_max: usize,
}

impl BottleneckMonitor {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            credit: None,
            updated_at: now,
            rate: 0.0,
            beyond_window: 0.0,
            beyond_pacer: 0.0,
            exempt: 0,
            addresses: None,
            ring_max: 0,
        }
    }

    /// Call after each event. `buffered_max` is the maximum of bytes that streams may buffer.
    pub(crate) fn check(
        &mut self,
        connection: &mut Connection,
        buffered_max: usize,
    ) -> Result<(), String> {
        let recovery = connection.recovery();
        let mut outstanding = 0;
        let mut in_flight = 0;
        for space in Space::ALL {
            let sent = recovery.sent(space);
            self.ring_max = self.ring_max.max(sent.len());
            if sent.len() > sent.in_flight() + SentPackets::SURPLUS_MAX {
                let (len, in_flight) = (sent.len(), sent.in_flight());
                return Err(format!(
                    "{len} packets kept in {space:?}, {in_flight} in flight"
                ));
            }
            for packet in sent.outstanding() {
                outstanding += 1;
                in_flight += u64::from(packet.bytes) * u64::from(packet.is_in_flight);
            }
        }
        if in_flight != recovery.in_flight() {
            let counted = recovery.in_flight();
            return Err(format!(
                "{counted} bytes in flight, but packets of {in_flight}"
            ));
        }
        let counts = recovery.statistics();
        let known =
            counts.packets_acked + counts.packets_lost + counts.packets_forgotten + outstanding;
        if counts.packets_sent + counts.packets_late != known {
            return Err(format!("{outstanding} packets outstanding, and {counts:?}"));
        }
        self.note_rate(recovery);
        let buffered = connection.streams().buffered();
        if buffered > buffered_max {
            return Err(format!(
                "{buffered} bytes buffered, of at most {buffered_max}"
            ));
        }
        Ok(())
    }

    /// The highest rate that held since the credit was last updated.
    fn note_rate(&mut self, recovery: &Recovery) {
        let rate = recovery.pacing().rate;
        let rate = if rate.is_unlimited() {
            f64::INFINITY
        } else {
            rate.bytes_per_second() as f64
        };
        self.rate = self.rate.max(rate);
    }

    /// Call around each [`Connection::poll_transmit`], with the bytes in flight and the window before it.
    pub(crate) fn on_transmit(
        &mut self,
        now: Time,
        connection: &Connection,
        before: u64,
        window: u64,
    ) -> Result<(), String> {
        let recovery = connection.recovery();
        let statistics = connection.statistics();
        let frames = |kind| statistics.frames_sent.of(kind);
        let exempt = 6 * recovery.statistics().probe_timeouts
            + statistics.paths.promoted
            // A client pads its Initial packets, also those that only acknowledge (RFC 9000 §14.1).
            + statistics.packets.initial_sent
            + frames(FrameKind::PathChallenge)
            + frames(FrameKind::PathResponse);
        let gained = (exempt - self.exempt) as f64 * DATAGRAM;
        self.exempt = exempt;
        self.beyond_window += gained;
        self.beyond_pacer += gained;

        let after = recovery.in_flight();
        let beyond = after.saturating_sub(window.max(before)) as f64;
        self.beyond_window -= beyond;
        if self.beyond_window < 0.0 {
            return Err(format!(
                "{after} bytes in flight, {before} before, with a window of {window}"
            ));
        }

        let network = connection.network();
        let addresses = Some((network.local.ip(), network.remote.ip()));
        if self.addresses != addresses {
            self.addresses = addresses;
            self.credit = None;
            self.rate = 0.0;
        }
        self.note_rate(recovery);
        let pacing = recovery.pacing();
        // The pacer fills its bucket only when it is used, up to the burst of that time: credit is capped when data leaves, so
        // that a burst that has grown while the connection waited counts as the pacer counts it.
        let burst = 2.0 * pacing.burst.max(pacing.quantum) as f64;
        let elapsed = now.since(self.updated_at).as_secs_f64();
        self.updated_at = now;
        let rate = std::mem::take(&mut self.rate);
        self.note_rate(recovery);
        let sent = after.saturating_sub(before) as f64;
        if rate.is_infinite() {
            self.credit = None;
            return Ok(());
        }
        let credit = self.credit.map_or(burst, |credit| credit + rate * elapsed);
        if sent == 0.0 {
            self.credit = Some(credit);
            return Ok(());
        }
        let missing = sent - credit.min(burst) - DATAGRAM;
        if missing > 0.0 {
            self.beyond_pacer -= missing;
            if self.beyond_pacer < 0.0 {
                return Err(format!(
                    "{sent} bytes sent, of which {missing} faster than the pacer's rate of {rate} B/s"
                ));
            }
        }
        // A debt is bounded, as the pacer's is.
        self.credit = Some((credit.min(burst) - sent).max(-burst));
        Ok(())
    }
}
