//! A network device whose packets go over modelled paths and come back to this host.
//!
//! Owns: the device, the thread behind it, the clock. Never: decides what happens to a packet, or whose it is.
//!
//! The device is gone with the tunnel, whatever ends the process. It has no offloads, so packets are no longer than its MTU,
//! and their checksums are complete.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real time passes on an emulated path"
)]

use std::{
    fmt, fs, io,
    net::{Ipv4Addr, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use lastbyte_link::{ConfigError, Time};
use lastbyte_udp::Poller;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::{
    packet::{Flow, Network, set_ecn},
    paths::{Paths, Plan, Report, Sharing},
    running::Running,
};

#[cfg(test)]
mod tests;

/// What a device is to be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its addresses.
    pub network: Network,
    /// The longest packet, in bytes. Default: 1500.
    pub mtu: u16,
    /// What lies between. A flow is a client there; if they share a path, the host is the only client.
    pub plan: Plan,
}

impl Settings {
    /// Over these paths, all else at its default.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self {
            network: Network::default(),
            mtu: 1500,
            plan,
        }
    }
}

/// Why there can be no device.
#[derive(Debug)]
pub enum TunnelError {
    /// A link cannot be made of a setting.
    Path(ConfigError),
    /// The host has that address already.
    Taken(Ipv4Addr),
    /// The device cannot be made or set up.
    Device(io::Error),
    /// There are no file descriptors or threads left.
    System(io::Error),
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => write!(f, "no path can be made of this: {error}"),
            Self::Taken(address) => write!(
                f,
                "this machine has the address `{address}` already, perhaps of another path that is still there: take other \
                 addresses, such as 10.76.0.0/15"
            ),
            Self::Device(error) => {
                write!(f, "cannot make a network device: {error}")?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => f.write_str(
                        "; that takes CAP_NET_ADMIN: run it with `sudo`, or run server, clients and this in a network of their \
                         own, in one shell of `unshare -rn`",
                    ),
                    io::ErrorKind::NotFound => f.write_str(
                        "; `/dev/net/tun` is missing: load the module `tun`, or give the container that device",
                    ),
                    _ => Ok(()),
                }
            }
            Self::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl std::error::Error for TunnelError {}

/// A device with a path behind it, until it is stopped or dropped.
#[derive(Debug)]
pub struct Tunnel {
    name: String,
    has_v6: bool,
    running: Running,
}

impl Tunnel {
    /// Makes the device, with its addresses, and the routes that follow from them.
    ///
    /// # Errors
    ///
    /// The path cannot be, or the device cannot.
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
        // Only the machine's own administrator may; others have the 500 packets that it begins with.
        let _ = device.set_tx_queue_len(QUEUE);
        // A host may do without.
        let has_v6 = device.add_address_v6(v6, Network::PREFIX_V6).is_ok();
        device.set_nonblocking(true).map_err(TunnelError::Device)?;
        let poller = Poller::new().map_err(TunnelError::System)?;
        poller.add(&device, DEVICE).map_err(TunnelError::System)?;
        let waker = poller.waker();
        let running = Running::start("tunnel", waker, |is_over| {
            let mut turn = Turn {
                device,
                name: name.clone(),
                network: settings.network,
                shared,
                paths,
                poller,
                buffer: vec![0; usize::from(u16::MAX)].into(),
                start: Instant::now(),
                is_over,
            };
            move || turn.run()
        })
        .map_err(TunnelError::System)?;
        Ok(Self {
            name,
            has_v6,
            running,
        })
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has an IPv6 address.
    #[must_use]
    pub const fn has_v6(&self) -> bool {
        self.has_v6
    }

    /// The thread behind it.
    #[must_use]
    pub const fn running(&self) -> &Running {
        &self.running
    }

    /// Ends it, and says what became of all packets. What is on the way is dropped.
    ///
    /// # Errors
    ///
    /// The device broke.
    pub fn stop(self) -> io::Result<Report> {
        self.running.stop()
    }
}

/// Whether the host has this address: to itself, it would send from it.
fn is_here(address: Ipv4Addr) -> bool {
    let from = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

/// The key of the device.
const DEVICE: u64 = 0;
/// How many packets the kernel keeps until they are fetched: some 50 ms at 1 Gb/s.
const QUEUE: u32 = 4096;
/// How often forgotten flows are looked for.
const SWEEP: core::time::Duration = core::time::Duration::from_secs(1);
/// How many packets are fetched before what is due has its turn.
const BATCH: usize = 64;

struct Turn {
    device: SyncDevice,
    name: String,
    network: Network,
    shared: bool,
    paths: Paths<Option<Flow>>,
    poller: Poller,
    buffer: Box<[u8]>,
    start: Instant,
    is_over: Arc<AtomicBool>,
}

impl Turn {
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
            let deadline = self.paths.deadline().map_or(sweep, |due| due.min(sweep));
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

    /// Hands back what arrived. The clock is read for each: a train of packets takes its time.
    fn send_due(&mut self) {
        while let Some(mut arrival) = self.paths.poll(self.now()) {
            set_ecn(&mut arrival.bytes, arrival.ecn);
            if self.device.send(&arrival.bytes).is_err() {
                self.paths.unsent();
            }
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
            let Some(passage) = self.network.pass(packet) else {
                self.paths.foreign();
                continue;
            };
            let whose = (!self.shared).then_some(passage.flow);
            let Ok((client, _)) = self.paths.client(now, whose) else {
                continue;
            };
            let flow = passage.flow.number();
            self.paths
                .send_of(now, client, flow, passage.way, passage.ecn, packet);
        }
        Ok(())
    }
}

/// How many packets the kernel dropped before the device, as its table of devices says.
fn missed(device: &str) -> u64 {
    // The thread's own network, also in a namespace.
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    dropped_in(&table, device).unwrap_or(0)
}

/// The column of what was dropped on the way out.
fn dropped_in(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| {
        let (name, counts) = line.split_once(':')?;
        (name.trim() == device).then_some(counts)
    })?;
    line.split_ascii_whitespace().nth(11)?.parse().ok()
}
