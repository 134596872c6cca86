//! A network device whose packets pass through emulated paths and return to this host.
//!
//! This module owns the device, its thread and the clock. What happens to a packet is decided by [`Paths`], and its
//! flow by [`crate::packet`].
//!
//! The device disappears with the process, however it ends. It has no offloads, so packets do not exceed its MTU and
//! have complete checksums.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "path emulation runs in real time"
)]

use std::{
    fs, io,
    net::{Ipv4Addr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use lastbyte_link::{ConfigError, Time};
use lastbyte_udp::Poller;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::{
    packet::{Flow, Nat, Network, set_ecn},
    paths::{Direction, Paths, Plan, Report, Sharing},
    running::Running,
};

#[cfg(test)]
mod tests;

/// The configuration of a tunnel.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses of the device.
    pub network: Network,
    /// The MTU of the device in bytes. Default: 1500.
    pub mtu: u16,
    /// The emulated paths. Each flow is a client; if they share a path, the host is the only client.
    pub plan: Plan,
    /// The interval at which all clients get other ports of TCP and UDP towards servers, as behind a NAT that restarts; packets
    /// to the previous ports are lost. Default: never.
    pub rebind: Option<Duration>,
}

impl Settings {
    /// Creates settings with these paths, and defaults otherwise.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            network: Network::default(),
            mtu: 1500,
            plan,
            rebind: None,
        }
    }
}

/// A tunnel could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// A setting of a link is out of range.
    #[error("invalid path: {0}")]
    Path(ConfigError),
    /// The address is already assigned to the host.
    #[error(
        "address `{0}` is already in use on this machine, perhaps by another emulated path; use other \
         addresses, such as 10.76.0.0/15"
    )]
    Taken(Ipv4Addr),
    /// The device could not be created or configured.
    #[error("cannot create a network device: {}{}", .0, hint(.0))]
    Device(io::Error),
    /// A system resource, such as a file descriptor or thread, is not available.
    #[error("cannot start the tunnel: {0}")]
    System(io::Error),
}

/// What is missing to create a device.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; CAP_NET_ADMIN is required: use `sudo`, or run server, clients and this command in a network namespace of \
             their own, in one shell of `unshare -rn`"
        }
        io::ErrorKind::NotFound => {
            "; `/dev/net/tun` is missing: load the kernel module `tun`, or pass the device to the container"
        }
        _ => "",
    }
}

/// A running tunnel. It stops when it is dropped.
#[derive(Debug)]
pub struct Tunnel {
    name: String,
    has_v6: bool,
    running: Running,
}

