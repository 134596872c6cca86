//! Third-party clients behind a balancer, while a server is drained, another is replaced and killed, and the key of the
//! connection IDs changes.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use lastbyte_testkit::alone_or_skipped;

use super::{
    ACCEPTED, BY_HASH, BY_ID, Host, LB,
    serving::{PATIENCE, Running, Serving, certificate, command, folder},
};

const OPENED: &str = "lastbyte_lb_flows_total{event=\"opened\"}";
const RECEIVED: &str = "lastbyte_worker_datagrams_received_total{worker=\"0\"}";
const REQUESTS: &str = "lastbyte_requests_total{http=\"3\"}";
const AUTHORITY: &str = "10.9.0.1:4433";

/// The programs that are there. Each downloads a path to a file of the same name in a folder of its own.
const CLIENTS: [&str; 5] = ["lastbyte", "gtlsclient", "aioquic", "curl_cffi", "p_quicgo"];

/// The program of quic-go, which `.ci/install` builds.
fn quic_go() -> Option<PathBuf> {
    let folder = PathBuf::from(env::var_os("INTEROP_PEERS")?);
    Some(folder.join("p_quicgo")).filter(|program| program.is_file())
}

fn is_there(client: &str) -> bool {
    let succeeds = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    let is_there = match client {
        "lastbyte" => true,
        "gtlsclient" => succeeds("gtlsclient", &["--help"]),
        "p_quicgo" => quic_go().is_some(),
        "chromium" => succeeds("chromium", &["--version", "--no-sandbox"]),
        package => succeeds("python3", &["-c", &format!("import {package}")]),
    };
    if !is_there {
        lastbyte_testkit::skip(&format!("no `{client}`"));
    }
    is_there
}

/// The command line of a download.
fn download(client: &str, folder: &Path, path: &str) -> Vec<OsString> {
    let url = format!("https://{AUTHORITY}{path}");
    let file = folder.join(path.rsplit('/').next().expect("a name"));
    let file = file.display().to_string();
    let words = match client {
        "lastbyte" => {
            let binary = env!("CARGO_BIN_EXE_lastbyte");
            vec![binary, "get", "-k", "--http", "3", "-o", &file, &url]
                .into_iter()
                .map(str::to_owned)
                .collect()
        }
        "gtlsclient" => {
            let download = format!("--download={}", folder.display());
            ["gtlsclient", "-q", "--exit-on-all-streams-close", &download]
                .into_iter()
                .chain(["10.9.0.1", "4433", &url])
                .map(str::to_owned)
                .collect()
        }
        "p_quicgo" => {
            let program = quic_go().expect("it is there").display().to_string();
            vec![program, "get".into(), AUTHORITY.into(), path.into(), file]
        }
        package => {
            let script = format!(
                "{}/../../tests/interop/clients/{package}_get.py",
                env!("CARGO_MANIFEST_DIR")
            );
            let ask = serde_json::json!({
                "mode": "plain", "paths": [path.trim_start_matches('/')], "folder": folder,
                "host": "10.9.0.1", "port": 4433, "authority": AUTHORITY, "seconds": 60,
                "identity": folder.parent(),
            })
            .to_string();
            let words = ["python3", "-W", "ignore", &script, &ask];
            words.map(str::to_owned).to_vec()
        }
    };
    words.into_iter().map(OsString::from).collect()
}

/// Two servers behind a balancer, and the clients' host.
struct Fleet {
    folder: PathBuf,
    host: Host,
    clients: Vec<&'static str>,
    servers: [Serving; 2],
    lb: Serving,
}

fn start_server(folder: &Path, id: &str) -> Serving {
    let listen = format!("127.0.0.1:450{id}");
    let socket = format!("handover-{id}");
    let words = [
        "--cert",
        "a.pem",
        "--key",
        "a.key",
        "--lb-config",
        "lb.toml",
        "--server-id",
        id,
        "--handover",
        &socket,
        "--drain",
        "60s",
        "--generated",
        "--route",
        "/upload=sink",
    ];
    Serving::start_as(folder, &[], &listen, &words)
}

