//! All protocols, by a network device: how many round trips each of them takes until the request can go, and until the first
//! byte is there.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use lastbyte_testkit::alone;
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, SupportedProtocolVersion,
    crypto::aws_lc_rs, pki_types::CertificateDer,
};
use serde_json::Value;

use super::{RTT, Running, lastbyte, served};

/// Where clients connect to.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// At least this number of round trips, and less than one more.
fn trips(millis: f64) -> u64 {
    (millis / RTT).floor() as u64
}

/// Whether there can be a device here; if not, says why.
fn may_have_devices() -> bool {
    let mut path = lastbyte()
        .args(["emulate", "--tun"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut printed = [0; 7];
    let mut stderr = path.stderr.take().expect("piped");
    stderr.read_exact(&mut printed).expect("a message");
    let works = printed == *b"198.18.";
    if works {
        path.kill().expect("killed");
    } else {
        let mut why = String::new();
        stderr.read_to_string(&mut why).expect("text");
        assert!(
            why.contains("CAP_NET_ADMIN") || why.contains("/dev/net/tun"),
            "{why}"
        );
        lastbyte_testkit::skip(why.lines().next().unwrap_or_default());
    }
    path.wait().expect("ended");
    works
}

/// What a command prints of the object.
fn json_of(port: u16, words: &[&str]) -> Value {
    let output = lastbyte()
        .args(words)
        .arg(format!("https://{SERVER}:{port}/1k"))
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What became of one request: the kind of handshake, the round trips until the request could go, and to the first byte.
type Found = (String, u64, u64);

/// Two requests one after the other by `lastbyte get`, each on a connection of its own.
fn get(port: u16, version: &str, more: &[&str]) -> Vec<Found> {
    let words = [
        "get",
        "-k",
        "--timing=json",
        "--repeat",
        "2",
        "-o",
        "/dev/null",
        "--http",
        version,
    ];
    let json = json_of(port, &[&words[..], more].concat());
    let fetches = json["fetches"].as_array().expect("fetches");
    fetches
        .iter()
        .map(|fetch| {
            let millis = |key: &str| fetch[key].as_f64().expect("a number");
            assert_eq!(fetch["http_version"], version);
            let asked = if fetch["early"] == true {
                0
            } else {
                trips(millis("connect_ms"))
            };
            let kind = fetch["handshake"].as_str().expect("text").to_owned();
            (kind, asked, trips(millis("total_ms") - millis("body_ms")))
        })
        .collect()
}

/// The same over HTTP/1.1 by the TLS library alone, which can be kept to one version of TLS.
fn by_hand(
    port: u16,
    version: &'static SupportedProtocolVersion,
    root: &CertificateDer<'_>,
) -> Vec<Found> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone().into_owned()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let fetch = |_| {
        let start = Instant::now();
        let since = || trips(start.elapsed().as_secs_f64() * 1e3);
        let mut socket = TcpStream::connect((SERVER, port)).expect("connected");
        socket.set_nodelay(true).expect("set");
        let mut tls = ClientConnection::new(
            Arc::clone(&config),
            SERVER.to_string().try_into().expect("a name"),
        )
        .expect("a connection");
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).expect("shaken hands");
        }
        let asked = since();
        let kind = match tls.handshake_kind() {
            Some(HandshakeKind::Resumed) => "resumed",
            _ => "full",
        };
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let request = format!("GET /1k HTTP/1.1\r\nhost: {SERVER}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("written");
        let mut first = [0; 1];
        stream.read_exact(&mut first).expect("an answer");
        let answered = since();
        let mut rest = Vec::new();
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        }
        assert!(rest.len() > 1024);
        (kind.to_owned(), asked, answered)
    };
    (0..2).map(fetch).collect()
}

