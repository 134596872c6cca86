//! A client whose network changes during a download: `lastbyte get` on one host; `lastbyte emulate`, `lastbyte lb` and two
//! `lastbyte serve` on another. The hosts are network namespaces with two cables, called `wifi` and `lte`. And third-party
//! clients of such servers (`foreign`).

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what commands read and write is files and sockets, and a gap in a download is measured"
)]

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use lastbyte_testkit::alone_or_skipped;

#[path = "moves/foreign.rs"]
mod foreign;
#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;

use serving::{Running, Serving, certificate, command, folder};

const LB: &str = "\
[[ids]]
config-id = 0
server-id-length = 2
nonce-length = 14
key = \"8f95f09245765f80256934e50c66207f\"

[[servers]]
id = 1
address = \"127.0.0.1:4501\"

[[servers]]
id = 2
address = \"127.0.0.1:4502\"
";

const ACCEPTED: &str = "lastbyte_connections_accepted_total{transport=\"quic\"}";
const MOVED: &str = "lastbyte_quic_paths_migration_elicited_total";
const BY_ID: &str = "lastbyte_lb_forwarded_datagrams_total{by=\"connection_id\"}";
const BY_HASH: &str = "lastbyte_lb_forwarded_datagrams_total{by=\"hash\"}";
const SIZE: usize = 10_000_000;

fn ip(words: &str) {
    sh(&format!("ip {words}"));
}

fn sh(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output();
    let output = output.expect("`sh` runs");
    assert!(output.status.success(), "{line}: {output:?}");
}

/// The client's host: a namespace that exists while its process runs.
struct Host(Child);

