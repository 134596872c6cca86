//! The configuration of `lastbyte serve` in the simulator.

use std::{fs, path::Path, process::Command};

use super::{check_failure, command_line, folder, json, sim, stderr};

/// A configuration file with these lines. Returns its path.
fn file(folder: &Path, name: &str, lines: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, lines).expect("room");
    path.to_str().expect("UTF-8").to_owned()
}

/// The time to the last byte over 200 Mb/s and 200 ms, in ms.
fn ttlb(arguments: &[&str]) -> f64 {
    let path = command_line("--rate 200mbit --up-rate 200mbit --rtt 200ms");
    let rows = json(&[&path, arguments].concat());
    rows[0]["ttlb_ms"].as_f64().expect("it is complete")
}

/// Keys that have no meaning in virtual time are named once; others that `serve` does not know are its errors.
#[test]
fn keys_of_a_served_configuration_are_simulated_named_or_refused() {
    let folder = folder("served-keys");
    let config = file(
        &folder,
        "serve.toml",
        "listen = '[::]:443'\ncert = 'a.pem'\nkey = 'a.key'\nworkers = 2\nmtu = 1400\n\
         log = 'a.ndjson'\nroute = ['/up=sink', 'api.example=http://127.0.0.1:8080']\n",
    );
    let output = sim(&["--serve-config", &config, "--size", "10kB,20kB"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        stderr(&output),
        format!("`{config}`: not simulated: listen, cert, key, workers, log, route\n")
    );
    let all = file(&folder, "all.toml", "mtu = 1400\nroute = '/up=sink'\n");
    let output = sim(&["--serve-config", &all, "--size", "10kB"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    for wrong in [
        "upload-windw = '1MiB'\n",
        "mtu = 100\n",
        "congestion = 'cubik'\n",
        "initial-mtu = 1400\nmtu = 1300\n",
        "upload-window = true\n",
    ] {
        let config = file(
            &folder,
            "wrong.toml",
            &format!("self-signed = true\n{wrong}"),
        );
        let output = sim(&["--serve-config", &config]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let served = Command::new(env!("CARGO_BIN_EXE_lastbyte"))
            .args(["serve", "--check", "--config", &config])
            .output()
            .expect("the binary runs");
        let (ours, theirs) = (stderr(&output), stderr(&served));
        let end = theirs.trim_start_matches("error: ").lines().next();
        assert!(
            ours.contains(end.expect("a line")),
            "{wrong}: {ours} in place of {theirs}"
        );
    }
    let config = file(&folder, "tcp.toml", "http = '1.1,2'\n");
    let output = sim(&["--serve-config", &config]);
    check_failure(&output, 2, "HTTP/3 is simulated");
}

/// The initial window of `serve` has 10 packets: 100 kB take three round trips after the handshake, not two.
#[test]
fn an_empty_configuration_has_the_defaults_of_serve() {
    let folder = folder("served-defaults");
    let config = file(&folder, "serve.toml", "");
    let rows = json(&["--serve-config", &config, "--size", "100kB"]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["arm"], "rapid-no-jump:initial-window=10p");
    let default = ttlb(&["--serve-config", &config, "--size", "100kB"]);
    let thirty = ttlb(&[
        "--serve-config",
        &config,
        "--size",
        "100kB",
        "--arm",
        "cubic",
    ]);
    assert!((800.0..850.0).contains(&default), "{default}");
    assert!((600.0..700.0).contains(&thirty), "{thirty}");
}

/// An experiment gives the arms, by its names.
#[test]
fn an_experiment_of_a_served_configuration_gives_the_arms() {
    let folder = folder("served-experiment");
    let config = file(&folder, "serve.toml", "experiment = 'four-arms'\n");
    let rows = json(&["--serve-config", &config, "--size", "100kB"]);
    let arms: Vec<&str> = rows.iter().filter_map(|row| row["arm"].as_str()).collect();
    assert_eq!(
        arms,
        ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"]
    );
}

/// Windows, Retry, 0-RTT, datagram sizes and stalled clients are those of the file.
#[test]
fn limits_of_a_served_configuration_are_simulated() {
    let folder = folder("served-limits");
    let base = file(&folder, "base.toml", "");
    let with = |lines: &str, arguments: &[&str]| {
        let config = file(&folder, "with.toml", lines);
        let of = |config: &str| ttlb(&[&["--serve-config", config], arguments].concat());
        (of(&base), of(&config))
    };
    // At most 1 MiB in each round trip: 20 of them.
    let upload = ["--size", "20MB", "--upload", "--arm", "cubic"];
    let (base_ms, slower) = with("upload-window = '1MiB'\n", &upload);
    assert!(base_ms < 3000.0, "{base_ms}");
    assert!(slower > 4000.0, "{slower}");
    // A sixteenth of the memory is for one connection.
    let (_, slower) = with("buffer-memory = '1MiB'\n", &upload);
    assert!(slower > 4000.0, "{slower}");
    let (full, validated) = with("retry = 'always'\n", &["--size", "1kB"]);
    assert!((validated - full - 200.0).abs() < 1.0, "{full} {validated}");
    let early = ["--size", "1kB", "--handshake", "0rtt"];
    let (early, refused) = with("no-0rtt = true\n", &early);
    assert!((refused - early - 200.0).abs() < 1.0, "{early} {refused}");
    let packets = |lines: &str| {
        let config = file(&folder, "with.toml", lines);
        let rows = json(&["--serve-config", &config, "--size", "1MB"]);
        rows[0]["packets_sent"].as_u64().expect("a number")
    };
    let (probed, small) = (packets(""), packets("mtu = 1200\n"));
    assert!((690..780).contains(&probed), "{probed}");
    assert!((840..1000).contains(&small), "{small}");
    // 8 kb/s are 30 kB in 30 s.
    let is_complete = |lines: &str| {
        let config = file(&folder, "with.toml", lines);
        let path = ["--rate", "8kbit", "--rtt", "200ms", "--size", "60kB"];
        let output = sim(&[&path[..], &["--serve-config", &config]].concat());
        output.status.success()
    };
    assert!(is_complete(""), "3000 bytes in 30 s are enough");
    assert!(!is_complete("stall-bytes = '100kB'\n"), "it is cancelled");
}
