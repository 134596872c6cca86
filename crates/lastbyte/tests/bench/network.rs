//! `--network` and `--population`: connections over model paths, to a real server.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use super::{Place, bench, count, json, refused, stderr};
use crate::serving::{Serving, certificate, folder};

/// 8 Mb/s and a round trip of 60 ms.
const SLOW: &str = "rtt = \"60ms\"\n[down]\nrate = \"8mbit\"\nqueue = \"unlimited\"\n";

fn micros(json: &Value, pointer: &str) -> f64 {
    let value = json.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no {pointer} in {json:#}"))
}

/// No handshake is faster than a round trip, and no response faster than a round trip and its bytes at the rate of the path.
/// Each connection has the rate for itself: four take no longer than the path and the congestion window require of one, but
/// they could not be as fast over a shared path.
#[test]
fn a_response_takes_the_time_of_its_path() {
    let place = Place::new("bench-network");
    fs::write(place.folder.join("slow.toml"), SLOW).expect("a file");
    let arguments = ["-n", "4", "-c", "4", "-t", "2", "--network", "slow.toml"];
    let json = place.json(&arguments, "/200kB");
    assert_eq!(count(&json, "/requests/succeeded"), 4, "{json:#}");
    assert_eq!(json["settings"]["network"], "slow");
    assert!(micros(&json, "/connect_time/min_us") >= 60_000.0);
    // 200 kB at 8 Mb/s take 200 ms.
    let request = micros(&json, "/request_time/min_us");
    assert!(request >= 260_000.0, "{request}");
    for direction in ["up", "down"] {
        let of = |key: &str| count(&json, &format!("/paths/{direction}/{key}"));
        assert!(of("delivered") > 0, "{direction}: {json:#}");
        assert_eq!((of("dropped"), of("overflowed")), (0, 0), "{direction}");
    }
    assert!(count(&json, "/paths/down/delivered") >= 4 * 200_000 / 1500);
    assert!(micros(&json, "/paths/late_p99_us") >= micros(&json, "/paths/late_p50_us"));
}

/// Several networks are taken in turn: half of the handshakes are as slow as the second.
#[test]
fn connections_take_several_networks_in_turn() {
    let place = Place::new("bench-networks");
    for (name, rtt) in [("a", "20ms"), ("b", "150ms")] {
        let text = format!("rtt = \"{rtt}\"\n");
        fs::write(place.folder.join(format!("{name}.toml")), text).expect("a file");
    }
    let networks = ["--network", "a.toml", "--network", "b.toml"];
    let json = place.json(&[&["-n", "4", "-c", "4"], &networks[..]].concat(), "/1kB");
    assert_eq!(json["settings"]["network"], "a, b");
    assert!(micros(&json, "/connect_time/min_us") >= 20_000.0);
    assert!(micros(&json, "/connect_time/max_us") >= 150_000.0);
    assert!(micros(&json, "/connect_time/mean_us") >= f64::midpoint(20_000.0, 150_000.0));
}

/// Losses of the path are those of its file: all packets, so no connection is established, and the run ends.
#[test]
fn every_connection_fails_over_a_path_that_loses_everything() {
    let place = Place::new("bench-network-loss");
    let text = "rtt = \"10ms\"\n[down]\nloss = \"100%\"\n";
    fs::write(place.folder.join("none.toml"), text).expect("a file");
    let arguments = [
        "-n",
        "2",
        "--network",
        "none.toml",
        "--connect-timeout",
        "300ms",
        "--json",
    ];
    let output = place.bench(&arguments, "/1kB");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let json = json(&output);
    assert_eq!(count(&json, "/requests/timeout"), 2);
    let down = |key: &str| count(&json, &format!("/paths/down/{key}"));
    assert!(down("dropped") > 0 && down("delivered") == 0, "{json:#}");
}

/// The path of a client goes on when its connection is established again: the first packet of the path is lost once, and not
/// once per connection.
#[test]
fn the_next_connection_of_a_client_has_the_same_path() {
    let place = Place::new("bench-network-again");
    let text = "rtt = \"10ms\"\n[up]\nlose = [0]\n";
    fs::write(place.folder.join("first.toml"), text).expect("a file");
    let network = ["-n", "12", "-c", "2", "--network", "first.toml"];
    for way in [&["--mix", "new=1"][..], &["--mix", "resumed=1"]] {
        let json = place.json(&[&network, way].concat(), "/1kB");
        assert_eq!(count(&json, "/requests/succeeded"), 12, "{json:#}");
        assert_eq!(count(&json, "/connections/established"), 12, "{json:#}");
        assert_eq!(count(&json, "/paths/up/dropped"), 2, "{json:#}");
    }
}

/// The four-arm experiment over real sockets: each connection has a path of the population, and the server's log has a line
/// with an arm for each.
#[test]
fn a_population_loads_an_experiment() {
    let folder = folder("bench-population");
    certificate(&folder, "a");
    let flags = [
        "--cert",
        "a.pem",
        "--key",
        "a.key",
        "--experiment",
        "four-arms",
        "--log",
        "conns.ndjson",
    ];
    let server = Serving::start(&folder, &flags);
    let population = ["--json", "--population", "default", "-n", "40", "-c", "40"];
    let run = |seed: &str| {
        let all = [&population[..], &["--seed", seed]].concat();
        let output = bench(&folder, &all, &server.url("/1kB"));
        assert!(output.status.success(), "{}", stderr(&output));
        json(&output)
    };
    let result = run("1");
    assert_eq!(count(&result, "/requests/succeeded"), 40, "{result:#}");
    assert_eq!(result["settings"]["network"], "population default");
    // Paths differ.
    let spread = micros(&result, "/connect_time/max_us") / micros(&result, "/connect_time/min_us");
    assert!(spread > 2.0, "{spread}");
    assert_eq!(server.end().0, 0);
    let log = fs::read_to_string(folder.join("conns.ndjson")).expect("a log");
    let mut arms: BTreeMap<String, u64> = BTreeMap::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let arm = line["arm"].as_str().expect("an arm").to_owned();
        *arms.entry(arm).or_default() += 1;
    }
    assert_eq!(arms.values().sum::<u64>(), 40, "{arms:?}");
    assert!(arms.len() >= 2, "{arms:?}");
}