impl Host {
    /// With both cables, whose other ends are 10.1.0.1 (`wifi`, used first) and 10.2.0.1 (`lte`). The servers are at 10.9.0.1.
    fn start() -> Self {
        let mut child = Command::new("unshare")
            .args(["-n", "sh", "-c", "echo; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`unshare` runs");
        let mut lines = BufReader::new(child.stdout.take().expect("its stdout"));
        lines.read_line(&mut String::new()).expect("it is there");
        let host = Self(child);
        let id = host.0.id();
        ip("link set lo up");
        ip("address add 10.9.0.1/32 dev lo");
        for (index, name, metric) in [(1, "wifi", 100), (2, "lte", 200)] {
            ip(&format!(
                "link add {name} type veth peer name {name} netns {id}"
            ));
            ip(&format!("address add 10.{index}.0.1/24 dev {name}"));
            ip(&format!("link set {name} up"));
            host.run(&format!("ip address add 10.{index}.0.2/24 dev {name}"));
            host.run(&format!("ip link set {name} up"));
            host.run(&format!(
                "ip route add default via 10.{index}.0.1 metric {metric}"
            ));
        }
        host
    }

    /// Runs a command line there.
    fn run(&self, line: &str) {
        sh(&format!("nsenter -t {} -n {line}", self.0.id()));
    }

    /// A program there, and its arguments.
    fn command<T: AsRef<OsStr>>(&self, words: &[T]) -> Command {
        let mut command = Command::new("nsenter");
        let id = self.0.id().to_string();
        command.args(["-t", &id, "-n"]).args(words);
        command
    }

    /// `lastbyte` there.
    fn lastbyte(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command(&[env!("CARGO_BIN_EXE_lastbyte")]);
        command
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The servers' host, the path to it, and the client's host.
struct Setup {
    folder: PathBuf,
    servers: [Serving; 2],
    lb: Serving,
    _relay: Running,
    client: Host,
}

impl Setup {
    fn start(name: &str) -> Self {
        let client = Host::start();
        let folder = folder(name);
        certificate(&folder, "a");
        fs::write(folder.join("lb.toml"), LB).expect("room");
        let servers = ["1", "2"].map(|id| {
            let listen = format!("127.0.0.1:450{id}");
            let files = [
                "--cert",
                "a.pem",
                "--key",
                "a.key",
                "--lb-config",
                "lb.toml",
            ];
            let more = ["--log", &format!("{id}.ndjson"), "--server-id", id];
            Serving::start_as(&folder, &[], &listen, &[&files[..], &more].concat())
        });
        let words = ["lb", "--config", "lb.toml", "--listen", "127.0.0.1:4500"];
        let more = ["--metrics", "0", "--workers", "1"];
        let lb = Serving::spawn(&mut command(&folder, &[&words[..], &more].concat()));
        // Each address of the client has a path of its own.
        let words = [
            "emulate", "--rate", "20Mb/s", "--rtt", "60ms", "--queue", "60ms",
        ];
        let more = ["--listen", "10.9.0.1:4433", "--to", "127.0.0.1:4500"];
        let mut relay = Running::quiet(&mut command(&folder, &[&words[..], &more].concat()));
        relay.until("10.9.0.1:4433 ->");
        Self {
            folder,
            servers,
            lb,
            _relay: relay,
            client,
        }
    }

    /// Downloads 10 MB, and changes the client's network after 2 MB. Returns the longest gap between bytes from then on, and
    /// what the client printed.
    fn download(&self, change: &[&str]) -> (Duration, String) {
        let url = "https://10.9.0.1:4433/10MB";
        let words = ["get", "-k", "-v", "--http", "3", url];
        let mut command = self.client.lastbyte(&self.folder, &words);
        let mut client = Running::start(command.stdout(Stdio::piped()));
        let mut body = client.child.stdout.take().expect("its stdout");
        let (mut buffer, mut received, mut has_changed) = (vec![0; 1 << 16], 0, false);
        let (mut gap, mut last) = (Duration::ZERO, Instant::now());
        loop {
            let read = body.read(&mut buffer).expect("its output");
            if has_changed {
                gap = gap.max(last.elapsed());
            }
            if read == 0 {
                break;
            }
            received += read;
            if received >= SIZE / 5 && !has_changed {
                has_changed = true;
                for line in change {
                    self.client.run(line);
                }
            }
            last = Instant::now();
        }
        let (code, printed) = client.wait();
        assert_eq!((code, received), (Some(0), SIZE), "{printed}");
        (gap, printed)
    }

    fn sum(&self, metric: &str) -> u64 {
        self.servers
            .iter()
            .map(|server| server.metric(metric))
            .sum()
    }
}

/// Round trips of the path take 60 ms; without the move, the download ends by the idle timeout after 30 s.
const GAP_MAX: Duration = Duration::from_secs(1);

/// The Wi-Fi and its address disappear: the download continues over LTE, on the same connection to the same server.
#[test]
fn a_download_moves_when_the_address_disappears() {
    alone_or_skipped("a_download_moves_when_the_address_disappears", || {
        let setup = Setup::start("moves-lost");
        let (gap, printed) = setup.download(&["ip link delete wifi"]);
        assert!(gap < GAP_MAX, "{gap:?}");
        let moved = "* Connection 0: moved to local address 10.2.0.2\n";
        assert_eq!(printed.matches(moved).count(), 1, "{printed}");
        assert!(!printed.contains("* Connection 1"), "{printed}");
        // All counters agree: one connection, which moved, and packets routed by its ID afterwards. Packets that leave before
        // the client is notified already have the new address, which the server sees as a move of its own.
        assert_eq!(setup.sum(ACCEPTED), 1);
        assert!(matches!(setup.sum(MOVED), 1 | 2), "{}", setup.sum(MOVED));
        assert!(setup.lb.metric(BY_ID) > 100);
        assert!(setup.lb.metric(BY_HASH) <= 10);
    });
}

/// LTE becomes the better route while the Wi-Fi still works: the new path is probed first.
#[test]
fn a_download_moves_to_a_better_route_and_back() {
    alone_or_skipped("a_download_moves_to_a_better_route_and_back", || {
        let setup = Setup::start("moves-better");
        let better = ["ip route add default via 10.2.0.1 metric 50"];
        let (gap, printed) = setup.download(&better);
        assert!(gap < GAP_MAX, "{gap:?}");
        let trying = "* Connection 0: the network changed; trying local address 10.2.0.2\n";
        let moved = "* Connection 0: moved to local address 10.2.0.2\n";
        let (trying, moved) = (printed.find(trying), printed.find(moved));
        assert!(trying.is_some() && trying < moved, "{printed}");
        let (gap, printed) = setup.download(&["ip route delete default via 10.2.0.1 metric 50"]);
        assert!(gap < GAP_MAX, "{gap:?}");
        assert!(
            printed.contains("moved to local address 10.1.0.2\n"),
            "{printed}"
        );
        assert_eq!(setup.sum(ACCEPTED), 2);
    });
}

/// A short time without any network is survived too.
#[test]
fn a_download_goes_on_when_a_network_appears_again() {
    alone_or_skipped("a_download_goes_on_when_a_network_appears_again", || {
        let setup = Setup::start("moves-gone");
        let change = [
            "ip link set lte down",
            "ip link delete wifi",
            "ip link set lte up",
            "ip route add default via 10.2.0.1",
        ];
        let (gap, printed) = setup.download(&change);
        assert!(gap < Duration::from_secs(5), "{gap:?}");
        assert!(
            printed.contains("moved to local address 10.2.0.2\n"),
            "{printed}"
        );
        assert_eq!(setup.sum(ACCEPTED), 1);
    });
}

/// A NAT that gives the client another port now and then (`emulate --rebind`): the server follows.
#[test]
fn a_download_survives_a_nat_that_loses_its_bindings() {
    let folder = folder("moves-nat");
    let server = Serving::start(&folder, &["--self-signed"]);
    let to = format!("127.0.0.1:{}", server.port);
    let words = [
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &to,
        "--rtt",
        "20ms",
    ];
    let more = ["--rate", "20Mb/s", "--rebind", "300ms"];
    let mut relay = Running::quiet(&mut command(&folder, &[&words[..], &more].concat()));
    let line = relay.until("127.0.0.1:");
    let address = line.split(' ').next().expect("an address");
    let url = format!("https://{address}/5MB");
    let output = serving::lastbyte(&folder, &["get", "-k", "--http", "3", &url]);
    assert!(output.status.success(), "{}", serving::stderr(&output));
    assert_eq!(output.stdout.len(), 5_000_000);
    // 2 s and 300 ms each.
    assert!(server.metric(MOVED) >= 3, "{}", server.metric(MOVED));
    let refused = serving::lastbyte(&folder, &["emulate", "--rebind", "1ms"]);
    assert_eq!(refused.status.code(), Some(2));
}
