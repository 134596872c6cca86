//! The settings of an endpoint.

use std::sync::Arc;

use lastbyte_congestion::ControllerFactory;

use super::{cubic::LinuxCubic, tls::Tls};

/// The settings of an endpoint. The default is a Linux host with TLS 1.3 over IPv4 and Ethernet.
#[derive(Clone, Debug)]
pub struct Config {
    /// Congestion control of this end's data: a [`Spec`](lastbyte_congestion::Spec) or [`LinuxCubic`]. Default: [`LinuxCubic`].
    pub congestion: Arc<dyn ControllerFactory>,
    /// TLS; the same at both ends. Default: TLS 1.3 with a certificate chain of 2400 bytes.
    pub tls: Tls,
    /// Payload of a full segment, in bytes. Default: 1448, which is 1500 less IPv4, TCP and timestamps.
    pub segment_size: u32,
    /// The IP header, in bytes. Default: 20; IPv6 has 40, and a segment size of 1428.
    pub ip_header: u32,
    /// Whether segments are paced, as with the `fq` queueing discipline. Controllers without an avoidance (BBR) pace in any case. Default: no,
    /// as with Linux's default `pfifo_fast` and `fq_codel`.
    pub is_paced: bool,
    /// Whether the window shrinks after a pause (`tcp_slow_start_after_idle`). Default: yes.
    pub slow_start_after_idle: bool,
    /// The largest send buffer, in bytes of payload (half of `tcp_wmem[2]`, since buffers count memory). Default: 2 MiB.
    pub send_buffer_max: u64,
    /// The receive window of a new connection, in bytes. Default: 64 240, which is 44 segments of 1460 bytes.
    pub receive_window: u64,
    /// The largest receive window, in bytes (half of `tcp_rmem[2]`). Default: 3 MiB.
    pub receive_window_max: u64,
    /// Random seed of controllers that use randomness. Default: 1.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: Arc::new(LinuxCubic::default()),
            tls: Tls::v13(2400),
            segment_size: 1448,
            ip_header: 20,
            is_paced: false,
            slow_start_after_idle: true,
            send_buffer_max: 2 << 20,
            receive_window: 64_240,
            receive_window_max: 3 << 20,
            seed: 1,
        }
    }
}
