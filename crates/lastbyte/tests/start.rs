//! The pages `docs/start.md`, `docs/recipes.md`, `docs/plan.md` and `docs/front.md`: every command of them is run, in its order.
//!
//! Blocks are marked: `sh` is run to its end, `sh server` runs until the page ends, `sh browser` is the one that Chromium
//! is started with. `sh build` is what made this test.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "commands read and write files and sockets"
)]

#[path = "common/h2o.rs"]
mod h2o;
#[path = "common/serving.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod serving;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
};

use serving::{Running, folder, free_port, stderr};

const PAGE: &str = include_str!("../../../docs/start.md");
const PLAN: &str = include_str!("../../../docs/plan.md");
const RECIPES: &str = include_str!("../../../docs/recipes.md");
const FRONT: &str = include_str!("../../../docs/front.md");
const UNIT: &str = include_str!("../../../packaging/lastbyte@.service");

/// The ports of the page: of servers, of relays, of metrics. Here others are used.
const PORTS: [&str; 5] = ["4433", "4443", "4453", "4463", "9100"];

/// The blocks of a page: how they are marked, and what is in them.
fn blocks(page: &str) -> Vec<(String, String)> {
    let ports: Vec<u16> = PORTS.iter().map(|_| free_port()).collect();
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, begun)) = rest.split_once("```sh") {
        let (mark, begun) = begun.split_once('\n').expect("a block");
        let (block, after) = begun.split_once("```").expect("its end");
        let mut block = block.to_owned();
        for (known, free) in PORTS.iter().zip(&ports) {
            block = block.replace(&format!(":{known}"), &format!(":{free}"));
        }
        blocks.push((mark.trim().to_owned(), block));
        rest = after;
    }
    blocks
}

struct Machine {
    folder: PathBuf,
    path: String,
    servers: Vec<Running>,
}

impl Machine {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        let programs = folder.join("bin");
        fs::create_dir(&programs).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_lastbyte"), programs.join("lastbyte")).expect("a link");
        let inherited = std::env::var("PATH").expect("a path");
        Self {
            path: format!("{}:{inherited}", programs.display()),
            folder,
            servers: Vec::new(),
        }
    }

    /// The folder that the page makes, once it is there.
    fn place(&self) -> PathBuf {
        let made = self.folder.join("first");
        if made.exists() {
            made
        } else {
            self.folder.clone()
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.place())
            .env("PATH", &self.path)
            .env_remove("SSLKEYLOGFILE")
            .stdin(Stdio::null());
        command
    }

    /// A script, not as an argument: `pkill -f` would find it.
    fn run(&self, script: &str) -> Output {
        let file = self.folder.join("script");
        fs::write(&file, script).expect("room");
        let output = self
            .command("bash")
            .args(["-eu", "-o", "pipefail"])
            .arg(&file)
            .output();
        output.expect("bash runs")
    }

    /// A server continues in the background.
    fn serve(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().expect("a program"));
        command.args(words);
        let mut server = Running::quiet(&mut command);
        server.until(if line.contains(" emulate ") {
            ""
        } else {
            "listening on "
        });
        self.servers.push(server);
    }
}

/// What a browser shows, without a window.
fn look(machine: &Machine, line: &str) {
    if machine.run("command -v chromium").status.code() != Some(0) {
        return lastbyte_testkit::skip("no `chromium`");
    }
    let printed = &machine.servers.first().expect("a server").printed;
    let (_, hash) = printed
        .split_once("spki-list=")
        .expect("the hash of its key");
    let hash = hash.split_whitespace().next().expect("a hash");
    let profile = machine.folder.join("profile");
    let headless = format!(
        "chromium --headless=new --no-sandbox --no-first-run --disable-background-networking --user-data-dir={} --dump-dom ",
        profile.display()
    );
    let line = line
        .replace("HASH", hash)
        .replacen("chromium ", &headless, 1);
    let shown = machine.run(&line);
    let page = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        page.contains("<p id=\"p\">h3</p>"),
        "{page}{}",
        stderr(&shown)
    );
}

