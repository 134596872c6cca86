//! The kernel's statistics of a TCP connection (`TCP_INFO`).
//!
//! This module knows the layout of the structure. It is in this crate because it needs the `unsafe` socket options.

use std::{
    io,
    mem::{offset_of, size_of},
    os::fd::AsFd,
    time::Duration,
};

use libc::tcp_info;

#[cfg(test)]
mod tests;

/// The statistics. Values that the kernel does not provide, or does not know yet, are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// The minimum round-trip time.
    pub rtt_min: Option<Duration>,
    /// The smoothed round-trip time.
    pub rtt: Option<Duration>,
    /// The mean deviation of the round-trip time.
    pub rtt_variance: Option<Duration>,
    /// The congestion window, in segments.
    pub window: Option<u64>,
    /// The slow start threshold, in segments; `None` while it is infinite.
    pub slow_start_threshold: Option<u64>,
    /// The maximum segment size for sending, in bytes.
    pub segment_len: Option<u64>,
    /// Segments sent, including retransmissions.
    pub segments_sent: Option<u64>,
    /// Segments received.
    pub segments_received: Option<u64>,
    /// Segments retransmitted.
    pub segments_retransmitted: Option<u64>,
    /// Bytes sent, including retransmissions.
    pub bytes_sent: Option<u64>,
    /// Bytes retransmitted.
    pub bytes_retransmitted: Option<u64>,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    pub bytes_received: Option<u64>,
    /// The latest delivery rate, in bytes per second.
    pub delivery_rate: Option<u64>,
    /// The number of reordering events observed.
    pub reorderings: Option<u64>,
    /// Segments that the peer reported as marked CE.
    pub delivered_ce: Option<u64>,
    /// The time during which there was data to send.
    pub busy: Option<Duration>,
    /// The part of `busy` limited by the peer's receive window.
    pub limited_by_receiver: Option<Duration>,
    /// The part of `busy` limited by the send buffer.
    pub limited_by_send_buffer: Option<Duration>,
    /// Segments sent but not acknowledged.
    pub unacked: u64,
    /// Bytes not sent yet.
    pub not_sent: u64,
}

impl TcpInfo {
    /// Reads the statistics of a connection.
    ///
    /// # Errors
    ///
    /// Returns an error if this is not a TCP socket, or if the system does not support `TCP_INFO`.
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

    /// Older kernels return a shorter structure.
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
            // All ones means that there is no sample yet.
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

/// The value that Linux uses for an infinite threshold (`TCP_INFINITE_SSTHRESH`).
const INFINITE_THRESHOLD: u64 = 0x7fff_ffff;

/// Limits the unsent bytes in the kernel's send buffer of a TCP socket, or of the sockets that a listener accepts, so that
/// the application decides late what is sent next.
///
/// # Errors
///
/// Returns an error if this is not a TCP socket.
pub fn limit_unsent(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    socket2::SockRef::from(&socket).set_tcp_notsent_lowat(bytes)
}

/// Sets the congestion control algorithm of a TCP socket, or of the connections that a listener accepts. The kernel
/// loads the module of an algorithm if the process may load modules.
///
/// # Errors
///
/// Returns [`io::ErrorKind::NotFound`] if the kernel does not have the algorithm, and
/// [`io::ErrorKind::PermissionDenied`] if it is not permitted to this process.
pub fn set_tcp_congestion(socket: impl AsFd, name: &str) -> io::Result<()> {
    socket2::SockRef::from(&socket).set_tcp_congestion(name.as_bytes())?;
    // The kernel ignores what follows the 15th byte, or a zero byte.
    match tcp_congestion(&socket) {
        Some(set) if set == name => Ok(()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The name of the congestion control algorithm of a connection, such as `cubic` or `bbr`.
pub fn tcp_congestion(socket: impl AsFd) -> Option<String> {
    let name = socket2::SockRef::from(&socket).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8(name.to_vec()).ok()
}
