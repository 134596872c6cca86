//! Rules of browsers for acknowledgments, on whole transfers.

use lastbyte_scenario::{ClientAcks, network::PathText};

use crate::paths::{bottleneck, run, transfer};

/// Packets that the client of a transfer of 2000 packets sends under these rules.
fn sent_by_client(acks: ClientAcks) -> u64 {
    let mut scenario = transfer(bottleneck(50, 40, 200), "slow-start", 2_400_000);
    scenario.transport.max_ack_delay = acks.max_ack_delay();
    scenario.transport.ack_decimation = acks.decimation();
    run(&scenario).up.sent.packets
}

#[test]
fn chromium_sends_an_ack_for_ten_packets_and_others_for_two() {
    let packets = 2_400_000 / 1250;
    for acks in [ClientAcks::Rfc9000, ClientAcks::Firefox, ClientAcks::Safari] {
        let sent = sent_by_client(acks);
        assert!(
            (packets / 2..packets / 2 + 40).contains(&sent),
            "{}: {sent}",
            acks.name()
        );
    }
    let sent = sent_by_client(ClientAcks::Chromium);
    let expected = 50 + (packets - 100) / 10;
    assert!(
        (expected..expected + 40).contains(&sent),
        "chromium: {sent}"
    );
}

#[test]
fn a_network_file_selects_the_ack_rule_of_clients() {
    let parse = |text| {
        PathText::parse(text)
            .expect("keys that there are")
            .path(&mut |_| Ok(String::new()))
    };
    let path = parse("client-acks = \"chromium\"").expect("a rule");
    assert_eq!(path.client_acks, Some(ClientAcks::Chromium));
    assert_eq!(parse("rtt = \"1ms\"").expect("a path").client_acks, None);
    let error = parse("client-acks = \"lynx\"").expect_err("no such rule");
    assert_eq!(
        error.to_string(),
        "`client-acks`: unknown rule for ACKs `lynx` (expected one of `rfc9000`, `chromium`, `firefox`, `safari`)"
    );
}
