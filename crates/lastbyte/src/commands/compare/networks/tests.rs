use super::*;

#[test]
fn the_default_has_24_networks_and_names_differ() {
    assert_eq!(networks(&[]).expect("they are valid").len(), 24);
    let twice = networks(&["lte".to_owned(), "named".to_owned()]);
    assert!(
        matches!(twice, Err(Failure::Usage(error)) if error.contains("two networks are named `lte`"))
    );
}

#[test]
fn cells_have_two_rates_a_round_trip_and_loss() {
    let (_, path) = cell("2mbit:386kbit/100ms/1%").expect("it is valid");
    assert_eq!(path.down.delay + path.up.delay, Duration::from_millis(100));
    assert_eq!(path.down.loss.len(), 1);
    assert_ne!(path.down.capacity, path.up.capacity);
    // 30 kB, which are 240 ms at this rate.
    let (_, slow) = cell("1mbit/10ms").expect("it is valid");
    let (_, far) = cell("1mbit/240ms").expect("it is valid");
    assert_eq!(slow.down.queue, far.down.queue);
    let (_, lossless) = cell("2mbit/100ms").expect("it is valid");
    assert!(lossless.down.loss.is_empty());
    for text in ["2mbit/", "x/10ms", "1mbit/10ms/1%/1"] {
        assert!(matches!(cell(text), Err(Failure::Usage(_))), "{text}");
    }
}
