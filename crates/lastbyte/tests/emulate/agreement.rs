//! Transfers over an emulated path, beside the simulator's prediction from the same configuration file.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::{Running, first_word, lastbyte, served};

/// The most transfers of a cell.
const RUNS: usize = 8;
const PATH: [&str; 6] = [
    "--rate",
    "200mbit",
    "--up-rate",
    "200mbit",
    "--rtt",
    "200ms",
];

/// The output of a command.
fn output(arguments: &[&str]) -> Vec<u8> {
    let output = lastbyte().args(arguments).output().expect("started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    output.stdout
}

/// The time of a transfer in ms, as `get` measures it.
fn fetch(arguments: &[&str]) -> f64 {
    let common = "get -k --http3-only -s -o /dev/null -w %{time_total}";
    let common: Vec<&str> = common.split(' ').collect();
    let output = output(&[&common, arguments].concat());
    let seconds: f64 = String::from_utf8_lossy(&output).parse().expect("a number");
    1000.0 * seconds
}

/// The same in the simulator. `get` permits fewer acknowledgments.
fn predict(arguments: &[&str]) -> f64 {
    let common = [&["sim", "--ack-frequency", "--json"], &PATH[..]].concat();
    let output = output(&[&common, arguments].concat());
    let rows: Value = serde_json::from_slice(&output).expect("JSON");
    rows[0]["ttlb_ms"].as_f64().expect("it is complete")
}

/// Other work on the machine can delay a transfer, but not hasten it: the fastest of some is within 5 %. `bench/transfers`
/// measures more sizes and round-trip times.
#[test]
fn transfers_take_the_time_that_the_simulator_predicts() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("agreement");
    fs::create_dir_all(&folder).expect("a folder");
    let config = folder.join("serve.toml");
    let lines = "self-signed = true\ngenerated = true\nroute = '/up=sink'\nlisten = '127.0.0.1:0'\n\
                 workers = 1\n";
    fs::write(&config, lines).expect("room");
    let body = folder.join("body");
    fs::write(&body, vec![0; 1_000_000]).expect("room");
    let [config, body] = [&config, &body].map(|path| path.to_str().expect("UTF-8"));
    let server = Running::start(&["serve", "--config", config], served);
    let emulate = ["emulate", "--listen", "127.0.0.1:0", "--to"];
    let path = [&emulate[..], &[&*server.address], &PATH[..]].concat();
    let path = Running::start(&path, first_word);
    let url = |place: &str| format!("https://{}/{place}", path.address);
    let down = |size: &'static str| (vec![url(size)], vec!["--size", size]);
    let upload = ["--size", "1MB", "--upload", "--arm", "cubic"];
    for (real, simulated) in [
        down("100kB"),
        down("1MB"),
        (
            vec!["-T".to_owned(), body.to_owned(), url("up")],
            upload.to_vec(),
        ),
    ] {
        let predicted = predict(&[&["--serve-config", config], &simulated[..]].concat());
        let real: Vec<&str> = real.iter().map(String::as_str).collect();
        let mut fastest = f64::MAX;
        for _ in 0..RUNS {
            fastest = fastest.min(fetch(&real));
            if fastest <= 1.05 * predicted {
                break;
            }
        }
        assert!(
            (0.95..=1.05).contains(&(fastest / predicted)),
            "{simulated:?}: {fastest} ms, predicted {predicted} ms"
        );
    }
    path.end();
    server.end();
}
