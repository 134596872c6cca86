//! The files of both ends of a connection.

use super::{super::pair, *};

/// A file of one end: its packets, sent (`true`) or received, with number and time by its own clock.
fn file(end: &str, group: &str, title: &str, packets: &[(bool, u64, f64)]) -> Reading {
    let mut text = format!(
        r#"{{"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"{title}","trace":{{"vantage_point":{{"type":"{end}"}},"common_fields":{{"ODCID":"{group}"}}}}}}"#
    );
    let mut packets = packets.to_vec();
    packets.sort_by(|a, b| a.2.total_cmp(&b.2));
    for (is_sent, number, time) in packets {
        let name = if is_sent {
            "packet_sent"
        } else {
            "packet_received"
        };
        let size = if is_sent == (end == "server") {
            1000
        } else {
            40
        };
        write!(
            text,
            "\n\u{1e}{{\"time\":{time},\"name\":\"transport:{name}\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}},\"raw\":{{\"length\":{size}}}}}}}"
        )
        .expect("a text");
    }
    ok(&text)
}

/// Ten packets of the server, each a millisecond later and queued a millisecond longer, and five of the client. The path takes 20 ms
/// each way; the client's clock is ahead by `ahead`.
fn ends(ahead: f64, title: &str) -> (Reading, Reading) {
    let down = (0..10).map(|number| (number, f64::from(number as u32)));
    let down: Vec<_> = down.map(|(number, ms)| (number, ms, 20.0 + ms)).collect();
    let up: Vec<_> = (0..5).map(|number| (number, 30.0, 20.0)).collect();
    let mut server = vec![(false, 999, 0.0)];
    let mut client = Vec::new();
    for (number, sent, delay) in down {
        server.push((true, number, sent));
        client.push((false, number, sent + delay + ahead));
    }
    for (number, sent, delay) in up {
        client.push((true, number, sent + ahead));
        server.push((false, number, sent + delay));
    }
    let server = file("server", "aabb", title, &server);
    (file("client", "aabb", title, &client), server)
}

fn values(points: &[Point]) -> Vec<(f64, f64)> {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    let rounded = points.iter().map(|one| (round(one.ms), round(one.value)));
    rounded.collect()
}

#[test]
fn one_way_delays_do_not_depend_on_the_clocks() {
    for ahead in [0.0, 1e6, -123.25] {
        let (client, server) = ends(ahead, "x");
        let arms = [client.arms, server.arms].concat();
        let ends = [client.ends, server.ends].into_iter().flatten();
        let ends: Vec<_> = ends.collect();
        // The server sends, so its arm comes first.
        assert_eq!(pair::pairs(&arms, &ends), [(1, 0)]);
        let mut arm = arms[1].clone();
        let smallest = pair::join(&mut arm, &ends[1], &arms[0], &ends[0]).expect("delays");
        assert!((smallest - 20.0).abs() < 1e-6, "{smallest}");
        let down = (0..10).map(f64::from).map(|ms| (ms, 20.0 + ms));
        assert_eq!(values(&arm.delay_down), down.collect::<Vec<_>>());
        assert_eq!(values(&arm.delay_up), [(30.0, 20.0); 5]);
        // What the client received, by the server's clock.
        assert_eq!(values(&arm.arrived)[0], (20.0, 1000.0));
        assert_eq!(arm.note.matches("client").count(), 1, "{}", arm.note);
    }
}

/// With one seed, simulations of two arms have the same ID.
#[test]
fn ends_of_two_simulations_are_not_joined() {
    for (title, is_joined) in [("a over b, flow 0", true), ("c over b, flow 0", false)] {
        let (client, _) = ends(0.0, "a over b, flow 0");
        let (_, server) = ends(0.0, title);
        let arms = [&client, &server].map(|file| file.arms[0].clone());
        let ends: Vec<_> = client.ends.into_iter().chain(server.ends).collect();
        let pairs = pair::pairs(&arms, &ends);
        assert_eq!(pairs.len(), usize::from(is_joined), "{title}");
        assert_eq!(pair::are_left(&ends, &pairs), !is_joined, "{title}");
    }
}

#[test]
fn files_that_do_not_belong_together_are_not_joined() {
    let (client, server) = ends(0.0, "x");
    let (of_other, _) = ends(0.0, "y");
    let join = |files: [&Reading; 2]| {
        let [one, other] = files;
        let mut arm = one.arms[0].clone();
        pair::join(&mut arm, &one.ends[0], &other.arms[0], &other.ends[0])
    };
    assert_eq!(join([&server, &client]), Some(20.0));
    // Two simulations with one seed have the same ID: the title decides.
    let arms = [&of_other, &client, &server].map(|file| file.arms[0].clone());
    let ends: Vec<_> = [of_other, client, server]
        .into_iter()
        .flat_map(|file| file.ends)
        .collect();
    assert_eq!(pair::pairs(&arms, &ends), [(2, 1)]);
    assert!(pair::are_left(&ends, &[(2, 1)]) && !pair::are_left(&ends[1..], &[(1, 0)]));
    // One end alone, and another connection.
    assert_eq!(pair::pairs(&arms[..2], &ends[..2]), []);
    let unrelated = file("server", "ccdd", "x", &[(true, 0, 0.0), (false, 0, 1.0)]);
    let (client, server) = (file("client", "aabb", "x", &[(true, 0, 0.0)]), unrelated);
    let arms = [&client, &server].map(|file| file.arms[0].clone());
    let ends: Vec<_> = client.ends.into_iter().chain(server.ends).collect();
    assert_eq!(pair::pairs(&arms, &ends), []);
    assert!(!pair::are_left(&ends, &[]));
    // Packets that arrive before they leave, whatever the clocks; and packets in one direction only.
    let client = file("client", "e", "x", &[(false, 0, 1.0), (true, 0, 5.0)]);
    let late = file("server", "e", "x", &[(true, 0, 50.0), (false, 0, 1.0)]);
    assert_eq!(join([&late, &client]), None);
    let one_way = file("server", "e", "x", &[(true, 0, 0.0), (false, 9, 1.0)]);
    assert_eq!(join([&one_way, &client]), None);
}
