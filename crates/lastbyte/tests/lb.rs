//! `lastbyte lb` between clients and two `lastbyte serve`, as people run them.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what commands read and write is files and sockets"
)]

use std::{
    fmt::Write as _,
    fs,
    net::{SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;

use serving::{Running, Serving, certificate, command, folder, free_port, lastbyte, stderr};

const IDS: &str = "\
[[ids]]
config-id = 0
server-id-length = 2
nonce-length = 14
key = \"8f95f09245765f80256934e50c66207f\"
";
/// Another key and other lengths, for which the cipher is another one.
const NEXT_IDS: &str = "\
[[ids]]
config-id = 1
server-id-length = 3
nonce-length = 10
key = \"fdf726a9893ec05c0632d3956680baf0\"
";

const KEY: &str = "\"101112131415161718191a1b1c1d1e1f\"";
const NEXT_KEY: &str = "\"00112233445566778899aabbccddeeff\"";

/// Layouts and keys of Retry packets.
fn with_retry(keys: &[&str]) -> String {
    let keys = keys.join(", ");
    format!("[retry]\nkeys = [{keys}]\nbalancers = [\"127.0.0.1\"]\n{IDS}")
}

const RECEIVED: &str = "lastbyte_worker_datagrams_received_total{worker=\"0\"}";
const SENT: &str = "lastbyte_worker_datagrams_sent_total{worker=\"0\"}";
const ACCEPTED: &str = "lastbyte_connections_accepted_total{transport=\"quic\"}";
const BY_ID: &str = "lastbyte_lb_forwarded_datagrams_total{by=\"connection_id\"}";
const RETRIES: &str = "lastbyte_lb_retries_total";
const TOKENS: &str = "lastbyte_lb_retry_tokens_accepted_total";
const OPENED: &str = "lastbyte_lb_flows_total{event=\"opened\"}";

/// A balancer in front of servers 1 and 2, which have one certificate.
struct Fleet {
    folder: PathBuf,
    ports: [u16; 2],
    servers: [Serving; 2],
    lb: Serving,
}

/// A configuration file. `more` has further keys of each server.
fn write_config(folder: &Path, ids: &str, ports: [u16; 2], more: [&str; 2]) {
    let mut text = ids.to_owned();
    for (index, port) in ports.into_iter().enumerate() {
        let id = index + 1;
        let more = more[index];
        let _ = write!(
            text,
            "[[servers]]\nid = {id}\naddress = \"127.0.0.1:{port}\"\n{more}\n"
        );
    }
    // In one step, as editors do.
    fs::write(folder.join("next.toml"), text).expect("room");
    fs::rename(folder.join("next.toml"), folder.join("lb.toml")).expect("renamed");
}

fn start_server(folder: &Path, id: usize, port: u16) -> Serving {
    let (id, listen) = (id.to_string(), format!("127.0.0.1:{port}"));
    let flags = [
        "--cert",
        "a.pem",
        "--key",
        "a.key",
        "--lb-config",
        "lb.toml",
    ];
    Serving::start_as(
        folder,
        &[],
        &listen,
        &[&flags[..], &["--server-id", &id]].concat(),
    )
}

impl Fleet {
    /// Kills a server, and starts another in its place.
    fn restart(&mut self, server: usize) {
        let killed = &mut self.servers[server].process.child;
        killed.kill().expect("it runs");
        killed.wait().expect("it ends");
        self.servers[server] = start_server(&self.folder, server + 1, self.ports[server]);
    }

    fn start(name: &str) -> Self {
        Self::start_with(name, IDS, &[])
    }

    /// Each new client gets a Retry of the balancer.
    fn start_with_retry(name: &str) -> Self {
        Self::start_with(name, &with_retry(&[KEY]), &["--retry", "always"])
    }

    fn start_with(name: &str, ids: &str, flags: &[&str]) -> Self {
        let folder = folder(name);
        certificate(&folder, "a");
        let ports = [free_port(), free_port()];
        write_config(&folder, ids, ports, ["", ""]);
        let servers = [1, 2].map(|id| start_server(&folder, id, ports[id - 1]));
        // Free over UDP and TCP.
        let listen = format!("127.0.0.1:{}", free_port());
        let words = ["lb", "--config", "lb.toml", "--listen", &listen];
        let more = [
            "--metrics",
            "0",
            "--workers",
            "2",
            "--health-interval",
            "50ms",
        ];
        let words = [&words[..], &more, flags].concat();
        let lb = Serving::spawn(&mut command(&folder, &words));
        Self {
            folder,
            ports,
            servers,
            lb,
        }
    }

    /// Changes the file, and waits until the balancer has read it.
    fn reconfigure(&mut self, ids: &str, more: [&str; 2]) -> String {
        write_config(&self.folder, ids, self.ports, more);
        self.lb.until("reloaded: ")
    }

    fn get(&self, path: &str, version: &str) {
        let output = self.lb.get(&self.folder, path, &["--http", version]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(output.stdout.len(), 100_000);
    }

    fn accepted(&self) -> [u64; 2] {
        [0, 1].map(|index| self.servers[index].metric(ACCEPTED))
    }

    /// A client that has been connected for a while when this returns, and the index of its server.
    fn begin(&self, path: &str) -> (Running, usize) {
        let before = self.accepted();
        let flags = ["-v", "-o", "/dev/null", "--http", "3"];
        let mut client = self.lb.begin(&self.folder, path, &flags);
        client.until("< HTTP/3 200");
        let server = (0..2).find(|index| self.accepted()[*index] > before[*index]);
        (client, server.expect("it is connected"))
    }
}

#[test]
fn the_counters_of_clients_balancer_and_servers_agree() {
    let fleet = Fleet::start("lb-counters");
    for _ in 0..8 {
        fleet.get("/100kB", "3");
    }
    assert_eq!(fleet.accepted().iter().sum::<u64>(), 8);
    assert_eq!(fleet.lb.metric(OPENED), 8);
    for (index, server) in fleet.servers.iter().enumerate() {
        let id = index + 1;
        let name = format!("lastbyte_lb_server_sent_datagrams_total{{server=\"{id}\"}}");
        server.wait_for(RECEIVED, |count| count == fleet.lb.metric(&name));
    }
    let sent = || {
        fleet
            .servers
            .iter()
            .map(|server| server.metric(SENT))
            .sum::<u64>()
    };
    let received = "lastbyte_lb_received_datagrams_total{from=\"servers\"}";
    fleet.lb.wait_for(received, |count| count == sent());
    let to_clients = "lastbyte_lb_forwarded_datagrams_total{by=\"upstream_socket\"}";
    fleet.lb.wait_for(to_clients, |count| count == sent());
    let (_, text) = fleet.lb.get_plain("/metrics");
    for line in text.lines().filter(|line| line.contains("_dropped_")) {
        assert!(line.starts_with('#') || line.ends_with(" 0"), "{line}");
    }
    // Each client's first packets are hashed, all others have a connection ID of the server.
    let hashed = fleet
        .lb
        .metric("lastbyte_lb_forwarded_datagrams_total{by=\"hash\"}");
    assert_eq!(hashed, 8);
    assert!(fleet.lb.metric(BY_ID) > 8);
    let (code, printed) = fleet.lb.end();
    assert_eq!(code, 0);
    assert!(printed.contains("client addresses: 8"), "{printed}");
}

/// RFC 9000 §8.1.2, §7.3: the servers have sent no Retry, and the clients check that the IDs in the transport parameters are
/// those of the balancer's.
#[test]
fn clients_connect_after_a_retry_of_the_balancer_while_its_key_changes() {
    let mut fleet = Fleet::start_with_retry("lb-retry");
    let mut count = 0;
    for keys in [&[KEY][..], &[KEY, NEXT_KEY], &[NEXT_KEY, KEY], &[NEXT_KEY]] {
        if count > 0 {
            fleet.reconfigure(&with_retry(keys), ["", ""]);
            for server in &mut fleet.servers {
                server.signal("-HUP");
                let line = server.until("reloaded: ");
                assert!(line.contains(", Retry keys; "), "{line}");
            }
        }
        for _ in 0..4 {
            fleet.get("/100kB", "3");
        }
        count += 4;
        assert_eq!(fleet.accepted().iter().sum::<u64>(), count);
        // A first flight may have several packets.
        let (retries, tokens) = (fleet.lb.metric(RETRIES), fleet.lb.metric(TOKENS));
        assert!(retries >= count && tokens >= count, "{retries} {tokens}");
        // None before the token.
        assert_eq!(fleet.lb.metric(OPENED), count);
    }
    let (_, text) = fleet.lb.get_plain("/metrics");
    for line in text.lines().filter(|line| line.contains("_dropped_")) {
        assert!(line.starts_with('#') || line.ends_with(" 0"), "{line}");
    }
    // A server that does not have the key, or not this balancer, ignores the token, so the client finds other IDs.
    let text = with_retry(&[NEXT_KEY]).replace("127.0.0.1", "192.0.2.1");
    fleet.reconfigure(&text, ["", ""]);
    for server in &mut fleet.servers {
        server.signal("-HUP");
        server.until("reloaded: ");
    }
    let flags = ["--http", "3", "--connect-timeout", "60"];
    let output = fleet.lb.get(&fleet.folder, "/100kB", &flags);
    let printed = stderr(&output);
    assert!(
        !output.status.success() && printed.contains("TRANSPORT_PARAMETER_ERROR"),
        "{printed}"
    );
}

#[test]
fn retry_needs_keys() {
    let folder = folder("lb-no-keys");
    write_config(&folder, IDS, [1, 2], ["", ""]);
    let words = ["lb", "--check", "--config", "lb.toml", "--retry", "always"];
    let output = lastbyte(&folder, &words);
    assert_eq!(output.status.code(), Some(2));
    let printed = stderr(&output);
    assert!(
        printed.contains("--retry always: `lb.toml` has no [retry]"),
        "{printed}"
    );
}

#[test]
fn http_1_and_2_pass_through() {
    let fleet = Fleet::start("lb-tcp");
    for version in ["1.1", "2", "1.1", "2"] {
        fleet.get("/100kB", version);
    }
    assert_eq!(fleet.lb.metric("lastbyte_lb_tcp_connections_total"), 4);
    assert_eq!(fleet.lb.metric("lastbyte_lb_tcp_failed_total"), 0);
}

#[test]
fn a_drained_server_keeps_its_connections_and_gets_no_new_ones() {
    let mut fleet = Fleet::start("lb-drain");
    let (mut client, server) = fleet.begin("/100g");
    let mut more = ["", ""];
    more[server] = "drain = true";
    let line = fleet.reconfigure(IDS, more);
    assert_eq!(
        line,
        "reloaded: 2 servers (1 draining), 1 layout of connection IDs\n"
    );
    let before = fleet.accepted();
    for version in ["3", "3", "3", "1.1"] {
        fleet.get("/100kB", version);
    }
    let after = fleet.accepted();
    assert_eq!(after[server], before[server]);
    assert_eq!(after[1 - server], before[1 - server] + 3);
    // The old connection is still served.
    let sent = fleet.servers[server].metric(SENT);
    fleet.servers[server].wait_for(SENT, |count| count > sent + 1000);
    client.child.kill().expect("it runs");
}

#[test]
fn a_stateless_reset_of_a_restarted_server_reaches_the_client() {
    let mut fleet = Fleet::start("lb-reset");
    let (client, server) = fleet.begin("/100g");
    fleet.restart(server);
    let (code, printed) = client.wait();
    assert_eq!(code, Some(18), "{printed}");
    assert!(printed.contains("stateless reset"), "{printed}");
}

#[test]
fn connections_survive_a_change_of_the_key() {
    let mut fleet = Fleet::start("lb-rotation");
    let (mut client, server) = fleet.begin("/100g");
    // The balancer first, then a server, which issues IDs of the first layout.
    let line = fleet.reconfigure(&format!("{NEXT_IDS}{IDS}"), ["", ""]);
    assert!(line.contains("2 layouts"), "{line}");
    fleet.restart(1 - server);
    for _ in 0..8 {
        fleet.get("/100kB", "3");
    }
    assert_eq!(
        fleet
            .lb
            .metric("lastbyte_lb_forwarded_datagrams_total{by=\"hash\"}"),
        9
    );
    let sent = fleet.servers[server].metric(SENT);
    fleet.servers[server].wait_for(SENT, |count| count > sent + 1000);
    client.child.kill().expect("it runs");
}

/// No server is restarted: on SIGHUP, each issues IDs of the layout that is the first one now.
#[test]
fn the_key_changes_without_a_restart() {
    let mut fleet = Fleet::start("lb-reload");
    let (mut client, server) = fleet.begin("/100g");
    let next = IDS
        .replace("config-id = 0", "config-id = 1")
        .replace("8f95", "0000");
    let line = fleet.reconfigure(&format!("{next}{IDS}"), ["", ""]);
    assert!(line.contains("2 layouts"), "{line}");
    for server in &mut fleet.servers {
        server.signal("-HUP");
        let line = server.until("reloaded: ");
        let expected = "reloaded: arms, certificate, connection IDs; configuration ";
        assert!(line.starts_with(expected), "{line}");
    }
    // The connection that is open keeps its IDs, and both layouts route.
    for _ in 0..4 {
        fleet.get("/100kB", "3");
    }
    let sent = fleet.servers[server].metric(SENT);
    fleet.servers[server].wait_for(SENT, |count| count > sent + 1000);
    client.child.kill().expect("it runs");
    // Without the first layout, the new connections show which IDs they have.
    fleet.reconfigure(&next, ["", ""]);
    for _ in 0..4 {
        fleet.get("/100kB", "3");
    }
    let by_hash = "lastbyte_lb_forwarded_datagrams_total{by=\"hash\"}";
    let (hashed, by_id) = (fleet.lb.metric(by_hash), fleet.lb.metric(BY_ID));
    fleet.get("/100kB", "3");
    assert_eq!(fleet.lb.metric(by_hash), hashed + 1);
    assert!(fleet.lb.metric(BY_ID) > by_id);
    // Other lengths need a restart, and change nothing.
    write_config(&fleet.folder, NEXT_IDS, fleet.ports, ["", ""]);
    fleet.servers[0].signal("-HUP");
    fleet.servers[0].until("error: --lb-config: server ID and nonce have 13 bytes");
    fleet.servers[0].until("reload failed; keeping the current configuration");
}

#[test]
fn an_invalid_file_is_reported_and_the_current_one_kept() {
    let mut fleet = Fleet::start("lb-invalid");
    let valid = fs::read_to_string(fleet.folder.join("lb.toml")).expect("a file");
    fs::write(
        fleet.folder.join("lb.toml"),
        valid.replace("id = 2", "id = 1"),
    )
    .expect("room");
    fleet
        .lb
        .until("error: `lb.toml`: two servers have the ID 1");
    fleet
        .lb
        .until("reload failed; keeping the current configuration");
    fleet.get("/100kB", "3");
    fs::write(fleet.folder.join("lb.toml"), valid).expect("room");
    fleet.lb.until("reloaded: no change");
    fleet.lb.signal("-HUP");
    fleet.lb.until("reloaded: no change");
    let words = ["lb", "--check", "--config", "none.toml"];
    let output = lastbyte(&fleet.folder, &words);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read `none.toml`"));
}

#[test]
fn keys_are_in_no_message_and_a_file_that_any_user_can_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("lb-secrets");
    certificate(&folder, "a");
    let path = folder.join("lb.toml");
    let (ids, key) = (with_retry(&[KEY]), "8f95f09245765f80256934e50c66207f");
    let check = |text: &str, mode| {
        fs::write(&path, text).expect("room");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        let lb = lastbyte(&folder, &["lb", "--check", "--config", "lb.toml"]);
        let server = ["serve", "--check", "--cert", "a.pem", "--key", "a.key"];
        let server = [&server[..], &["--lb-config", "lb.toml", "--server-id", "1"]].concat();
        [lb, lastbyte(&folder, &server)].map(|output| (output.status.code(), stderr(&output)))
    };
    write_config(&folder, &ids, [1, 2], ["", ""]);
    let valid = fs::read_to_string(&path).expect("a file");
    let warning = "warning: any user can read `lb.toml`: mode 0666 (expected 0600)\n";
    for (code, printed) in check(&valid, 0o666) {
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains(warning), "{printed}");
    }
    for (_, printed) in check(&valid, 0o640) {
        assert!(!printed.contains("read `lb.toml`"), "{printed}");
    }
    for slip in [format!("{key}\n"), format!("{key}\"]\n")] {
        let text = valid.replace(&format!("{key}\"\n"), &slip);
        assert_ne!(text, valid);
        for (code, printed) in check(&text, 0o600) {
            assert_eq!(code, Some(2), "{printed}");
            assert!(printed.contains("`lb.toml`: line "), "{printed}");
            assert!(!printed.contains(&key[..8]), "{printed}");
        }
    }
}

#[test]
fn a_server_that_fails_its_health_checks_gets_no_new_connections() {
    let mut fleet = Fleet::start("lb-health");
    let health = [0, 1].map(|index| {
        let port = fleet.servers[index].metrics;
        format!("health = \"127.0.0.1:{port}\"")
    });
    fleet.reconfigure(IDS, [&health[0], &health[1]]);
    let killed = &mut fleet.servers[0].process.child;
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    fleet.lb.until("server 1 is down: ");
    assert_eq!(fleet.lb.metric("lastbyte_lb_server_up{server=\"1\"}"), 0);
    for version in ["3", "3", "3", "2"] {
        fleet.get("/100kB", version);
    }
    assert_eq!(fleet.servers[1].metric(ACCEPTED), 3);
    // On the same port for its health: it is up again.
    let metrics = format!("127.0.0.1:{}", fleet.servers[0].metrics);
    let listen = format!("127.0.0.1:{}", fleet.ports[0]);
    let words = [
        "serve",
        "--cert",
        "a.pem",
        "--key",
        "a.key",
        "--lb-config",
        "lb.toml",
    ];
    let more = [
        "--server-id",
        "1",
        "--listen",
        &listen,
        "--metrics",
        &metrics,
    ];
    fleet.servers[0] = Serving::spawn(&mut command(&fleet.folder, &[&words[..], &more].concat()));
    fleet.lb.until("server 1 is up");
}

/// A NAT between a client and the balancer, which changes the client's port when this many bytes have come back.
fn start_nat(balancer: SocketAddr, after: usize) -> u16 {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let port = front.local_addr().expect("bound").port();
    let outer = [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket")));
    let client = Arc::new(Mutex::new(None));
    let returned = Arc::new(AtomicUsize::new(0));
    for outer in &outer {
        let (outer, front) = (Arc::clone(outer), Arc::clone(&front));
        let (client, returned) = (Arc::clone(&client), Arc::clone(&returned));
        let back = move || {
            let mut buffer = vec![0; 65_536];
            while let Ok((len, _)) = outer.recv_from(&mut buffer) {
                returned.fetch_add(len, Ordering::Relaxed);
                let client: Option<SocketAddr> = *client.lock().expect("no panic");
                let _ = front.send_to(&buffer[..len], client.expect("it sent something"));
            }
        };
        thread::Builder::new().spawn(back).expect("a thread");
    }
    let forth = move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((len, from)) = front.recv_from(&mut buffer) {
            *client.lock().expect("no panic") = Some(from);
            let index = usize::from(returned.load(Ordering::Relaxed) > after);
            let _ = outer[index].send_to(&buffer[..len], balancer);
        }
    };
    thread::Builder::new().spawn(forth).expect("a thread");
    port
}

/// RFC 9000 §9.3: to the balancer this is another client address, to the server a change of address.
#[test]
fn a_client_whose_port_changes_stays_on_its_server() {
    let fleet = Fleet::start("lb-rebinding");
    let balancer = SocketAddr::from(([127, 0, 0, 1], fleet.lb.port));
    for count in 1..=4 {
        let port = start_nat(balancer, 2_000_000);
        let url = format!("https://127.0.0.1:{port}/20MB");
        let words = ["get", "-k", &url, "--http", "3", "-o", "body"];
        let output = lastbyte(&fleet.folder, &words);
        assert!(output.status.success(), "{}", stderr(&output));
        let body = fs::metadata(fleet.folder.join("body")).expect("a file");
        assert_eq!(body.len(), 20_000_000);
        assert_eq!(fleet.lb.metric(OPENED), 2 * count, "it had two addresses");
        assert_eq!(
            fleet.accepted().iter().sum::<u64>(),
            count,
            "and one connection"
        );
    }
}

#[test]
fn gtlsclient_downloads_through_the_balancer() {
    gtlsclient_downloads(|| Fleet::start("lb-gtlsclient"));
}

#[test]
fn gtlsclient_downloads_after_a_retry_of_the_balancer() {
    if let Some(fleet) = gtlsclient_downloads(|| Fleet::start_with_retry("lb-gtlsclient-retry")) {
        assert!(fleet.lb.metric(RETRIES) >= 4 && fleet.lb.metric(TOKENS) >= 4);
    }
}

/// Four downloads; `None` if there is no such client.
fn gtlsclient_downloads(start: impl FnOnce() -> Fleet) -> Option<Fleet> {
    if Command::new("gtlsclient").arg("--help").output().is_err() {
        lastbyte_testkit::skip("no `gtlsclient`");
        return None;
    }
    let fleet = start();
    let (port, path) = (fleet.lb.port.to_string(), "/1MB");
    let download = format!("--download={}", fleet.folder.display());
    for count in 1..=4 {
        let output = Command::new("gtlsclient")
            .args([
                "-q",
                "--exit-on-all-streams-close",
                &download,
                "127.0.0.1",
                &port,
            ])
            .arg(format!("https://localhost:{port}{path}"))
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let body = fleet.folder.join("1MB");
        assert_eq!(fs::metadata(&body).expect("a file").len(), 1_000_000);
        fs::remove_file(body).expect("it was there");
        assert_eq!(fleet.accepted().iter().sum::<u64>(), count);
    }
    Some(fleet)
}

#[test]
fn a_server_needs_an_id_of_the_file() {
    let folder = folder("lb-ids");
    write_config(&folder, IDS, [1, 2], ["", ""]);
    for (flags, expected) in [
        (&[][..], "--lb-config requires --server-id"),
        (
            &["--server-id", "3"],
            "3 is not a server of `lb.toml` (expected one of 1, 2)",
        ),
    ] {
        let words = [
            "serve",
            "--self-signed",
            "--check",
            "--lb-config",
            "lb.toml",
        ];
        let output = lastbyte(&folder, &[&words[..], flags].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let output = lastbyte(
        &folder,
        &["serve", "--self-signed", "--check", "--server-id", "256"],
    );
    assert!(!output.status.success());
}
