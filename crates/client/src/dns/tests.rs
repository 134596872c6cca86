use domain::{
    base::{
        Message, MessageBuilder, Name, Rtype, iana::Rcode, message_builder::TreeCompressor,
        rdata::UnknownRecordData,
    },
    rdata::{A, Cname},
};
use proptest::prelude::*;

use super::{
    message::{AnswerError, answer, query},
    system::{has_host, servers_in},
    *,
};
use crate::url::Scheme;

type Bytes = Vec<u8>;

fn name(text: &str) -> Name<Bytes> {
    text.parse().expect(text)
}

/// The data of an HTTPS record in wire format (RFC 9460 §2.2).
fn https(priority: u16, target: &str, parameters: &[(u16, &[u8])]) -> Bytes {
    let mut data = priority.to_be_bytes().to_vec();
    data.extend_from_slice(name(target).as_slice());
    for (key, value) in parameters {
        data.extend_from_slice(&key.to_be_bytes());
        data.extend_from_slice(&(value.len() as u16).to_be_bytes());
        data.extend_from_slice(value);
    }
    data
}

/// An answer with these records, preceded by a CNAME record if given.
fn message(host: &str, cname: Option<&str>, records: &[Bytes], code: Rcode) -> Bytes {
    let question = query(7, host, Kind::Https).expect("a name");
    let question = Message::from_octets(question).expect("a message");
    let mut builder = MessageBuilder::new_vec()
        .start_answer(&question, code)
        .expect("room");
    if let Some(cname) = cname {
        let data = Cname::new(name(cname));
        builder.push((name(host), 60, data)).expect("room");
    }
    let owner = name(cname.unwrap_or(host));
    for record in records {
        let data = UnknownRecordData::from_octets(Rtype::HTTPS, record.clone()).expect("data");
        builder.push((owner.clone(), 60, data)).expect("room");
    }
    builder.finish()
}

fn read(records: &[Bytes]) -> Result<Answer, AnswerError> {
    let bytes = message("a.example", None, records, Rcode::NOERROR);
    answer(&bytes, 7, "a.example", Kind::Https)
}

fn services(records: &[Bytes]) -> Vec<Service> {
    read(records).expect("an answer").services
}

const H3: (u16, &[u8]) = (1, b"\x02h3");

