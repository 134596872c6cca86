use super::*;

const KUAISHOU: Mix = Mix {
    new: 1,
    resumed: 0,
    zero_rtt: 10,
    reused: 50,
};

fn draws(mix: Mix, seed: u64, count: usize) -> Vec<Option<Handshake>> {
    let mut random = SplitMix64::stream(seed, 0);
    (0..count).map(|_| mix.draw(&mut random)).collect()
}

/// Each way is drawn in proportion to its weight: within 5 standard deviations.
#[test]
fn shares_match_the_weights() {
    let count = 610_000;
    let drawn = draws(KUAISHOU, 1, count);
    for (way, weight) in [
        (Some(Handshake::Full), 1.0),
        (Some(Handshake::Resumed), 0.0),
        (Some(Handshake::ZeroRtt), 10.0),
        (None, 50.0),
    ] {
        let times = drawn.iter().filter(|it| **it == way).count() as f64;
        let share: f64 = weight / 61.0;
        let deviation = (count as f64 * share * (1.0 - share)).sqrt();
        let difference = (times - count as f64 * share).abs();
        assert!(difference <= 5.0 * deviation, "{way:?}: {times}");
    }
}

#[test]
fn the_seed_determines_the_draws() {
    assert_eq!(draws(KUAISHOU, 7, 1000), draws(KUAISHOU, 7, 1000));
    assert_ne!(draws(KUAISHOU, 7, 1000), draws(KUAISHOU, 8, 1000));
}

#[test]
fn a_mix_with_one_entry_always_draws_it() {
    for (text, handshake) in [
        ("new=1", Handshake::Full),
        ("resumed=1", Handshake::Resumed),
        ("0rtt=1", Handshake::ZeroRtt),
    ] {
        let mix: Mix = text.parse().expect("a mix");
        assert_eq!(draws(mix, 1, 100), vec![Some(handshake); 100]);
        assert!(!mix.is_reusing());
        assert_eq!(mix.is_resuming(), handshake != Handshake::Full);
    }
}

#[test]
fn the_text_form_is_parsed() {
    assert_eq!("new=1,0rtt=10,reused=50".parse(), Ok(KUAISHOU));
    assert_eq!("reused=50,0rtt=10,new=1".parse(), Ok(KUAISHOU));
    assert_eq!(KUAISHOU.to_string().parse(), Ok(KUAISHOU));
    for (text, expected) in [
        ("", "unknown way to get a connection ``"),
        (
            "old=1",
            "unknown way to get a connection `old` (expected `new`,",
        ),
        ("new", "invalid weight `` of `new`"),
        ("new=-1", "invalid weight `-1`"),
        ("new=1000001", "expected 0 to 1000000"),
        ("new=1,new=2", "`new` has two weights"),
        ("new=0,reused=0", "all weights are 0"),
    ] {
        let error = text.parse::<Mix>().expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}
