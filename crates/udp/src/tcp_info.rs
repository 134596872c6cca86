//! What the kernel counts of a TCP connection (`TCP_INFO`).
//!
//! Owns: which count stands where. It is about TCP, and stands here since this crate has what is `unsafe` of sockets.

use std::{
    io,
    mem::{offset_of, size_of},
    os::fd::AsFd,
    time::Duration,
};

use libc::tcp_info;

#[cfg(test)]
mod tests;

/// The counts. What an older kernel does not tell, or does not know yet, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The least round-trip time.
    pub rtt_min: Option<Duration>,
    /// The smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// Its mean deviation.
    pub rtt_variance: Option<Duration>,
    /// The congestion window, in segments.
    pub window: Option<u64>,
    /// The slow start threshold, in segments; none while it is without a bound.
    pub slow_start_threshold: Option<u64>,
    /// The size of a segment that is sent, in bytes.
    pub segment_len: Option<u64>,
    /// Segments sent, and sent again.
    pub segments_sent: Option<u64>,
    /// Segments received.
    pub segments_received: Option<u64>,
    /// Segments sent again.
    pub segments_retransmitted: Option<u64>,
    /// Bytes sent, and sent again.
    pub bytes_sent: Option<u64>,
    /// Bytes sent again.
    pub bytes_retransmitted: Option<u64>,
    /// Bytes that the peer acknowledged.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// The latest delivery rate, in bytes a second.
    pub delivery_rate: Option<u64>,
    /// How often segments were seen to overtake each other.
    pub reorderings: Option<u64>,
    /// Segments that the peer reported with a CE mark.
    pub delivered_ce: Option<u64>,
    /// How long there was something to send.
    pub busy: Option<Duration>,
    /// Of that, how long the peer's window held it back.
    pub limited_by_receiver: Option<Duration>,
    /// Of that, how long a send buffer that was too small did.
    pub limited_by_send_buffer: Option<Duration>,
    /// Segments that were sent and are not acknowledged.
    pub unacked: u64,
    /// Bytes that were not sent yet.
    pub not_sent: u64,
}

impl TcpInfo {
    /// Of this connection, now.
    ///
    /// # Errors
    ///
    /// It is no TCP socket, or the system does not tell.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut bytes = [0; size_of::<tcp_info>()];
        let len = crate::option::get(
            socket.as_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            &mut bytes,
        )?;
        Ok(Self::parse(&bytes[..len]))
    }

    /// What an older kernel tells ends earlier.
    fn parse(bytes: &[u8]) -> Self {
        let u32_at = |at: usize| {
            let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let u64_at = |at: usize| {
            let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
            Some(u64::from_ne_bytes(bytes))
        };
        let count = |at| u32_at(at).map(u64::from);
        let micros = |micros: Option<u64>| micros.map(Duration::from_micros);
        let rtt = count(offset_of!(tcp_info, tcpi_rtt)).filter(|rtt| *rtt > 0);
        Self {
            // All ones before there was a sample.
            rtt_min: micros(
                count(offset_of!(tcp_info, tcpi_min_rtt)).filter(|rtt| *rtt < u64::from(u32::MAX)),
            ),
            rtt: micros(rtt),
            rtt_variance: micros(
                count(offset_of!(tcp_info, tcpi_rttvar)).filter(|_| rtt.is_some()),
            ),
            window: count(offset_of!(tcp_info, tcpi_snd_cwnd)),
            slow_start_threshold: count(offset_of!(tcp_info, tcpi_snd_ssthresh))
                .filter(|threshold| *threshold < INFINITE_THRESHOLD),
            segment_len: count(offset_of!(tcp_info, tcpi_snd_mss)),
            segments_sent: count(offset_of!(tcp_info, tcpi_segs_out)),
            segments_received: count(offset_of!(tcp_info, tcpi_segs_in)),
            segments_retransmitted: count(offset_of!(tcp_info, tcpi_total_retrans)),
            bytes_sent: u64_at(offset_of!(tcp_info, tcpi_bytes_sent)),
            bytes_retransmitted: u64_at(offset_of!(tcp_info, tcpi_bytes_retrans)),
            bytes_acked: u64_at(offset_of!(tcp_info, tcpi_bytes_acked)),
            bytes_received: u64_at(offset_of!(tcp_info, tcpi_bytes_received)),
            delivery_rate: u64_at(offset_of!(tcp_info, tcpi_delivery_rate)),
            reorderings: count(offset_of!(tcp_info, tcpi_reord_seen)),
            delivered_ce: count(offset_of!(tcp_info, tcpi_delivered_ce)),
            busy: micros(u64_at(offset_of!(tcp_info, tcpi_busy_time))),
            limited_by_receiver: micros(u64_at(offset_of!(tcp_info, tcpi_rwnd_limited))),
            limited_by_send_buffer: micros(u64_at(offset_of!(tcp_info, tcpi_sndbuf_limited))),
            unacked: count(offset_of!(tcp_info, tcpi_unacked)).unwrap_or(0),
            not_sent: count(offset_of!(tcp_info, tcpi_notsent_bytes)).unwrap_or(0),
        }
    }
}

/// What Linux takes for no bound (`TCP_INFINITE_SSTHRESH`).
const INFINITE_THRESHOLD: u64 = 0x7fff_ffff;

/// The name of the kernel's congestion control of this connection: `cubic`, `bbr`.
#[must_use]
pub fn tcp_congestion(socket: impl AsFd) -> Option<String> {
    let name = socket2::SockRef::from(&socket).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8(name.to_vec()).ok()
}