#[test]
fn each_command_of_the_page_works() {
    let mut machine = Machine::new("start");
    let mut printed = String::new();
    let mut counted = [0; 4];
    for (mark, block) in blocks(PAGE) {
        match mark.as_str() {
            "build" => {
                counted[0] += 1;
                assert!(block.contains("cargo build --release"), "{block}");
            }
            "server" => {
                counted[1] += 1;
                machine.serve(block.trim());
            }
            "browser" => {
                counted[2] += 1;
                look(&machine, block.trim());
            }
            "" => {
                counted[3] += 1;
                let output = machine.run(&block);
                // Arms are drawn at random: in a thousandth of all runs their numbers look like no chance, and the last command
                // of the block says so.
                let is_uneven =
                    block.contains("lastbyte report") && output.status.code() == Some(3);
                let is_done = output.status.success() || is_uneven;
                assert!(is_done, "{block}\n{}", stderr(&output));
                // The next block needs the new configuration.
                if block.contains("pkill -HUP") {
                    machine.servers[2].until("reloaded");
                }
                printed.push_str(&String::from_utf8_lossy(&output.stdout));
            }
            other => panic!("what is `{other}`?"),
        }
    }
    assert_eq!(counted, [1, 4, 1, 10], "built, servers, browsers, run");
    assert!(printed.contains("HTTP/3 200"), "{printed}");
    let place = machine.place();
    let is_there = |name: &str| fs::metadata(place.join(name)).is_ok_and(|file| file.len() > 1000);
    for name in [
        "transfer.html",
        "ab/report.html",
        "report.html",
        "conns.ndjson",
    ] {
        assert!(is_there(name), "{name}");
    }
    for server in &machine.servers {
        server.signal("-TERM");
    }
    for server in machine.servers.drain(..) {
        let (code, printed) = server.wait();
        assert_eq!(code, Some(0), "{printed}");
    }
    let lines = serving::lines(&place.join("conns.ndjson"));
    check_lines(&lines);
    let output = machine.run("lastbyte report conns.ndjson");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("lines of several experiments (four-arms, none)"),
        "{error}"
    );
    links_lead_somewhere(PAGE);
}

/// 25 tasks, with two servers; the last command ends what it started.
#[test]
fn each_recipe_works() {
    let mut machine = Machine::new("recipes");
    fs::write(machine.folder.join("h2o.ndjson"), h2o::log()).expect("a log");
    let mut count = 0;
    for (mark, block) in blocks(RECIPES) {
        if mark == "server" {
            machine.serve(block.trim());
            continue;
        }
        assert_eq!(mark, "", "{block}");
        let output = machine.run(&block);
        assert!(output.status.success(), "{block}\n{}", stderr(&output));
        count += 1;
    }
    assert!(count > 25, "{count} recipes");
    for server in machine.servers.drain(..) {
        server.signal("-TERM");
        let (code, printed) = server.wait();
        assert_eq!(code, Some(0), "{printed}");
    }
    links_lead_somewhere(RECIPES);
}

/// The ramp is rehearsed with fewer connections than on the page.
#[test]
fn each_command_of_the_plan_works() {
    let mut machine = Machine::new("plan");
    let mut reloads = 0;
    for (mark, block) in blocks(PLAN) {
        if mark == "server" {
            machine.serve(block.trim());
            continue;
        }
        let block = block
            .replace("connections = 700000", "connections = 100")
            .replace("--rehearse 100", "--rehearse 2");
        let output = machine.run(&block);
        assert!(output.status.success(), "{block}\n{}", stderr(&output));
        if block.contains("pkill -HUP") {
            machine.servers[1].until("reloaded");
            reloads += 1;
        }
    }
    assert_eq!(reloads, 2);
    for server in machine.servers.drain(..) {
        server.signal("-TERM");
        let (code, printed) = server.wait();
        assert_eq!(code, Some(0), "{printed}");
    }
    links_lead_somewhere(PLAN);
}

/// The application of the front server: a response of two bytes for each connection.
fn application() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    let serve = move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|it| !it.is_empty()))
            {}
            let _ = stream.write_all(answer.as_bytes());
        }
    };
    thread::Builder::new().spawn(serve).expect("a thread");
    port
}