impl Tunnel {
    /// Creates the device with its addresses, and starts the thread. The routes follow from the addresses.
    ///
    /// # Errors
    ///
    /// Returns [`TunnelError::Path`] if a link setting is out of range, [`TunnelError::Taken`] if the host has the
    /// address already, [`TunnelError::Device`] if the device cannot be created or configured, and
    /// [`TunnelError::System`] if a system resource is not available.
    pub fn start(settings: Settings) -> Result<Self, TunnelError> {
        let shared = settings.plan.sharing == Sharing::Shared;
        let paths = Paths::new(settings.plan).map_err(TunnelError::Path)?;
        let (v4, v6) = settings.network.host();
        if is_here(v4) {
            return Err(TunnelError::Taken(v4));
        }
        let device = DeviceBuilder::new()
            .name("lastbyte%d")
            .ipv4(v4, Network::PREFIX_V4, None)
            .mtu(settings.mtu)
            .build_sync()
            .map_err(TunnelError::Device)?;
        let name = device.name().map_err(TunnelError::Device)?;
        // Requires privileges in the initial user namespace. Without them the default of 500 packets remains.
        let _ = device.set_tx_queue_len(QUEUE);
        // IPv6 is optional.
        let has_v6 = device.add_address_v6(v6, Network::PREFIX_V6).is_ok();
        device.set_nonblocking(true).map_err(TunnelError::Device)?;
        let poller = Poller::new().map_err(TunnelError::System)?;
        poller.add(&device, DEVICE).map_err(TunnelError::System)?;
        let waker = poller.waker();
        let running = Running::start("tunnel", waker, paths.refusals(), |is_over| {
            let mut event_loop = EventLoop {
                device,
                name: name.clone(),
                network: settings.network,
                shared,
                nat: settings
                    .rebind
                    .map(|interval| (interval, Time::ZERO + interval, Nat::default())),
                paths,
                poller,
                buffer: vec![0; usize::from(u16::MAX)].into(),
                start: Instant::now(),
                is_over,
            };
            move || event_loop.run()
        })
        .map_err(TunnelError::System)?;
        Ok(Self {
            name,
            has_v6,
            running,
        })
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the device has an IPv6 address.
    pub const fn has_v6(&self) -> bool {
        self.has_v6
    }

    /// The handle of the tunnel's thread.
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// Stops the tunnel and returns its report. Packets in transit are dropped.
    ///
    /// # Errors
    ///
    /// Returns the I/O error that ended the tunnel's thread.
    pub fn stop(self) -> io::Result<Report> {
        self.running.stop()
    }
}

/// Whether the host has this address: if so, it is the source address of packets sent to it.
fn is_here(address: Ipv4Addr) -> bool {
    let from = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

/// The poller key of the device.
const DEVICE: u64 = 0;
/// The transmit queue length of the device in packets, about 50 ms at 1 Gb/s.
const QUEUE: u32 = 4096;
/// The interval at which idle flows are removed.
const SWEEP: Duration = Duration::from_secs(1);
/// The maximum number of packets read before due packets are handled.
const BATCH: usize = 64;

struct EventLoop {
    device: SyncDevice,
    name: String,
    network: Network,
    shared: bool,
    /// The NAT, its interval, and when it restarts next.
    nat: Option<(Duration, Time, Nat)>,
    paths: Paths<Option<Flow>>,
    poller: Poller,
    buffer: Box<[u8]>,
    start: Instant,
    is_over: Arc<AtomicBool>,
}

impl EventLoop {
    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    fn run(&mut self) -> io::Result<Report> {
        let mut ready = Vec::new();
        let mut sweep = self.now() + SWEEP;
        loop {
            self.send_due();
            let now = self.now();
            if now >= sweep {
                self.paths.expire(now);
                sweep = now + SWEEP;
            }
            let mut deadline = self.paths.deadline().map_or(sweep, |due| due.min(sweep));
            if let Some((interval, at, nat)) = &mut self.nat {
                if now >= *at {
                    nat.restart();
                    *at = now + *interval;
                }
                deadline = deadline.min(*at);
            }
            self.poller.wait(Some(deadline.since(now)), &mut ready)?;
            if self.is_over.load(Ordering::Relaxed) {
                let mut report = self.paths.report();
                report.missed = missed(&self.name);
                return Ok(report);
            }
            if !ready.is_empty() {
                self.receive()?;
            }
        }
    }

    /// Returns all packets that are due to the host. Reads the clock for each one, because sending a burst takes time.
    fn send_due(&mut self) {
        while let Some(mut arrival) = self.paths.poll(self.now()) {
            set_ecn(&mut arrival.bytes, arrival.ecn);
            if let (Direction::Up, Some((_, _, nat))) = (arrival.direction, &mut self.nat) {
                nat.send(&mut arrival.bytes);
            }
            if self.device.send(&arrival.bytes).is_err() {
                self.paths.unsent();
            }
            self.paths.recycle(arrival.bytes);
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let len = match self.device.recv(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now = Time::ZERO + self.start.elapsed();
            let Some(packet) = self.buffer.get_mut(..len) else {
                continue;
            };
            let Some(mut translated) = self.network.translate(packet) else {
                self.paths.foreign();
                continue;
            };
            if let (Direction::Down, Some((_, _, nat))) = (translated.direction, &self.nat)
                && !nat.receive(packet, &mut translated.flow)
            {
                self.paths.foreign();
                continue;
            }
            let whose = (!self.shared).then_some(translated.flow);
            let Ok((client, _)) = self.paths.client(now, whose) else {
                continue;
            };
            let flow = translated.flow.number();
            self.paths.send_of(
                now,
                client,
                flow,
                translated.direction,
                translated.ecn,
                packet,
            );
        }
        Ok(())
    }
}

/// The number of packets that the kernel dropped before the device, from `/proc`.
fn missed(device: &str) -> u64 {
    // `thread-self` selects the network namespace of this thread.
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    dropped_in(&table, device).unwrap_or(0)
}

/// Parses the transmit drop column of `/proc/net/dev`.
fn dropped_in(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| {
        let (name, counts) = line.split_once(':')?;
        (name.trim() == device).then_some(counts)
    })?;
    line.split_ascii_whitespace().nth(11)?.parse().ok()
}
