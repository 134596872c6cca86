//! `lastbyte emulate` as people start it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

fn lastbyte() -> Command {
    Command::new(env!("CARGO_BIN_EXE_lastbyte"))
}

#[test]
fn relays_until_it_is_told_to_stop_and_then_says_what_became_of_all() {
    use std::net::Ipv4Addr;

    use lastbyte_udp::{Batch, Ecn, Options, Poller, Socket, Transmit};

    let any = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Socket::bind(any, &Options::default()).expect("a socket");
    let client = Socket::bind(any, &Options::default()).expect("a socket");
    let mut relay = lastbyte()
        .args([
            "emulate",
            "--network",
            "vdsl",
            "--json",
            "--listen",
            "127.0.0.1:0",
            "--to",
        ])
        .arg(server.local_address().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut said = String::new();
    let mut stderr = BufReader::new(relay.stderr.take().expect("piped"));
    stderr.read_line(&mut said).expect("a line");
    let address = said.split(' ').next().expect("an address");
    let transmit = Transmit {
        remote: address.parse().expect("an address"),
        local: None,
        ecn: Ecn::NotEct,
        bytes: b"through",
        segment_len: 7,
    };
    client.send(&transmit).expect("sent");
    let mut poller = Poller::new().expect("a poller");
    poller.add(&server, 0).expect("added");
    let mut batch = Batch::new();
    while server.receive(&mut batch).expect("received") == 0 {
        poller.wait(None, &mut Vec::new()).expect("waited");
    }
    let received = batch.received().next().expect("a datagram");
    assert_eq!(*received.bytes, *b"through");
    let told = Command::new("kill")
        .args(["-TERM", &relay.id().to_string()])
        .status()
        .expect("kill");
    assert!(told.success());
    let mut out = String::new();
    let mut stdout = relay.stdout.take().expect("piped");
    stdout.read_to_string(&mut out).expect("read");
    assert!(relay.wait().expect("ended").success());
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["clients"], 1);
    assert_eq!(report["up"]["delivered"], 1);
    assert_eq!(report["down"]["packets"], 0);
    assert!(report["late-us"]["max"].as_f64().expect("a number") > 0.0);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    for (arguments, words) in [
        (
            vec!["--network", "nowhere"],
            "there is no network `nowhere`",
        ),
        (
            vec!["--network", "dsl", "--network", "lte"],
            "one path at a time",
        ),
        (vec!["--rate", "5mbit"], "needs an --rtt too"),
        (vec!["--to", "127.0.0.1"], "`--to 127.0.0.1`"),
        (vec!["--network", "dsl", "--loss", "2"], "loss"),
    ] {
        let output = lastbyte()
            .arg("emulate")
            .args(&arguments)
            .output()
            .expect("started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}
