//! The numbers of a qlog file are those of the connection log of the same transfer.

use lastbyte_replay::FEATURES;

use super::*;
use crate::commands::replay::bank::seed_of;

/// The features that a qlog file does not have.
const ABSENT: [&str; 4] = [
    "packets tracked",
    "part window",
    "part idle",
    "part queueing",
];

#[test]
fn features_of_a_qlog_file_are_those_of_the_log() {
    let registry = Registry::builtin();
    let folder = std::env::temp_dir().join("lastbyte-twin");
    let arguments = BankArguments {
        bank: folder,
        paths: 512,
        seed: 1,
        jobs: None,
    };
    let interrupt = Interrupt::listen();
    let store = Store::new(&arguments, &registry, &interrupt).expect("a folder");
    let mut wrong = std::collections::BTreeMap::<(String, &str), Vec<(f64, f64)>>::new();
    // Others reduce the window without a state of their own.
    for spec in ["slow-start", "cubic"] {
        let control = Control::parse(spec, &registry).expect("a spec");
        for index in 0..40 {
            let Some(logged) = store.line(&control.spec, index).expect("a simulation") else {
                continue;
            };
            let (_, scenario) = store.scenario(&control.spec, seed_of(index));
            let mut buffer = Buffer::default();
            simulate(&scenario, &mut buffer).expect("a simulation");
            let bytes = buffer
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let open = || Ok(Box::new(io::Cursor::new(bytes.clone())) as _);
            let reading = qlog::read(open, "").expect("a file");
            let sender = reading.senders[0].as_ref().expect("a sender");
            assert!(sender.is_complete && sender.responses == 1);
            let read = line(end(sender));
            for feature in FEATURES.iter().filter(|one| !ABSENT.contains(&one.name)) {
                let (Some(logged), read) = (feature.of(&logged), feature.of(&read)) else {
                    continue;
                };
                let read = read.unwrap_or(f64::INFINITY);
                if (read - logged).abs() > 0.05 {
                    let key = (spec.to_owned(), feature.name);
                    wrong.entry(key).or_default().push((logged, read));
                }
            }
        }
    }
    wrong.retain(|_, pairs| pairs.len() > 2);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
