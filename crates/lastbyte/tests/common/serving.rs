//! A server as people run it: the binary, in a folder of its own, until it is asked to end.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    mem,
    net::{TcpListener, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    process::{self, Child, ChildStderr, Command, Output, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

#[path = "run.rs"]
#[expect(dead_code, reason = "shared with tests that need more of it")]
mod run;

pub(crate) use run::*;

/// How long anything may take that is waited for. No test waits for it to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A port that is free over UDP and TCP, for a server that needs to know it before it starts. The kernel gives it to no other
/// socket in between: it is below those from which the kernel chooses (`ip_local_port_range`, 32768 to 60999 by default).
pub(crate) fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + u16::try_from(process::id() % 20_000).expect("less");
    loop {
        let port = first + TAKEN.fetch_add(1, Ordering::Relaxed);
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
}

/// A certificate for `localhost` and its key, as `NAME.pem` and `NAME.key`.
pub(crate) fn certificate(folder: &Path, name: &str) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    fs::write(folder.join(format!("{name}.pem")), cert.pem()).expect("room");
    fs::write(
        folder.join(format!("{name}.key")),
        signing_key.serialize_pem(),
    )
    .expect("room");
}

/// A process of ours, and what it says line by line on stderr.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: BufReader<ChildStderr>,
    pub(crate) printed: String,
}

impl Running {
    /// What it writes to stdout is of no interest.
    pub(crate) fn quiet(command: &mut Command) -> Self {
        Self::start(command.stdout(Stdio::null()))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let lines = BufReader::new(child.stderr.take().expect("its stderr"));
        let printed = String::new();
        Self {
            child,
            lines,
            printed,
        }
    }

    /// Reads what it says up to a line that begins so.
    pub(crate) fn until(&mut self, begin: &str) -> String {
        loop {
            let mut line = String::new();
            let count = self.lines.read_line(&mut line).expect("text");
            assert!(count > 0, "no `{begin}` in: {}", self.printed);
            self.printed.push_str(&line);
            if line.starts_with(begin) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits until it ends by itself. Its exit code, none if a signal ended it, and all it printed.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        self.lines.read_to_string(&mut self.printed).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code(), mem::take(&mut self.printed))
    }
}

/// No process outlives its test.
impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that runs.
pub(crate) struct Serving {
    pub(crate) process: Running,
    pub(crate) port: u16,
    /// Port of the metrics endpoint; 0 if there is none.
    pub(crate) metrics: u16,
}

fn port_of(line: &str, word: usize) -> u16 {
    let address = line.split(' ').nth(word).expect("an address");
    let port = address.trim().rsplit(':').next().expect("a port");
    port.parse().expect("a number")
}

impl Serving {
    /// On a free port, with metrics.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_as(folder, &[], "127.0.0.1:0", arguments)
    }

    /// The same, run by another program, which gets the command line behind its own arguments.
    pub(crate) fn start_as(folder: &Path, by: &[&str], listen: &str, arguments: &[&str]) -> Self {
        let binary = env!("CARGO_BIN_EXE_lastbyte");
        let mut words = by.to_vec();
        words.extend([binary, "serve", "--listen", listen, "--workers", "1"]);
        words.extend(["--metrics", "127.0.0.1:0"]);
        words.extend(arguments);
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .current_dir(folder)
            .env_remove("SSLKEYLOGFILE")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Self::spawn(&mut command)
    }

    /// By any command line.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut process = Running::start(command);
        let port = port_of(&process.until("listening on "), 2);
        let mut lines = process.printed.lines();
        let metrics = lines.find(|line| line.starts_with("serving metrics on "));
        Self {
            metrics: metrics.map_or(0, |line| port_of(line, 3)),
            process,
            port,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port)
    }

    /// `lastbyte get -k`.
    pub(crate) fn get(&self, folder: &Path, path: &str, arguments: &[&str]) -> Output {
        let url = self.url(path);
        let mut all = vec!["get", "-k", &url];
        all.extend(arguments);
        lastbyte(folder, &all)
    }

    /// The same, in the background. With `-v` among the arguments, [`Running::until`] waits for its progress.
    pub(crate) fn begin(&self, folder: &Path, path: &str, arguments: &[&str]) -> Running {
        let url = self.url(path);
        let mut all = vec!["get", "-k", &url];
        all.extend(arguments);
        Running::quiet(&mut command(folder, &all))
    }

    /// A response over plain HTTP: status and body.
    pub(crate) fn get_plain(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let status = text.split(' ').nth(1).expect("a status");
        let (_, body) = text.split_once("\r\n\r\n").expect("a body");
        (status.parse().expect("a number"), body.to_owned())
    }

    /// The value of a counter, whose name has its labels with it.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.get_plain("/metrics");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .unwrap_or_else(|| panic!("no {name} in {text}"));
        value.parse().expect("a number")
    }

    /// Asks for a metric until it is as it should be.
    pub(crate) fn wait_for(&self, name: &str, mut fits: impl FnMut(u64) -> bool) -> u64 {
        let began = Instant::now();
        loop {
            let value = self.metric(name);
            if fits(value) {
                return value;
            }
            assert!(began.elapsed() < PATIENCE, "{name} stays {value}");
        }
    }

    /// Its resident memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.child.id());
        let status = fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.expect("VmRSS").parse::<u64>().expect("a number") << 10
    }

    /// The files and sockets that it has open.
    pub(crate) fn descriptors(&self) -> Vec<PathBuf> {
        let path = format!("/proc/{}/fd", self.process.child.id());
        let files = fs::read_dir(path).expect("its descriptors");
        files
            .map(|file| file.expect("a descriptor").path())
            // It may be closed by now.
            .filter_map(|link| fs::read_link(link).ok())
            .collect()
    }

    pub(crate) fn until(&mut self, begin: &str) -> String {
        self.process.until(begin)
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        self.process.child.kill().expect("it was there");
        self.process.child.wait().expect("it ends");
    }

    /// Ends it by two signals at once, as `timeout` does, which signals the process and its group. They differ here, since
    /// equal ones may become one. Its exit code, and all it printed.
    pub(crate) fn end(self) -> (i32, String) {
        let status = Command::new("sh")
            .args(["-c", "kill -TERM $0; kill -INT $0"])
            .arg(self.process.child.id().to_string())
            .status();
        assert!(status.expect("a shell").success());
        let (code, printed) = self.process.wait();
        (code.expect("an exit code"), printed)
    }
}

/// The lines of a log, each of which has to be JSON.
pub(crate) fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).expect("a log");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(parse).collect()
}