impl Fleet {
    fn start(name: &str, clients: &[&'static str]) -> Self {
        let host = Host::start();
        let folder = folder(name);
        certificate(&folder, "a");
        fs::copy(folder.join("a.key"), folder.join("key.pem")).expect("room");
        fs::write(folder.join("lb.toml"), LB).expect("room");
        let servers = ["1", "2"].map(|id| start_server(&folder, id));
        let words = ["lb", "--config", "lb.toml", "--listen", AUTHORITY];
        let more = ["--metrics", "0", "--workers", "2"];
        let lb = Serving::spawn(&mut command(&folder, &[&words[..], &more].concat()));
        let clients = clients.iter().copied();
        Self {
            clients: clients.filter(|client| is_there(client)).collect(),
            folder,
            host,
            servers,
            lb,
        }
    }

    fn begin(&self, client: &str, words: &[OsString]) -> Running {
        let output = self.folder.join(format!("{client}.txt"));
        let mut command = self.host.command(words);
        command
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(fs::File::create(output).expect("room"));
        Running::start(&mut command)
    }

    /// All clients download a path, and `meanwhile` runs when all of them are connected. Returns once all have it.
    fn download(&mut self, path: &str, len: u64, meanwhile: impl FnOnce(&mut Self)) {
        let before = self.lb.metric(OPENED);
        let clients = self.clients.clone();
        let running: Vec<(&str, PathBuf, Running)> = clients
            .iter()
            .map(|client| {
                let folder = self.folder.join(client);
                fs::create_dir_all(&folder).expect("room");
                let words = download(client, &folder, path);
                (*client, folder, self.begin(client, &words))
            })
            .collect();
        let all = before + clients.len() as u64;
        self.lb.wait_for(OPENED, |opened| opened >= all);
        let requests = |fleet: &Self| -> u64 {
            fleet
                .servers
                .iter()
                .map(|server| server.metric(REQUESTS))
                .sum()
        };
        let began = Instant::now();
        while requests(self) < clients.len() as u64 {
            assert!(began.elapsed() < PATIENCE, "{clients:?}: no request");
        }
        meanwhile(self);
        for (client, folder, running) in running {
            let (code, printed) = running.wait();
            assert_eq!(code, Some(0), "{client}: {printed}");
            let file = folder.join(path.rsplit('/').next().expect("a name"));
            let body = fs::metadata(&file).unwrap_or_else(|error| panic!("{client}: {error}"));
            assert_eq!(body.len(), len, "{client}: {printed}");
        }
    }

    /// The balancer has dropped nothing, and the first server has received all that was sent to it.
    fn check_datagrams(&self) {
        let (_, text) = self.lb.get_plain("/metrics");
        for line in text.lines().filter(|line| line.contains("_dropped_")) {
            assert!(line.starts_with('#') || line.ends_with(" 0"), "{line}");
        }
        let sent = self
            .lb
            .metric("lastbyte_lb_server_sent_datagrams_total{server=\"1\"}");
        self.servers[0].wait_for(RECEIVED, |received| received == sent);
    }

    fn reconfigure(&mut self, text: &str) -> String {
        fs::write(self.folder.join("next.toml"), text).expect("room");
        fs::rename(self.folder.join("next.toml"), self.folder.join("lb.toml")).expect("renamed");
        self.lb.until("reloaded: ")
    }
}

/// The number before a word of a line of the report that a server prints at its end.
fn number(printed: &str, line: &str, index: usize) -> u64 {
    let line = printed.lines().find_map(|text| text.strip_prefix(line));
    let word = line.and_then(|text| text.split_whitespace().nth(index));
    word.and_then(|word| word.parse().ok()).expect(printed)
}

#[test]
fn third_party_clients_survive_all_that_operators_do() {
    alone_or_skipped(
        "foreign::third_party_clients_survive_all_that_operators_do",
        || {
            let mut fleet = Fleet::start("moves-foreign", &CLIENTS);
            let count = fleet.clients.len() as u64;
            let drained = LB.replacen("4501\"", "4501\"\ndrain = true", 1);
            let (ids, servers) = drained.split_once("[[servers]]").expect("two parts");
            let next = ids
                .replace("config-id = 0", "config-id = 1")
                .replace("8f95", "0000");
            let rotated = format!("{next}{ids}[[servers]]{servers}");
            let mut first_of_2 = None;
            // The responses start after all of this.
            fleet.download("/delay/5s/1MB", 1_000_000, |fleet| {
                let line = fleet.reconfigure(&drained);
                assert!(line.contains("(1 draining)"), "{line}");
                let new = start_server(&fleet.folder, "2");
                let mut old = std::mem::replace(&mut fleet.servers[1], new);
                old.until("a later process has taken over");
                first_of_2 = Some(old);
                let line = fleet.reconfigure(&rotated);
                assert!(line.contains("2 layouts"), "{line}");
                for server in &mut fleet.servers {
                    server.signal("-HUP");
                    let line = server.until("reloaded: ");
                    assert!(line.contains(", connection IDs; "), "{line}");
                }
            });
            // The replaced process ends when its last connection has.
            let (code, printed) = first_of_2.expect("it was replaced").process.wait();
            assert_eq!(code, Some(0), "{printed}");
            let on_1 = fleet.servers[0].metric(ACCEPTED);
            let on_replaced = number(&printed, "HTTP/3: ", 0);
            assert_eq!(on_1 + on_replaced, count, "{printed}");
            assert_eq!(number(&printed, "HTTP/3: ", 2), on_replaced, "{printed}");
            // From now on, all go to the new process, which issues IDs of the new layout.
            assert_eq!(fleet.servers[1].metric(ACCEPTED), 0);
            fleet.download("/100kB", 100_000, |_| {});
            assert_eq!(fleet.servers[0].metric(ACCEPTED), on_1);
            assert_eq!(fleet.servers[1].metric(ACCEPTED), count);
            // The counters agree: of each connection, one packet or flight was hashed, and all else had an ID.
            assert_eq!(fleet.lb.metric(OPENED), 2 * count);
            assert_eq!(fleet.lb.metric(BY_HASH), 2 * count);
            assert!(fleet.lb.metric(BY_ID) > 10 * count);
            fleet.check_datagrams();
        },
    );
}

/// An upload is repeated until something answers, so a client notices that its server has forgotten it.
#[test]
fn a_stateless_reset_reaches_third_party_clients() {
    alone_or_skipped(
        "foreign::a_stateless_reset_reaches_third_party_clients",
        || {
            let mut fleet = Fleet::start("moves-killed", &CLIENTS);
            fleet.reconfigure(&LB.replacen("4501\"", "4501\"\ndrain = true", 1));
            // Larger than what passes meanwhile, without a byte on the disk.
            let file = fs::File::create(fleet.folder.join("body")).expect("room");
            file.set_len(1 << 38).expect("a sparse file");
            let url = format!("https://{AUTHORITY}/upload");
            let ours = [
                env!("CARGO_BIN_EXE_lastbyte"),
                "get",
                "-k",
                "--http",
                "3",
                "-T",
                "body",
                &url,
            ];
            let gtlsclient = [
                "gtlsclient",
                "-q",
                "--timeout=300s",
                "-m",
                "POST",
                "-d",
                "body",
            ];
            let gtlsclient = [&gtlsclient[..], &["10.9.0.1", "4433", &url]].concat();
            let all = [("lastbyte", &ours[..]), ("gtlsclient", &gtlsclient[..])];
            for (client, words) in all {
                if !fleet.clients.contains(&client) {
                    continue;
                }
                let words: Vec<OsString> = words.iter().map(OsString::from).collect();
                let running = fleet.begin(client, &words);
                // Beyond its first flow control window, so its handshake is confirmed: until then, it repeats only what belongs to
                // the handshake (RFC 9002 §6.2.1).
                fleet.servers[1].wait_for(RECEIVED, |datagrams| datagrams > 2000);
                let killed = &mut fleet.servers[1].process.child;
                killed.kill().expect("it runs");
                killed.wait().expect("it ends");
                fleet.servers[1] = start_server(&fleet.folder, "2");
                let began = Instant::now();
                let (_, printed) = running.wait();
                let text = fs::read_to_string(fleet.folder.join(format!("{client}.txt")));
                // Without a reset it would wait for its idle timeout, 30 s or 300 s.
                let took = began.elapsed();
                assert!(
                    took < Duration::from_secs(25),
                    "{client}: {took:?} {printed} {text:?}"
                );
            }
            // They are new clients now.
            fleet.download("/100kB", 100_000, |_| {});
        },
    );
}

/// Chromium loads a page from a server that is drained meanwhile, to the end. Another Chromium gets the other server.
#[test]
fn chromium_finishes_its_page_while_the_server_is_drained() {
    let name = "foreign::chromium_finishes_its_page_while_the_server_is_drained";
    alone_or_skipped(name, || {
        let mut fleet = Fleet::start("moves-chromium", &["chromium"]);
        if fleet.clients.is_empty() {
            return;
        }
        let accepted = |fleet: &Fleet| [0, 1].map(|index| fleet.servers[index].metric(ACCEPTED));
        let mut before = [0; 2];
        fleet.download("/delay/5s/1MB", 1_000_000, |fleet| {
            before = accepted(fleet);
            let drained = if before[0] > 0 { "4501\"" } else { "4502\"" };
            let text = LB.replacen(drained, &format!("{drained}\ndrain = true"), 1);
            let line = fleet.reconfigure(&text);
            assert!(line.contains("(1 draining)"), "{line}");
        });
        // All of the page came over the connections that it had before.
        assert!(before.contains(&0), "{before:?}");
        assert_eq!(accepted(&fleet), before);
        fleet.download("/100kB", 100_000, |_| {});
        let after = accepted(&fleet);
        let new = [0, 1].map(|index| after[index] - before[index]);
        let (drained, other) = if before[0] > 0 { (0, 1) } else { (1, 0) };
        assert!(new[drained] == 0 && new[other] > 0, "{before:?} {after:?}");
        assert_eq!(fleet.lb.metric(OPENED), after[0] + after[1]);
        assert!(fleet.lb.metric(BY_ID) > 20);
        fleet.check_datagrams();
    });
}
