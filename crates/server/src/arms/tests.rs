use super::*;

fn arm(name: &str, share: f64) -> Arm {
    Arm {
        name: name.into(),
        share,
        config: Arc::new(Config::new("cubic".parse().expect("a spec"))),
    }
}

#[test]
fn shares_are_kept_and_draws_are_spread_over_all_numbers() {
    let arms = Arms::new(vec![arm("a", 1.0), arm("b", 3.0)]).expect("arms");
    let step = u64::MAX / 10_000;
    let drawn = (0..10_000).map(|index| arms.draw(index * step + step / 2).name.as_str());
    let of_a = drawn.filter(|name| *name == "a").count();
    assert_eq!(of_a, 2500);
    assert_eq!(arms.draw(u64::MAX).name, "b");
}

#[test]
fn the_arm_of_a_connection_is_known_by_its_configuration() {
    let arms = Arms::new(vec![arm("a", 1.0), arm("b", 1.0)]).expect("arms");
    let remote = "127.0.0.1:5".parse().expect("an address");
    let chosen = arms.choose(remote, u64::MAX);
    assert_eq!(arms.of(&chosen).map(|arm| arm.name.as_str()), Some("b"));
    assert!(arms.of(&arm("a", 1.0).config).is_none(), "of nobody's");
}

#[test]
fn what_is_no_share_is_refused() {
    assert!(Arms::new(Vec::new()).is_none());
    for share in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Arms::new(vec![arm("a", 1.0), arm("b", share)]).is_none());
    }
}
