use lastbyte_congestion::Registry;

use super::*;

const TWO: &str = "
name = 'two'
baseline = 'b'
[[arms]]
name = 'a'
spec = 'slow-start'
share = 3
[[arms]]
name = 'b'
spec = 'bbr'
";

fn with(line: &str) -> Result<Experiment, SettingError> {
    Experiment::parse(&TWO.replacen("baseline = 'b'", line, 1))
}

#[test]
fn the_four_arms_are_those_of_the_talk() {
    let experiment = Experiment::four_arms();
    let arms: Vec<(&str, String)> = experiment
        .arms
        .iter()
        .map(|arm| (arm.name.as_str(), arm.spec.to_string()))
        .collect();
    let expected = [
        ("slow-start", "slow-start"),
        ("jumpstart", "jumpstart"),
        ("rapid-no-jump", "rapid-no-jump"),
        ("rapid-start", "rapid-start"),
    ];
    assert_eq!(arms, expected.map(|(name, spec)| (name, spec.to_owned())));
    assert_eq!((experiment.baseline, experiment.connections), (0, 20_000));
    assert_eq!(experiment.population.sites().count(), 7);
}

#[test]
fn arms_are_drawn_by_their_shares_independently_of_the_rest() {
    let experiment = Experiment::parse(TWO).expect("it is one");
    assert_eq!(experiment.baseline, 1);
    let count = 4000;
    let plans: Vec<Plan> = (0..count)
        .map(|index| experiment.connection(index, false))
        .collect();
    let first = plans.iter().filter(|plan| plan.arm == 0).count();
    assert!((2900..3100).contains(&first), "{first}");
    // An arm has as many large objects, and as much of each site, as another.
    for arm in [0, 1] {
        let of_arm: Vec<&Plan> = plans.iter().filter(|plan| plan.arm == arm).collect();
        let large = of_arm
            .iter()
            .filter(|plan| plan.draw.size_bytes >= 400_000)
            .count();
        let large = large as f64 / of_arm.len() as f64;
        assert!((large - 0.48).abs() < 0.05, "{large}");
    }
    let again = experiment.connection(17, false);
    assert_eq!((again.arm, again.seed), (plans[17].arm, plans[17].seed));
    assert_eq!(again.draw.facts, plans[17].draw.facts);
}

/// What jq and JavaScript make of a seed in the log is that seed, and gives the connection again.
#[test]
fn seeds_are_exact_as_floating_point_numbers() {
    let experiment = Experiment::four_arms();
    let mut largest = 0;
    for index in 0..2000 {
        let plan = experiment.connection(index, false);
        assert_eq!(plan.seed as f64 as u64, plan.seed);
        assert!(plan.seed < units::SEED_END);
        largest = largest.max(plan.seed);
        let again = experiment.population.draw(plan.seed);
        assert_eq!(again.facts, plan.draw.facts);
    }
    assert!(largest > units::SEED_END / 2, "all 53 bits are drawn");
}

#[test]
fn pairs_share_all_but_the_arm() {
    let experiment = Experiment::four_arms();
    for pair in 0..20 {
        let plans: Vec<Plan> = (4 * pair..4 * pair + 4)
            .map(|index| experiment.connection(index, true))
            .collect();
        let arms: Vec<usize> = plans.iter().map(|plan| plan.arm).collect();
        assert_eq!(arms, [0, 1, 2, 3]);
        let first = experiment.scenario(&plans[0]);
        for plan in &plans {
            let scenario = experiment.scenario(plan);
            assert_eq!(plan.seed, plans[0].seed);
            assert_eq!(plan.draw.facts, plans[0].draw.facts);
            assert_eq!(scenario.seed, first.seed);
            assert_eq!(scenario.path.down, first.path.down);
        }
        assert_ne!(
            plans[0].seed,
            experiment.connection(4 * pair + 4, true).seed
        );
    }
}

#[test]
fn sites_sweeps_and_other_populations_are_accepted() {
    let few = with("sites = ['Africa', 'West Europe']").expect("it is one");
    assert_eq!(
        few.population.sites().collect::<Vec<_>>(),
        ["West Europe", "Africa"]
    );
    let swept = with("sweep = { queue = 2, sizes = 'videos' }").expect("it is one");
    assert_eq!(swept.population.sweep().changes(), [("queue", 2.0)]);
    assert_eq!(swept.population.sweep().sizes.as_deref(), Some("videos"));
    let text = TWO.replacen("baseline = 'b'", "population = 'mine.toml'", 1);
    let mut asked = Vec::new();
    let mine = Experiment::parse_with(&text, &Registry::builtin(), &mut |name| {
        asked.push(name.to_owned());
        Ok(crate::population::DEFAULT.replace("name = \"default\"", "name = \"mine\""))
    });
    assert_eq!(mine.expect("it is one").population.name(), "mine");
    assert_eq!(asked, ["mine.toml"]);
}

#[test]
fn errors_of_an_experiment_name_their_place() {
    for (line, says) in [
        (
            "baseline = 'c'",
            "`baseline`: unknown arm `c` (expected a, b)",
        ),
        ("connections = 0", "`connections`"),
        (
            "seed = 9007199254740992",
            "`seed`: 9007199254740992 (expected a whole number from 0 to",
        ),
        ("connection = 5", "unknown field `connection`"),
        ("sites = ['Mars']", "`sites`: unknown site `Mars`"),
        (
            "population = 'x.toml'",
            "`population`: unknown population `x.toml`",
        ),
        (
            "time-limit = '5'",
            "`time-limit`: `5` (expected a span of time",
        ),
        ("sweep = { queue = -1 }", "`sweep.queue`"),
        ("sweep = { queues = 1 }", "unknown field `queues`"),
        ("sweep = { sizes = 'x' }", "`sweep.sizes`: unknown mix `x`"),
    ] {
        let error = with(line).expect_err(line).to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
    for (from, to, says) in [
        ("'bbr'", "'bbx'", "`arms.b.spec`"),
        ("name = 'b'", "name = 'a'", "`arms.a`: there are two"),
        ("share = 3", "share = -3", "`arms.a.share`"),
    ] {
        let text = TWO.replacen(from, to, 1);
        let error = Experiment::parse(&text).expect_err(to).to_string();
        assert!(error.contains(says), "{to}: {error}");
    }
    assert!(Experiment::parse("name = 'none'\narms = []").is_err());
}
