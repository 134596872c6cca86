use crate::{
    Experiment, SettingError,
    plan::{Freeze, RampPlan},
};

const TWO: &str = "
name = 'ramp'
epoch = 3
[[arms]]
name = 'a'
spec = 'slow-start'
share = 0
[[arms]]
name = 'b'
spec = 'bbr'
";

fn with(plan: &str) -> Result<RampPlan, String> {
    let experiment = Experiment::parse(&format!("{TWO}{plan}"));
    let experiment = experiment.map_err(|error: SettingError| error.to_string())?;
    assert_eq!(experiment.epoch, Some(3));
    experiment.plan.ok_or_else(|| "no plan".to_owned())
}

#[test]
fn all_keys_of_a_plan_have_defaults() {
    assert_eq!(with("[plan]"), Ok(RampPlan::default()));
    assert_eq!(with(""), Err("no plan".to_owned()));
    let plan =
        with("[plan]\nstages = ['2%', '0.5']\nloss = '1%'\nmin-size = '200kB'").expect("one");
    assert_eq!(
        (plan.stages, plan.loss, plan.min_size),
        (vec![0.02, 0.5], 0.01, 200_000)
    );
}

#[test]
fn a_win_may_need_an_improvement_or_allow_a_loss() {
    for (keys, expected) in [
        ("win = '2%'", (0.02, 0.05)),
        ("win = '0%'", (0.0, 0.05)),
        ("win = '-1%'", (-0.01, 0.0)),
    ] {
        let plan = with(&format!("[plan]\n{keys}")).expect(keys);
        assert_eq!(
            (plan.win, plan.expected(), plan.win_margin()),
            (expected.0, expected.1, expected.1 - expected.0)
        );
    }
}

#[test]
fn an_invalid_value_of_a_plan_is_named_with_its_key() {
    for (keys, expected) in [
        ("stages = []", "`plan.stages`"),
        (
            "stages = ['5%', '1%']",
            "`plan.stages`: 5%, 1% (expected 1 to 16 shares that grow",
        ),
        (
            "stages = ['5%', '95%']",
            "`plan.stages`: 95% (expected 0.01% to 90%)",
        ),
        (
            "stages = ['5']",
            "`plan.stages`: `5` (expected a percent sign: `5%`)",
        ),
        ("stages = 5", "`plan.stages`"),
        (
            "holdback = '60%'",
            "`plan.holdback`: 60% (expected at most 50%",
        ),
        ("detect = '0%'", "`plan.detect`: 0% (expected 0.01% to 50%)"),
        (
            "win = '5%'",
            "`plan.win`: 5% (expected -50% to -0.01%, 0%, or at least 0.01% less than `detect`, 5%, so that an arm with that change can win)",
        ),
        ("win = '-60%'", "`plan.win`: -60% (expected -50% to -0.01%"),
        ("win = '-0.001%'", "`plan.win`: -0.001% (expected"),
        ("win = '2'", "`plan.win`: `2` (expected a percent sign"),
        ("win = '--2%'", "`plan.win`"),
        (
            "least-connections = 5",
            "`plan.least-connections`: 5 (expected 100 or more)",
        ),
        ("least-time = '20d'", "`plan.least-time`"),
        ("least-time = '0'", "`plan.least-time`"),
        (
            "time-limit = '3ms'",
            "`plan.time-limit`: 3ms (expected 1s or more)",
        ),
        (
            "freeze = ['Fri 16:00 to Monday 08:00']",
            "`plan.freeze`: `Fri 16:00 to Monday 08:00` (expected a range of days or a part of each week, in UTC",
        ),
        ("freeze = 'Fri'", "`plan.freeze`"),
        ("speed = '3ms'", "unknown field `speed`"),
    ] {
        let error = with(&format!("[plan]\n{keys}")).expect_err(keys);
        assert!(error.contains(expected), "{keys}: {error}");
    }
    let third = "[plan]\n[[arms]]\nname = 'c'\nspec = 'cubic'";
    let error = with(third).expect_err("three");
    assert!(error.contains("`plan`: 3 arms (expected two"), "{error}");
}

