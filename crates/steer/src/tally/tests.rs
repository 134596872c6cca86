use lastbyte_scenario::RampPlan;
use lastbyte_units::SplitMix64;

use super::*;

const SUBJECT_NAME: &str = "x";
const EPOCHS: [u32; 3] = [7, 8, 9];

fn subject(plan: &RampPlan) -> Subject<'_> {
    Subject {
        name: SUBJECT_NAME,
        arms: ["a", "b"],
        plan,
    }
}

/// The last two epochs, which began after an hour and after three.
fn epochs() -> [Epoch; 2] {
    [(EPOCHS[1], 1), (EPOCHS[2], 3)].map(|(number, hour)| Epoch {
        number,
        stage: 0,
        share: 0.5,
        since_ms: hour * HOUR_MS,
        decided_ms: hour * HOUR_MS,
    })
}

/// Lines of six hours, of all three epochs, some of which do not count.
fn add_lines(tallies: &mut [(&mut Tally, Option<&[Epoch]>)]) {
    let mut random = SplitMix64::stream(3, 4);
    let plan = RampPlan::default();
    let sites = ["fra", "nrt", ""];
    // Sites have numbers in the order in which they come.
    for (tally, _) in &mut *tallies {
        for site in sites {
            tally.site(site);
        }
    }
    for number in 0..2000_u64 {
        let mut below = |limit: u64| (random.number() % limit) as usize;
        let config = format!("{:x}-{}", below(3), EPOCHS[below(3)]);
        let is_complete = below(10) > 0;
        let line = Line {
            experiment: [Some(SUBJECT_NAME), None][usize::from(below(20) == 0)],
            arm: Some(["a", "b"][below(2)]),
            site: Some(sites[below(3)]),
            config: (below(20) > 0).then_some(&config),
            time_ms: Some(number * 6 * HOUR_MS / 2000),
            size: Some(1000),
            is_complete: Some(is_complete),
            ttlb_ms: is_complete.then(|| 0.1 + below(100_000) as f64 / 7.0),
            sent: (below(9) > 0).then_some(250.0),
            lost: Some(below(3) as f64),
            rtt_ms: [Some(below(3) as f64), Some(3.0 + below(9) as f64)],
        };
        for (tally, epochs) in &mut *tallies {
            tally.add(&line, &subject(&plan), *epochs, 10 * HOUR_MS);
        }
    }
}

#[test]
fn lines_of_epochs_that_are_learned_later_count_as_if_they_had_been_known() {
    let epochs = epochs();
    let (mut known, mut unknown) = (Tally::default(), Tally::default());
    add_lines(&mut [(&mut known, Some(&epochs)), (&mut unknown, None)]);
    assert!(unknown.connections(Some(EPOCHS[0]))[0] > 200);
    assert!(unknown.ignored.other_epoch > 50 && unknown.hours(EPOCHS[2]) == 6);
    let learned = unknown.of_epochs(&epochs);
    assert_eq!(learned, known);
    assert_eq!((known.hours(EPOCHS[1]), known.hours(EPOCHS[2])), (5, 3));
    // The newest line is of another epoch.
    let mut tally = Tally::default();
    let plan = RampPlan::default();
    for (time_ms, config) in [(5, "0-8"), (900, "0-7")] {
        let line = Line {
            experiment: Some(SUBJECT_NAME),
            arm: Some("a"),
            config: Some(config),
            time_ms: Some(time_ms),
            ..Line::default()
        };
        tally.add(&line, &subject(&plan), None, 1000);
    }
    assert_eq!(
        (tally.until_ms, tally.of_epochs(&epochs).until_ms),
        (900, 5)
    );
}

#[test]
fn a_tally_as_data_is_the_same() {
    let mut tally = Tally::default();
    add_lines(&mut [(&mut tally, None)]);
    let text = serde_json::to_string(&tally).expect("data");
    let again: Tally = serde_json::from_str(&text).expect("a tally");
    assert_eq!(again, tally);
    let empty = serde_json::to_string(&Tally::default()).expect("data");
    assert_eq!(
        serde_json::from_str::<Tally>(&empty).expect("a tally"),
        Tally::default()
    );
    for (of, by) in [
        (r#""ignored""#, r#""ignore""#),
        (r#","epochs""#, r#","more":1,"epochs""#),
        ("[[8,", "[[281474976710657,"),
        (r#""newest""#, r#""oldest""#),
    ] {
        let damaged = text.replacen(of, by, 1);
        assert!(
            damaged == text || serde_json::from_str::<Tally>(&damaged).is_err(),
            "{by}"
        );
    }
    for values in [
        "[281474976710657,[0,0,0],[0,0,0],[0,0,0],[0,0,0]]",
        "[1,[281474976710657,0,0],[0,0,0],[0,0,0],[0,0,0]]",
        "[1,[1,1e300,1],[0,0,0],[0,0,0],[0,0,0]]",
        "[1,[1,1,-1],[0,0,0],[0,0,0],[0,0,0]]",
        "[1,[1,1,1e300],[0,0,0],[0,0,0],[0,0,0]]",
    ] {
        let damaged = empty.replace(
            r#""cells":[]"#,
            &format!(r#""cells":[[1,"",[{values},[0,[0,0,0],[0,0,0],[0,0,0],[0,0,0]]]]]"#),
        );
        let error = serde_json::from_str::<Tally>(&damaged).expect_err("a count");
        assert!(error.to_string().contains("out of range"), "{error}");
    }
    let many = empty.replacen(":0", ":281474976710657", 1);
    assert!(serde_json::from_str::<Tally>(&many).is_err(), "{many}");
    for bin in ["[-1281,1]", "[5121,1]", "[3,281474976710657]"] {
        let damaged = empty.replace(
            r#""epochs":{}"#,
            &format!(
                r#""epochs":{{"1":{{"newest":0,"hours":[],"configs":[],"times":[[],[{bin}]]}}}}"#
            ),
        );
        assert!(serde_json::from_str::<Tally>(&damaged).is_err(), "{bin}");
    }
    for (hour, is_valid) in [("[5,7]", true), ("[7,5]", false), ("[5,3600000]", false)] {
        let damaged = empty.replace(
            r#""epochs":{}"#,
            &format!(
                r#""epochs":{{"1":{{"newest":0,"hours":[{hour}],"configs":[],"times":[[],[]]}}}}"#
            ),
        );
        let read = serde_json::from_str::<Tally>(&damaged);
        assert_eq!(read.is_ok(), is_valid, "{hour}");
    }
}

#[test]
fn the_number_of_unknown_epochs_is_bounded() {
    let (mut tally, plan) = (Tally::default(), RampPlan::default());
    for number in 0..300 {
        let config = format!("0-{}", number % 290);
        let line = Line {
            experiment: Some(SUBJECT_NAME),
            arm: Some("a"),
            config: Some(&config),
            time_ms: Some(1),
            ..Line::default()
        };
        tally.add(&line, &subject(&plan), None, 1000);
        assert_eq!(tally.has_too_many_epochs(), number >= 255, "{number}");
    }
    assert_eq!(tally.ignored.other_epoch, 34);
    assert_eq!(tally.connections(None), [266, 0]);
}
