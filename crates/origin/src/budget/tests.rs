use super::*;

#[test]
fn a_connection_has_its_limit_and_a_share_of_the_remainder() {
    let budget = Budget::new(Limits {
        process: 1600,
        connection: 60,
    });
    let one = budget.connection();
    one.add(59);
    assert!(one.has_room());
    one.add(1);
    assert!(!one.has_room(), "its own limit");
    let many: Vec<_> = (0..200)
        .map(|_| {
            let connection = budget.connection();
            while connection.has_room() {
                connection.add(1);
            }
            connection
        })
        .collect();
    assert!(budget.used() < 1600, "{}", budget.used());
    assert!(budget.used() > 1500, "{}", budget.used());
    for connection in many {
        connection.remove(connection.used.load(Ordering::Relaxed));
    }
    one.remove(60);
    assert_eq!(budget.used(), 0);
}
