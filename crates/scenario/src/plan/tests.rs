use crate::{Experiment, SettingError, plan::RampPlan};

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
            "least-connections = 5",
            "`plan.least-connections`: 5 (expected 100 or more)",
        ),
        ("least-time = '20d'", "`plan.least-time`"),
        ("least-time = '0'", "`plan.least-time`"),
        (
            "time-limit = '3ms'",
            "`plan.time-limit`: 3ms (expected 1s or more)",
        ),
        ("speed = '3ms'", "unknown field `speed`"),
    ] {
        let error = with(&format!("[plan]\n{keys}")).expect_err(keys);
        assert!(error.contains(expected), "{keys}: {error}");
    }
    let third = "[plan]\n[[arms]]\nname = 'c'\nspec = 'cubic'";
    let error = with(third).expect_err("three");
    assert!(error.contains("`plan`: 3 arms (expected two"), "{error}");
}
