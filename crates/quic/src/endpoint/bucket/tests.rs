use super::*;

fn taken(bucket: &mut Bucket, now: Time, tries: usize) -> usize {
    (0..tries).filter(|_| bucket.take(now)).count()
}

#[test]
fn a_burst_is_permitted_then_the_rate_applies() {
    let mut bucket = Bucket::new(RateLimit {
        per_second: 100,
        burst: 20,
    });
    let start = Time::from_nanos(5_000_000_000);
    assert_eq!(taken(&mut bucket, start, 1000), 20);
    let at = |millis| start + Duration::from_millis(millis);
    assert_eq!(taken(&mut bucket, at(9), 1000), 0);
    assert_eq!(taken(&mut bucket, at(10), 1000), 1);
    assert_eq!(
        taken(&mut bucket, at(1010), 1000),
        20,
        "silence fills it again"
    );
    let total: usize = (1011..2010).map(|ms| taken(&mut bucket, at(ms), 10)).sum();
    assert_eq!(total, 99);
}

#[test]
fn a_rate_of_zero_permits_nothing() {
    let mut bucket = Bucket::new(RateLimit {
        per_second: 0,
        burst: 20,
    });
    assert_eq!(taken(&mut bucket, Time::MAX, 10), 0);
}