/// The text of the front server's page with names, paths and ports of this machine, and with a certificate in place of ACME.
fn here(text: &str, folder: &Path, ports: [u16; 4]) -> String {
    let [secure, plain, metrics, application] = ports;
    let at = |name: &str| folder.join(name).display().to_string();
    let files = format!("cert = \"{}\"\nkey = \"{}\"", at("ca.pem"), at("ca.key"));
    let url = "https://www.example.com/";
    [
        ("/etc/lastbyte", at("etc")),
        ("/var/log/lastbyte", at("log")),
        ("/run/lastbyte", at("run")),
        ("acme = [\"www.example.com\"]", files),
        ("acme-state = ", "# ".to_owned()),
        ("[::]:443", format!("127.0.0.1:{secure}")),
        ("[::]:80", format!("127.0.0.1:{plain}")),
        ("127.0.0.1:8080", format!("127.0.0.1:{application}")),
        ("127.0.0.1:9100", format!("127.0.0.1:{metrics}")),
        (
            url,
            format!(
                "--cacert {} --connect-to www.example.com:443:127.0.0.1:{secure} {url}",
                at("ca.pem")
            ),
        ),
        // Of an ordinary user, without the group of the package.
        ("sudo ", String::new()),
        (" -g lastbyte", String::new()),
        ("/usr/bin/lastbyte", "lastbyte".to_owned()),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (there, here)| {
        text.replace(there, &here)
    })
}

/// What systemd would do is done as the unit says; packages are tested elsewhere (`.ci/packages`).
#[test]
fn each_command_of_the_front_server_works() {
    let mut machine = Machine::new("front");
    let folder = machine.folder.clone();
    for name in ["etc", "log", "run"] {
        fs::create_dir(folder.join(name)).expect("a folder");
    }
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["www.example.com".to_owned()])
            .expect("a certificate");
    fs::write(folder.join("ca.pem"), cert.pem()).expect("room");
    fs::write(folder.join("ca.key"), signing_key.serialize_pem()).expect("room");
    let ports = [free_port(), free_port(), free_port(), application()];
    let here = |text: &str| here(text, &folder, ports);
    let (_, config) = FRONT.split_once("```toml\n").expect("a configuration");
    let (config, _) = config.split_once("```").expect("its end");
    fs::write(folder.join("etc/serve.toml"), here(config)).expect("room");
    let start = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let start = here(start.expect("a command"));
    let (mut printed, mut run) = (String::new(), 0);
    for command in FRONT.lines().filter_map(|line| line.strip_prefix("    ")) {
        let words: Vec<&str> = command.trim_start_matches("sudo ").split(' ').collect();
        match words[..] {
            ["packaging/build" | "apt", ..] | ["systemctl", "disable", ..] => {}
            ["systemctl", "enable", "--now", "lastbyte@a"] => machine.serve(&start),
            ["systemctl", "start", "lastbyte@b"] => {
                machine.serve(&start);
                machine.servers[0].until("a later process has taken over");
            }
            ["systemctl", ..] => panic!("what is `{command}`?"),
            _ => {
                let output = machine.run(&here(command));
                assert!(output.status.success(), "{command}\n{}", stderr(&output));
                printed.push_str(&String::from_utf8_lossy(&output.stdout));
                run += 1;
            }
        }
    }
    assert_eq!((run, machine.servers.len()), (7, 2), "commands, instances");
    assert!(printed.lines().any(|line| line == "ok"), "{printed}");
    let counted = format!(
        "lastbyte_upstream_response_seconds_count{{upstream=\"http://127.0.0.1:{}\"}} 1",
        ports[3]
    );
    assert!(printed.contains(&counted), "{printed}");
    // The second instance serves, over each version.
    for version in ["1.1", "2", "3"] {
        let get = format!("lastbyte get -s -S --http {version} https://www.example.com/");
        let output = machine.run(&here(&get));
        assert_eq!(output.stdout, b"ok", "{}", stderr(&output));
    }
    machine.servers[1].signal("-TERM");
    for server in machine.servers.drain(..) {
        let (code, printed) = server.wait();
        assert_eq!(code, Some(0), "{printed}");
    }
    let lines = serving::lines(&folder.join("log/access.ndjson"));
    assert_eq!(lines.len(), 4, "{lines:?}");
    links_lead_somewhere(FRONT);
}

/// Forty connections of the experiment, and one after the reload that ended it.
fn check_lines(lines: &[serde_json::Value]) {
    assert_eq!(lines.len(), 41);
    let (last, lines) = lines.split_last().expect("lines");
    assert!(last["experiment"].is_null(), "{last}");
    assert_eq!(last["arm"], "rapid-start");
    for line in lines {
        assert_eq!(line["experiment"], "four-arms");
        assert_eq!(line["complete"], true, "{line}");
        let arm = line["arm"].as_str().expect("an arm");
        assert!(
            ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"].contains(&arm),
            "{arm}"
        );
    }
}

fn links_lead_somewhere(page: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for part in page.split("](").skip(1) {
        let (link, _) = part.split_once(')').expect("its end");
        if !link.starts_with("http") {
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            assert!(docs.join(file).exists(), "{link}");
        }
    }
}