/// What curl says of one request, or two on connections of their own.
fn curl(port: u16, flags: &[&str]) -> Option<Vec<Found>> {
    let url = format!("https://{SERVER}:{port}/1k");
    let output = Command::new("curl")
        .args([
            "-sk",
            "-w",
            "%{stderr}%{time_appconnect} %{time_starttransfer}\n",
        ])
        .args(flags)
        .args(["-o", "/dev/null", &url])
        .args(if flags.contains(&"--http1.1") {
            vec!["-H", "connection: close", "-o", "/dev/null", &url]
        } else {
            vec![]
        })
        .output()
        .ok()?;
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{errors}");
    let found = errors.lines().map(|line| {
        let (asked, answered) = line.split_once(' ').expect("two times");
        let of = |text: &str| trips(text.parse::<f64>().expect("a number") * 1e3);
        ("?".to_owned(), of(asked), of(answered))
    });
    Some(found.collect())
}

#[test]
fn each_protocol_takes_its_number_of_round_trips() {
    alone("tun::each_protocol_takes_its_number_of_round_trips", || {
        if !may_have_devices() {
            return;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulate-tun");
        fs::create_dir_all(&folder).expect("a folder");
        let made = rcgen::generate_simple_self_signed([SERVER.to_string()]).expect("a certificate");
        let [chain, key] = ["chain.pem", "key.pem"].map(|name| folder.join(name));
        fs::write(&chain, made.cert.pem()).expect("written");
        fs::write(&key, made.signing_key.serialize_pem()).expect("written");
        let files = [&chain, &key].map(|path| path.to_str().expect("text"));
        let server = Running::start(
            &[
                "serve",
                "--listen",
                "0.0.0.0:0",
                "--cert",
                files[0],
                "--key",
                files[1],
            ],
            served,
        );
        let path = Running::start(
            &["emulate", "--tun", "--rate", "1gbit", "--rtt", "400ms"],
            |line| line.split(' ').next(),
        );
        assert_eq!(path.address, SERVER.to_string());
        let port: u16 = server
            .address
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok())
            .expect("a port");
        ours(port, made.cert.der());
        table(port);
        curls(port);
    });
}

/// `lastbyte handshakes`: until the handshake is complete, and until the first byte.
fn table(port: u16) {
    let json = json_of(port, &["handshakes", "-k", "--repeat", "1", "--json"]);
    let rows = json["rows"].as_array().expect("rows").iter();
    let found = rows.map(|row| {
        let of = |key: &str| row[key].as_f64().map(trips);
        of("handshake_ms").zip(of("first_byte_ms"))
    });
    let found: Vec<_> = found.collect();
    let resumed = Some((2, 3));
    let tcp12 = [Some((3, 4)), resumed, None];
    let tcp13 = [resumed, resumed, None];
    let quic = [Some((1, 2)), Some((1, 2)), Some((1, 1))];
    assert_eq!(found, [tcp12, tcp13, quic].concat(), "{json:#}");
}

/// Our client and the TLS library. All at once: they share the path, and what they send is no burden to it.
fn ours(port: u16, root: &CertificateDer<'_>) {
    let row = |full: (u64, u64), then: (&str, u64, u64)| {
        vec![
            ("full".to_owned(), full.0, full.1),
            (then.0.to_owned(), then.1, then.2),
        ]
    };
    thread::scope(|all| {
        let (tls12, tls13) = (&rustls::version::TLS12, &rustls::version::TLS13);
        let rows = [
            (
                "TLS 1.2",
                all.spawn(move || by_hand(port, tls12, root)),
                row((3, 4), ("resumed", 2, 3)),
            ),
            (
                "TLS 1.3",
                all.spawn(move || by_hand(port, tls13, root)),
                row((2, 3), ("resumed", 2, 3)),
            ),
            (
                "HTTP/1.1",
                all.spawn(move || get(port, "1.1", &[])),
                row((2, 3), ("resumed", 2, 3)),
            ),
            (
                "HTTP/2",
                all.spawn(move || get(port, "2", &[])),
                row((2, 3), ("resumed", 2, 3)),
            ),
            (
                "HTTP/3",
                all.spawn(move || get(port, "3", &[])),
                row((1, 2), ("resumed", 1, 2)),
            ),
            (
                "HTTP/3, 0-RTT",
                all.spawn(move || get(port, "3", &["--0rtt"])),
                row((1, 2), ("0rtt", 0, 1)),
            ),
        ];
        for (name, found, expected) in rows {
            assert_eq!(found.join().expect("fetched"), expected, "{name}");
        }
    });
}

