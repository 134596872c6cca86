use std::sync::Arc;

use lastbyte_quic::connection::Config;

use super::*;
use crate::{Arm, Arms, Identity, Site, Versions};

fn settings(versions: Versions, workers: usize, inherited: Inherited) -> Settings {
    let arm = Arm {
        name: "x".into(),
        share: 1.0,
        config: Arc::new(Config::new("rapid-start".parse().expect("a spec"))),
    };
    let identity = Identity::self_signed(&["localhost".into()], 20_000).expect("a certificate");
    let arms = Arms::new(vec![arm]).expect("arms");
    let address = "127.0.0.1:1".parse().expect("an address");
    let mut settings = Settings::new(address, identity, arms, Arc::new(Site::generated()));
    settings.versions = versions;
    settings.workers = NonZeroUsize::new(workers);
    settings.inherited = inherited;
    settings
}

fn udp() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a socket")
}

fn tcp() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a listener")
}

fn error<T>(result: Result<T, StartError>) -> String {
    match result {
        Ok(_) => panic!("it fits"),
        Err(error) => error.to_string(),
    }
}

const HTTP3: Versions = Versions {
    http1: false,
    http2: false,
    http3: true,
};

#[test]
fn names_assign_sockets_to_listeners() {
    let mut inherited = Inherited::default();
    for name in ["lastbyte.socket", "http", "metrics"] {
        inherited.add_tcp(name, tcp()).expect("there is room");
        let error = error(inherited.add_tcp(name, tcp()));
        assert!(error.contains("FileDescriptorName=metrics"), "{error}");
    }
    let told = error(inherited.add_udp("http", udp()));
    assert!(told.contains("`ListenStream=`"), "{told}");
    inherited.add_udp("lastbyte.socket", udp()).expect("room");
    assert_eq!(inherited.udp_count(), 1);
}

#[test]
fn a_connected_socket_is_rejected_as_a_listener() {
    let listener = tcp();
    let address = listener.local_addr().expect("an address");
    let connected = std::net::TcpStream::connect(address).expect("a connection");
    let descriptor = OwnedFd::from(connected);
    let told = error(Inherited::default().add_tcp("x", descriptor.into()));
    assert!(told.contains("`Accept=yes`"), "{told}");
}

#[test]
fn mismatched_sockets_are_errors_that_name_the_unit_setting() {
    let two = || {
        let mut inherited = Inherited::default();
        inherited.add_udp("", udp()).expect("room");
        inherited
    };
    let with_tcp = |mut inherited: Inherited| {
        inherited.add_tcp("", tcp()).expect("room");
        inherited
    };
    let mut split = two();
    split.add_udp("", udp()).expect("room");
    for (versions, workers, inherited, expected) in [
        (
            Versions::ALL,
            1,
            two(),
            "no TCP socket was passed (add `ListenStream=`",
        ),
        (
            Versions::ALL,
            1,
            with_tcp(Inherited::default()),
            "no UDP socket was passed (add `ListenDatagram=`",
        ),
        (HTTP3, 1, with_tcp(two()), "remove `ListenStream=`"),
        (Versions::ALL, 1, with_tcp(two()), "different ports"),
        (HTTP3, 2, split, "different ports"),
        (HTTP3, 2, two(), "one UDP socket for 2 workers"),
        (HTTP3, 2, two(), "for each worker, with `ReusePort=yes`"),
    ] {
        let mut settings = settings(versions, workers, inherited);
        let told = error(Inherited::take_main(&mut settings).map(|_| ()));
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn without_passed_sockets_the_server_opens_its_own() {
    let mut settings = settings(Versions::ALL, 1, Inherited::default());
    assert!(
        Inherited::take_main(&mut settings)
            .expect("nothing wrong")
            .is_none()
    );
}