#[test]
fn rfc9460_7_parameters_are_parsed() {
    let all = https(
        2,
        "B.Example.",
        &[
            (0, &[0, 1, 0, 4]),
            (1, b"\x02h3\x02h2"),
            (3, &[0x20, 0xfb]),
            (4, &[192, 0, 2, 1, 192, 0, 2, 2]),
            (5, b"anything"),
            (6, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (65000, b"unknown"),
        ],
    );
    let own = https(1, ".", &[H3, (2, b"")]);
    let plain = https(3, ".", &[]);
    let of = |alpn: &[&str]| alpn.iter().map(|name| (*name).to_owned()).collect();
    let found = services(&[all, own, plain]);
    let expected = [
        Service {
            priority: 1,
            alpn: of(&["h3"]),
            ..Service::default()
        },
        Service {
            priority: 2,
            target: Some("b.example".to_owned()),
            port: Some(8443),
            alpn: of(&["h3", "h2", "http/1.1"]),
            hints: ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
                .map(|text| text.parse().expect(text))
                .to_vec(),
        },
        Service {
            priority: 3,
            alpn: of(&["http/1.1"]),
            ..Service::default()
        },
    ];
    assert_eq!(found, expected);
    assert!(found[0].has_quic() && !found[0].has_tcp());
    assert!(!found[2].has_quic() && found[2].has_tcp());
}

/// RFC 9460 §8: a record with an unsupported mandatory parameter is ignored, and other records are not.
#[test]
fn rfc9460_8_records_with_unsupported_mandatory_parameters_are_ignored() {
    let unknown = https(1, ".", &[(0, &[0, 1, 0xfd, 0xe8]), H3, (65000, b"x")]);
    let unsupported = https(1, ".", &[(0, &[0, 5]), (5, b"x")]);
    let good = https(2, ".", &[H3]);
    assert_eq!(services(&[unknown, unsupported, good]).len(), 1);
    // A record without a supported protocol.
    assert_eq!(services(&[https(1, ".", &[(1, b"\x02h9"), (2, b"")])]), []);
}

/// RFC 9460 §2.2: one malformed record invalidates the whole set.
#[test]
fn rfc9460_2_2_a_malformed_record_invalidates_the_set() {
    let good = https(1, ".", &[H3]);
    for malformed in [
        https(1, ".", &[(3, &[0])]),
        https(1, ".", &[(3, &[0, 0])]),
        https(1, ".", &[(1, b"\x05h3")]),
        https(1, ".", &[(1, b"")]),
        https(1, ".", &[(2, b"")]),
        https(1, ".", &[(0, &[0, 3])]),
        https(1, ".", &[(0, &[0, 3, 0, 1]), H3, (3, &[1, 1])]),
        https(1, ".", &[(4, &[1, 2, 3])]),
        https(1, ".", &[(6, &[1; 15])]),
        https(1, ".", &[(3, &[1, 1]), H3]),
        b"\0".to_vec(),
    ] {
        let read = read(&[good.clone(), malformed.clone()]);
        assert!(matches!(read, Err(AnswerError::Failed(_))), "{malformed:?}");
    }
}

#[test]
fn aliases_take_precedence_and_cnames_are_followed() {
    let alias = https(0, "pool.example", &[]);
    let found = read(&[https(1, ".", &[H3]), alias]).expect("an answer");
    assert_eq!(found.alias.as_deref(), Some("pool.example"));
    // The root as the target means that there is no service.
    assert_eq!(read(&[https(0, ".", &[])]), Ok(Answer::default()));
    let bytes = message(
        "a.example",
        Some("cdn.example"),
        &[https(1, ".", &[H3])],
        Rcode::NOERROR,
    );
    let found = answer(&bytes, 7, "A.example", Kind::Https).expect("an answer");
    assert_eq!((found.services.len(), found.alias), (1, None));
}

/// A label may contain any byte (RFC 2181 §11), also a dot, which would end up in URLs and TLS server names.
#[test]
fn targets_that_are_no_host_names_are_ignored() {
    for target in ["b\\.example", "b\\.", "b\\032c.example", "b\\/c.example"] {
        let records = [https(0, target, &[]), https(1, target, &[H3])];
        assert_eq!(read(&records), Ok(Answer::default()), "{target}");
    }
    let found = services(&[https(1, "_svc.B-1.example", &[H3])]);
    assert_eq!(found[0].target.as_deref(), Some("_svc.b-1.example"));
}

#[test]
fn only_answers_to_the_query_are_accepted() {
    let good = message("a.example", None, &[https(1, ".", &[H3])], Rcode::NOERROR);
    assert!(answer(&good, 7, "a.example", Kind::Https).is_ok());
    for (id, host, kind) in [
        (8, "a.example", Kind::Https),
        (7, "b.example", Kind::Https),
        (7, "a.example", Kind::A),
    ] {
        assert_eq!(answer(&good, id, host, kind), Err(AnswerError::Unrelated));
    }
    let question = query(7, "a.example", Kind::Https).expect("a name");
    assert_eq!(
        answer(&question, 7, "a.example", Kind::Https),
        Err(AnswerError::Unrelated)
    );
    let refused = message("a.example", None, &[], Rcode::REFUSED);
    let refused = answer(&refused, 7, "a.example", Kind::Https);
    assert!(matches!(refused, Err(AnswerError::Failed(what)) if what.contains("REFUSED")));
    let none = message("a.example", None, &[], Rcode::NXDOMAIN);
    assert_eq!(
        answer(&none, 7, "a.example", Kind::Https),
        Ok(Answer::default())
    );
    let mut cut = good.clone();
    cut[2] |= 2;
    assert_eq!(
        answer(&cut, 7, "a.example", Kind::Https),
        Err(AnswerError::Truncated)
    );
}

#[test]
fn only_addresses_of_the_queried_name_are_used() {
    let message = query(9, "a.example", Kind::A).expect("a name");
    let message = Message::from_octets(message).expect("a message");
    let mut builder = MessageBuilder::new_vec()
        .start_answer(&message, Rcode::NOERROR)
        .expect("room");
    for (owner, last) in [("a.example", 1), ("else.example", 2)] {
        let data = A::from_octets(192, 0, 2, last);
        builder.push((name(owner), 60, data)).expect("room");
    }
    let bytes = builder.finish();
    let found = answer(&bytes, 9, "a.example", Kind::A).expect("an answer");
    let expected: IpAddr = "192.0.2.1".parse().expect("an address");
    assert_eq!(found.addresses, [expected]);
}

/// A query has the form that `domain` writes, and compressed names are read (RFC 1035 §4.1.4).
#[test]
fn names_are_those_of_another_encoder() {
    for host in ["a.example", "A.Example.", "_8443._https.a.example"] {
        let query = query(7, host, Kind::Https).expect("a name");
        let query = Message::from_octets(query).expect("a message");
        let question = query.sole_question().expect("a question");
        assert_eq!(*question.qname(), name(host));
        assert_eq!(question.qtype(), Rtype::HTTPS);
        assert!(query.header().rd());
        assert_eq!(query.opt().expect("EDNS").udp_payload_size(), 1232);
    }
    let labels = |count, last: &str| format!("{}{last}", "a.".repeat(count));
    for (host, is_valid) in [
        ("", false),
        (".", false),
        ("a..example", false),
        ("a b.example", false),
        (&"a".repeat(63), true),
        (&"a".repeat(64), false),
        (&labels(126, "a"), true),
        (&labels(126, "aa"), false),
    ] {
        assert_eq!(query(7, host, Kind::A).is_some(), is_valid, "{host}");
        let known: Result<Name<Bytes>, _> = host.parse();
        let is_known = known.is_ok_and(|name| !name.is_root());
        assert!(!is_valid || is_known, "{host}");
    }

    let host = "www.a.example";
    let question = query(7, host, Kind::A).expect("a name");
    let question = Message::from_octets(question).expect("a message");
    let builder = MessageBuilder::from_target(TreeCompressor::new(Bytes::new()));
    let mut builder = builder
        .expect("room")
        .start_answer(&question, Rcode::NOERROR)
        .expect("room");
    let cname = Cname::new(name("CDN.a.example"));
    builder.push((name(host), 60, cname)).expect("room");
    let owner = name("cdn.a.example");
    let data = A::from_octets(192, 0, 2, 1);
    builder.push((owner, 60, data)).expect("room");
    let bytes = builder.finish().into_target();
    // Two owners and a target, of which only the first label is written, or none.
    assert_eq!(bytes.len(), 12 + 19 + 2 * 10 + 2 + 6 + 6 + 4);
    let found = answer(&bytes, 7, host, Kind::A).expect("an answer");
    let expected: IpAddr = "192.0.2.1".parse().expect("an address");
    assert_eq!(found.addresses, [expected]);
}

/// A message of the largest size whose pointers lead to themselves, or to the one before.
#[test]
fn pointers_of_a_name_are_bounded() {
    for back in [0, 2] {
        let mut bytes = query(7, "a.example", Kind::A).expect("a name");
        bytes.truncate(12 + 11 + 4);
        bytes[2] |= 0x80;
        bytes[6..8].fill(0xff);
        while bytes.len() < 0xffff {
            let [high, low] = ((bytes.len() - back) as u16).to_be_bytes();
            bytes.extend([0xc0 | high, low]);
        }
        let found = answer(&bytes, 7, "a.example", Kind::A);
        assert!(matches!(found, Err(AnswerError::Failed(_))), "{found:?}");
    }
}

fn origin(host: &str, port: u16) -> Origin {
    Origin {
        scheme: Scheme::Https,
        host: host.to_owned(),
        port,
    }
}

#[test]
fn rfc9460_9_1_record_names_contain_the_port() {
    assert_eq!(record_name(&origin("a.example", 443)), "a.example");
    assert_eq!(
        record_name(&origin("a.example", 8443)),
        "_8443._https.a.example"
    );
}

#[test]
fn special_use_names_are_not_queried() {
    for host in [
        "127.0.0.1",
        "::1",
        "localhost",
        "a.localhost",
        "printer.local",
        "x.onion",
    ] {
        assert!(!may_have_https_record(&origin(host, 443), true), "{host}");
    }
    assert!(!may_have_https_record(&origin("intranet", 443), false));
    assert!(may_have_https_record(&origin("intranet", 443), true));
    assert!(may_have_https_record(&origin("a.example", 443), false));
}

#[test]
fn targets_are_set_unless_they_are_the_origin() {
    let of = |target: Option<&str>| Service {
        target: target.map(str::to_owned),
        ..Service::default()
    };
    let given = vec![of(None), of(Some("a.example")), of(Some("b.example"))];
    let own = with_targets(given.clone(), "a.example", "a.example");
    assert_eq!(own, [of(None), of(None), of(Some("b.example"))]);
    let elsewhere = with_targets(given, "_1._https.a.example", "a.example");
    assert_eq!(elsewhere[0], of(Some("_1._https.a.example")));
}

#[test]
fn system_files_are_parsed() {
    let text = "# nameserver 192.0.2.9\nsearch example\nnameserver 192.0.2.1\nnameserver\t::1\n\
                nameserver fe80::1%eth0\nnameserver x\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n";
    let expected = ["192.0.2.1:53", "[::1]:53", "192.0.2.2:53"];
    let expected: Vec<SocketAddr> = expected.map(|it| it.parse().expect(it)).to_vec();
    assert_eq!(servers_in(text), expected);
    let text = "127.0.0.1 localhost here.example # gone.example\n::1 ip6-localhost\n";
    for (name, expected) in [
        ("Here.Example", true),
        ("ip6-localhost", true),
        ("gone.example", false),
        ("127.0.0.1", false),
    ] {
        assert_eq!(has_host(text, name), expected, "{name}");
    }
}

proptest! {
    /// Decoding arbitrary bytes does not panic.
    #[test]
    fn decoding_arbitrary_bytes_does_not_panic(
        records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4),
        mutations in prop::collection::vec((any::<usize>(), any::<u8>()), 0..8),
        cut in any::<usize>(),
    ) {
        let good = https(1, "b.example", &[(0, &[0, 1]), H3, (3, &[1, 1]), (4, &[1, 2, 3, 4])]);
        let records = [records, vec![good]].concat();
        let mut bytes = message("a.example", Some("b.example"), &records, Rcode::NOERROR);
        // After the question section, because a changed question is always rejected.
        let start = 12 + name("a.example").as_slice().len() + 4;
        for (place, byte) in mutations {
            let place = start + place % (bytes.len() - start);
            bytes[place] = byte;
        }
        for len in [bytes.len(), cut % bytes.len()] {
            for kind in [Kind::A, Kind::Aaaa, Kind::Https] {
                let _ = answer(&bytes[..len], 7, "a.example", kind);
            }
        }
    }
}

#[test]
fn fuzz_corpus_of_dns_is_replayed() {
    lastbyte_testkit::replay_corpus("dns", 5, corpus::play);
}