#[test]
fn networks_that_cannot_be_used_are_usage_errors() {
    let folder = folder("bench-network-usage");
    certificate(&folder, "a");
    fs::write(folder.join("bad.toml"), "speed = \"1mbit\"\n").expect("a file");
    let url = "https://localhost:1/";
    for http in ["1.1", "2"] {
        let (code, error) = refused(&folder, &["--http", http, "--network", "lte"], url);
        assert_eq!(code, 2, "{error}");
        assert!(
            error.contains("expected HTTP/3") && error.contains("lastbyte emulate --tun"),
            "{error}"
        );
    }
    let cases: &[(&[&str], &str)] = &[
        (&["--network", "nowhere"], "unknown network `nowhere`"),
        (&["--network", "absent.toml"], "cannot read `absent.toml`"),
        (&["--network", "bad.toml"], "`bad.toml`"),
        (
            &["--population", "absent.toml"],
            "cannot read `absent.toml`",
        ),
        (&["--population", "bad.toml"], "`bad.toml`"),
        (
            &["--population", "default", "--network", "lte"],
            "cannot be used with",
        ),
    ];
    for (arguments, expected) in cases {
        let (code, error) = refused(&folder, arguments, url);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    // As many sockets as connections: the limit of the process is checked before the run.
    let binary = env!("CARGO_BIN_EXE_lastbyte");
    let script = format!("ulimit -n 200; exec {binary} bench -k -n 300 -c 300 --network lte {url}");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(Path::new(&folder))
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let expected = "300 connections over model paths need 364 file descriptors (the limit is 200";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}
