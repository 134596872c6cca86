use super::*;

fn arm(name: &str, share: f64) -> Arm {
    Arm {
        name: name.into(),
        share,
        config: Arc::new(Config::new("cubic".parse().expect("a spec"))),
    }
}

#[test]
fn arms_are_drawn_in_proportion_to_their_shares() {
    let arms = Arms::new(vec![arm("a", 1.0), arm("b", 3.0)]).expect("arms");
    let step = u64::MAX / 10_000;
    let drawn = (0..10_000).map(|index| arms.draw(index * step + step / 2).name.as_str());
    let of_a = drawn.filter(|name| *name == "a").count();
    assert_eq!(of_a, 2500);
    assert_eq!(arms.draw(u64::MAX).name, "b");
}

#[test]
fn the_arm_of_a_connection_is_found_by_its_configuration() {
    let arms = ArmsInUse::new(Arms::new(vec![arm("a", 1.0), arm("b", 1.0)]).expect("arms"));
    let remote = "127.0.0.1:5".parse().expect("an address");
    let chosen = arms.choose(remote, u64::MAX);
    assert_eq!(arms.name_of(&chosen).as_deref(), Some("b"));
    assert_eq!(
        arms.name_of(&arm("a", 1.0).config),
        None,
        "a configuration of no arm"
    );
}

#[test]
fn a_connection_keeps_the_configuration_that_accepted_it() {
    let of = |hash: &str, experiment: Option<&str>| {
        let arms = Arms::new(vec![arm("a", 1.0)]).expect("arms");
        let arms = arms.with_config_hash(hash);
        match experiment {
            Some(name) => arms.of_experiment(name),
            None => arms,
        }
    };
    let remote = "127.0.0.1:5".parse().expect("an address");
    for (first, second) in [(None, Some("x")), (Some("x"), None), (Some("x"), Some("y"))] {
        let arms = ArmsInUse::new(of("first", first));
        let held = arms.choose(remote, 0);
        arms.set(of("second", second));
        let next = arms.choose(remote, 0);
        for (config, hash, experiment) in [(held, "first", first), (next, "second", second)] {
            let origin = arms.origin_of(&config);
            assert_eq!(origin.config_hash.as_deref(), Some(hash));
            assert_eq!(origin.experiment.as_deref(), experiment);
        }
    }
}

#[test]
fn replaced_arms_are_kept_while_they_have_connections() {
    let arms = ArmsInUse::new(Arms::new(vec![arm("old", 1.0)]).expect("arms"));
    let remote = "127.0.0.1:5".parse().expect("an address");
    let held = arms.choose(remote, 0);
    for _ in 0..3 {
        arms.set(Arms::new(vec![arm("new", 1.0)]).expect("arms"));
    }
    let chosen = arms.choose(remote, 0);
    assert_eq!(arms.name_of(&chosen).as_deref(), Some("new"));
    assert_eq!(arms.name_of(&held).as_deref(), Some("old"));
    assert_eq!(arms.origin_of(&held).config_hash, None);
    let known = || arms.0.read().expect("no panic").len();
    assert_eq!(known(), 2, "those between had none");
    drop((held, chosen));
    arms.set(Arms::new(vec![arm("last", 1.0)]).expect("arms"));
    assert_eq!(known(), 1);
}

#[test]
fn a_client_keeps_its_arm_when_assigned_by_address() {
    let arms = Arms::new(vec![arm("a", 1.0), arm("b", 1.0)]).expect("arms");
    let sticky = arms.clone().sticky("experiment");
    let of = |arms: &Arms, address: &str, random| {
        let remote = format!("{address}:{}", random % 60_000);
        let remote = remote.parse().expect("an address");
        arms.draw(arms.number(remote, random)).name.clone()
    };
    let mut in_a = 0;
    for client in 0..200_u64 {
        let address = format!("10.0.{}.{client}", client % 7);
        let first = of(&sticky, &address, 1);
        assert_eq!(first, of(&sticky, &address, u64::MAX));
        assert_eq!(
            first,
            of(&sticky, &format!("[::ffff:{address}]"), 7),
            "mapped"
        );
        in_a += u64::from(first == "a");
    }
    assert!((70..130).contains(&in_a), "{in_a} of 200");
    assert_eq!(
        of(&sticky, "[2001:db8::1]", 1),
        of(&sticky, "[2001:db8::ffff]", 2),
        "one network"
    );
}

#[test]
fn invalid_shares_are_rejected() {
    assert!(Arms::new(Vec::new()).is_none());
    for share in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Arms::new(vec![arm("a", 1.0), arm("b", share)]).is_none());
    }
}
