//! Any bytes at all.

use lastbyte_wire::packet::Version;
use proptest::prelude::*;

use super::*;

/// The start of a mutation, and the mutation.
#[derive(Clone, Debug)]
enum Action {
    Random(Vec<u8>),
    Mutated {
        seed: u8,
        version: bool,
        changes: Vec<(u16, u8)>,
        len: u16,
    },
    /// A datagram of the server, reflected.
    Echo(u16, u8),
    Time(u16),
}

fn action() -> impl Strategy<Value = Action> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..1400);
    let changes = proptest::collection::vec((0_u16..60, any::<u8>()), 0..3);
    prop_oneof![
        bytes.prop_map(Action::Random),
        (any::<u8>(), any::<bool>(), changes, 1190_u16..1300).prop_map(
            |(seed, version, changes, len)| Action::Mutated {
                seed,
                version,
                changes,
                len
            }
        ),
        (any::<u16>(), any::<u8>()).prop_map(|(at, mask)| Action::Echo(at, mask)),
        (0_u16..3000).prop_map(Action::Time),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_datagrams_do_not_exceed_the_limits(
        actions in proptest::collection::vec((0_usize..5, action()), 1..60),
        retry in prop_oneof![
            Just(RetryPolicy::Never),
            Just(RetryPolicy::Always),
            Just(RetryPolicy::UnderLoad { handshakes: 3 }),
        ],
        drains: bool,
    ) {
        let mut server = server_with(|config| {
            policy(config, retry);
            config.reset_key = Some(ResetSecret([3; 32]));
            config.limits.connections = 8;
            config.limits.unvalidated = 6;
            config.limits.answers = 10;
        });
        let mut now = START;
        let mut heard: Vec<(NetworkPath, Vec<u8>)> = Vec::new();
        for (index, action) in actions {
            let datagram = match action {
                Action::Random(bytes) => bytes,
                Action::Mutated { seed, version, changes, len } => {
                    let probe = Probe {
                        version: if version { Version::V1 } else { Version::V2 },
                        destination: id(&[seed; 8]),
                        len: len.into(),
                        ..Probe::new()
                    };
                    let mut datagram = probe.datagram();
                    for (at, value) in changes {
                        datagram[usize::from(at)] ^= value;
                    }
                    datagram
                }
                Action::Echo(at, mask) => {
                    let Some((_, datagram)) = heard.get(usize::from(at) % (heard.len() + 1)) else {
                        continue;
                    };
                    let mut datagram = datagram.clone();
                    datagram[0] ^= mask;
                    datagram
                }
                Action::Time(millis) => {
                    now = now + Duration::from_millis(millis.into());
                    while server.poll_timeout(now).is_some() {}
                    continue;
                }
            };
            let _ = deliver(&mut server, now, &from_client(index), &datagram);
            if drains {
                heard.extend(sent(&mut server, now));
                prop_assert!(heard.iter().all(|(path, _)| path.local == server_address()));
            }
            prop_assert!(server.connections() <= 8);
            prop_assert!(server.load.unvalidated <= 6);
            prop_assert!(server.answers.len() <= 10);
            prop_assert!(server.ready.len() <= 8 + server.closed.len());
            prop_assert!(server.timers.len() <= 8);
            prop_assert!(server.early.waiting.len() <= EarlyDatagrams::COUNT_MAX);
            prop_assert!(server.demux.sizes().iter().all(|size| *size <= 8 * 16));
        }
        // In the end everything is freed.
        let _ = sent(&mut server, now);
        while let Some(at) = server.deadline() {
            now = now.max(at);
            while server.poll_timeout(now).is_some() {}
            let _ = sent(&mut server, now);
        }
        while server.poll_closed().is_some() {}
        assert_empty(&server);
    }

    #[test]
    fn arbitrary_datagrams_do_not_harm_a_client(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..40),
        names_it: bool,
    ) {
        let mut client = client(1);
        let handle = connect(&mut client, START, 0);
        let local = client.peek(handle).expect("lives").local_ids().next().expect("one");
        for mut datagram in datagrams {
            if names_it && datagram.len() > 40 {
                if datagram[0] & 0x80 == 0 {
                    datagram[1..9].copy_from_slice(local.as_slice());
                } else {
                    datagram[5] = 8;
                    datagram[6..14].copy_from_slice(local.as_slice());
                }
            }
            let _ = deliver(&mut client, START, &to_server(0), &datagram);
            let _ = sent(&mut client, START);
        }
        prop_assert_eq!(client.answers.len(), 0);
        prop_assert!(client.connections() <= 1);
    }
}