/// A third-party client, if it is installed.
fn curls(port: u16) {
    thread::scope(|all| {
        let rows = [
            (["--http1.1", "--tls-max", "1.2"], vec![(3, 4), (2, 3)]),
            (["--http1.1", "--tls-max", "1.3"], vec![(2, 3), (2, 3)]),
            (["--http2", "--tls-max", "1.2"], vec![(3, 4)]),
            (["--http2", "--tls-max", "1.3"], vec![(2, 3)]),
        ]
        .map(|(flags, expected)| (flags, all.spawn(move || curl(port, &flags)), expected));
        for (flags, found, expected) in rows {
            let Some(found) = found.join().expect("fetched") else {
                lastbyte_testkit::skip("no `curl`");
                continue;
            };
            let found: Vec<(u64, u64)> = found
                .iter()
                .map(|(_, asked, answered)| (*asked, *answered))
                .collect();
            assert_eq!(found, expected, "curl {flags:?}");
        }
    });
}

/// How far the model may be from the kernel: docs/sim.md.
const TCP_TOLERANCE: f64 = 0.12;

/// Time to last byte over HTTP/2 by this kernel's CUBIC, with both versions of TLS, compared with the model in the simulator. Without
/// loss, since one cell with loss needs a hundred transfers.
#[test]
fn the_tcp_model_agrees_with_this_kernel() {
    alone("tun::the_tcp_model_agrees_with_this_kernel", || {
        if !may_have_devices() {
            return;
        }
        let server = Running::start(&["serve", "--listen", "0.0.0.0:0", "--self-signed"], served);
        let path = [
            "emulate", "--tun", "--rate", "10mbit", "--rtt", "100ms", "--queue", "100ms",
        ];
        let _path = Running::start(&path, |line| line.split(' ').next());
        let status = Command::new("ip")
            .args(["route", "replace", "198.18.0.0/15", "dev", "lastbyte0"])
            .args(["src", "198.18.0.1", "congctl", "cubic"])
            .status();
        let forgets = fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
        if !status.is_ok_and(|status| status.success()) || forgets.is_err() {
            lastbyte_testkit::skip("cannot select CUBIC for the device");
            return;
        }
        let (_, port) = server.address.rsplit_once(':').expect("a port");
        let cells = [
            ("1.3", &[400_000, 1_000_000, 3_000_000][..]),
            // A round trip more: a sixth of the time, and a tenth.
            ("1.2", &[60_000, 400_000]),
        ];
        for (tls, sizes) in cells {
            for (size, model) in sizes.iter().zip(modelled(sizes, tls)) {
                // Other work on the machine only ever adds to the time.
                let fastest = (0..5)
                    .map(|_| ttlb(port, *size, tls))
                    .fold(f64::INFINITY, f64::min);
                let error = model / fastest - 1.0;
                assert!(
                    error.abs() < TCP_TOLERANCE,
                    "{size}, TLS {tls}: {model:.0} ms in the model, {fastest:.0} ms by the kernel"
                );
            }
        }
    });
}

/// Time to last byte of one object, with the handshake, in milliseconds.
fn ttlb(port: &str, size: u64, tls: &str) -> f64 {
    let output = lastbyte()
        .args(["get", "-k", "--timing=json", "--http", "2"])
        .args(["--tls-max", tls])
        .args([
            "-o",
            "/dev/null",
            &format!("https://{SERVER}:{port}/{size}"),
        ])
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    json["fetches"][0]["total_ms"].as_f64().expect("a number")
}

/// The same in the simulator, for each size: pages of one document.
fn modelled(sizes: &[u64], tls: &str) -> Vec<f64> {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tcp-model");
    fs::create_dir_all(&out).expect("a folder");
    let pages: Vec<String> = sizes
        .iter()
        .map(|size| {
            format!(
                r#"{{"v":1,"name":"{size}","hosts":[{{"name":"localhost"}}],"resources":[{{"host":0,"kind":"document","body":{size}}}]}}"#
            )
        })
        .collect();
    fs::write(out.join("corpus.ndjson"), pages.join("\n")).expect("room");
    let output = lastbyte()
        .args(["compare", "--network", "10mbit:10mbit/100ms"])
        .args(["--corpus", "corpus.ndjson", "--http", "1.1,2"])
        .args(["--view", "first", "--tls", tls, "--force", "--out", "."])
        .current_dir(&out)
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let rows = fs::read_to_string(out.join("loads.ndjson")).expect("rows");
    let rows = rows
        .lines()
        .map(|row| -> Value { serde_json::from_str(row).expect("JSON") });
    let times: Vec<f64> = rows
        .filter(|row| row["http"] == "2")
        .map(|row| row["load_ms"].as_f64().expect("a number"))
        .collect();
    assert_eq!(times.len(), sizes.len());
    times
}