/// Milliseconds from 1970 to a day, and a time of it.
const fn at(day: u64, hour: u64, minute: u64) -> u64 {
    ((day * 24 + hour) * 60 + minute) * 60_000
}

#[test]
fn a_part_of_each_week_is_frozen() {
    // 1970 began on a Thursday.
    for (text, inside, outside) in [
        (
            "Fri 16:00 to Mon 08:00",
            [
                at(1, 16, 0),
                at(2, 0, 0),
                at(3, 23, 59),
                at(4, 7, 59),
                at(7000 + 4, 7, 59),
            ],
            [
                at(0, 12, 0),
                at(1, 15, 59),
                at(4, 8, 0),
                at(5, 0, 0),
                at(7000, 16, 0),
            ],
        ),
        (
            "Mon 08:00 to Mon 09:30",
            [
                at(4, 8, 0),
                at(4, 9, 29),
                at(11, 9, 0),
                at(18, 9, 0),
                at(4, 8, 30),
            ],
            [
                at(4, 7, 59),
                at(4, 9, 30),
                at(3, 8, 30),
                at(0, 0, 0),
                at(5, 8, 0),
            ],
        ),
        // All but an hour.
        (
            "Thu 01:00 to Thu 00:00",
            [
                at(0, 1, 0),
                at(6, 23, 59),
                at(3, 12, 0),
                at(4, 0, 0),
                at(7, 1, 0),
            ],
            [
                at(0, 0, 0),
                at(0, 0, 59),
                at(7, 0, 0),
                at(7, 0, 59),
                at(14, 0, 30),
            ],
        ),
    ] {
        let window: Freeze = text.parse().expect(text);
        assert_eq!(window.to_string(), text);
        let is_in = |times: [u64; 5]| times.map(|time| window.contains(time));
        assert_eq!(
            (is_in(inside), is_in(outside)),
            ([true; 5], [false; 5]),
            "{text}"
        );
    }
}

#[test]
fn a_range_of_days_is_frozen_and_its_last_day_belongs_to_it() {
    // `date -u -d 2026-12-20 +%s` / 86400.
    let first = 20_807;
    let window: Freeze = "2026-12-20 to 2027-01-02".parse().expect("days");
    for (time, is_in) in [
        (at(first, 0, 0) - 1, false),
        (at(first, 0, 0), true),
        (at(first + 13, 23, 59), true),
        (at(first + 14, 0, 0), false),
    ] {
        assert_eq!(window.contains(time), is_in, "{time}");
    }
    for (text, day) in [
        ("1970-01-01 to 1970-01-01", 0),
        ("1972-02-29 to 1972-02-29", 789),
        ("2000-02-29 to 2000-02-29", 11_016),
        ("2000-03-01 to 2000-03-01", 11_017),
        ("2100-03-01 to 2100-03-01", 47_541),
        ("2400-12-31 to 2400-12-31", 157_419),
    ] {
        let window: Freeze = text.parse().expect(text);
        let days: Vec<u64> = (u64::saturating_sub(day, 1)..day + 2)
            .filter(|day| window.contains(at(*day, 12, 0)))
            .collect();
        assert_eq!(days, [day], "{text}");
    }
}

#[test]
fn what_is_no_window_is_refused() {
    for text in [
        "",
        "Fri",
        "Fri 16:00",
        "Fri 16:00 to Fri 16:00",
        "Fri 24:00 to Mon 08:00",
        "Fri 16:60 to Mon 08:00",
        "Fri 6:00 to Mon 08:00",
        "fri 16:00 to mon 08:00",
        "Fri 16:00 to 2026-12-20",
        "2026-12-20 to 2026-12-19",
        "2026-02-29 to 2026-03-01",
        "2100-02-29 to 2100-03-01",
        "2026-00-10 to 2026-03-01",
        "2026-13-10 to 2027-03-01",
        "2026-04-31 to 2026-05-01",
        "1969-12-31 to 1970-01-02",
        "2026-1-1 to 2026-01-02",
        "+026-01-01 to 2026-01-02",
    ] {
        assert!(text.parse::<Freeze>().is_err(), "{text}");
    }
}