#[test]
fn the_device_is_removed_on_exit_and_its_counters_are_printed() {
    alone(
        "tun::the_device_is_removed_on_exit_and_its_counters_are_printed",
        || {
            if !may_have_devices() {
                return;
            }
            let devices = || fs::read_to_string("/proc/self/net/dev").expect("a table");
            let mut path = lastbyte()
                .args([
                    "emulate",
                    "--tun",
                    "10.254.0.0/15",
                    "--network",
                    "dsl",
                    "--apart",
                    "--json",
                ])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("started");
            let mut printed = [0; 10];
            path.stderr
                .as_mut()
                .expect("piped")
                .read_exact(&mut printed)
                .expect("it says where");
            assert_eq!(printed, *b"10.254.0.2");
            assert!(devices().contains("lastbyte"));
            // No process listens there, which is learned over the path.
            let start = Instant::now();
            let error = TcpStream::connect(("10.254.0.2", 9)).expect_err("no listener");
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            assert!(start.elapsed() > Duration::from_millis(10));
            let killed = Command::new("kill")
                .args(["-TERM", &path.id().to_string()])
                .status()
                .expect("kill");
            assert!(killed.success());
            let output = path.wait_with_output().expect("ended");
            assert!(output.status.success());
            assert!(!devices().contains("lastbyte"));
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(report["clients"], 1);
            assert_eq!(report["up"]["delivered"], 1);
            assert_eq!(report["down"]["delivered"], 1);
            assert_eq!(report["missed"], 0);
        },
    );
}

/// Every 300 ms, the server sees another port of the client: an upload over QUIC goes on, one over TCP breaks.
#[test]
fn an_upload_survives_a_device_that_changes_ports_over_quic_only() {
    let name = "tun::an_upload_survives_a_device_that_changes_ports_over_quic_only";
    alone(name, || {
        if !may_have_devices() {
            return;
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulate-tun-rebind");
        fs::create_dir_all(&folder).expect("a folder");
        let [log, body] = ["connections.ndjson", "body"].map(|name| folder.join(name));
        let _ = fs::remove_file(&log);
        fs::write(&body, vec![0; 5_000_000]).expect("room");
        let [log, body] = [log, body].map(|file| file.to_str().expect("text").to_owned());
        let flags = ["serve", "--listen", "0.0.0.0:0", "--self-signed"];
        let more = ["--route", "/upload=sink", "--log", &log];
        let server = Running::start(&[&flags[..], &more].concat(), served);
        let path = ["--rate", "20mbit", "--up-rate", "20mbit", "--rtt", "20ms"];
        let more = ["--queue", "100ms", "--rebind", "300ms", "--apart"];
        let words = [&["emulate", "--tun"], &path[..], &more].concat();
        let _path = Running::start(&words, |line| line.split(' ').next());
        let (_, port) = server.address.rsplit_once(':').expect("a port");
        let url = format!("https://{SERVER}:{port}/upload");
        let put = |http: &str| {
            let words = ["get", "-k", "-m", "60s", "--http", http, "-T", &body, &url];
            lastbyte().args(words).output().expect("started")
        };
        let output = put("3");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let output = put("1.1");
        assert!(!output.status.success(), "{output:?}");
        // The line is written at the latest when the server ends.
        server.end();
        let text = fs::read_to_string(&log).expect("a log");
        let moved = text.lines().find_map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["num-paths.migration-elicited"].as_u64()
        });
        let moved = moved.unwrap_or_else(|| panic!("no QUIC connection: {text}"));
        // 2 s and 300 ms each.
        assert!(moved >= 3, "{moved}");
    });
}
