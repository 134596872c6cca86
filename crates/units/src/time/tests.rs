use super::*;

#[test]
fn the_earlier_of_two_deadlines_is_one_of_those_there_are() {
    let [one, two] = [1, 2].map(|nanos| Some(Time::from_nanos(nanos)));
    assert_eq!(Time::earlier(one, two), one);
    assert_eq!(Time::earlier(two, one), one);
    assert_eq!(Time::earlier(None, two), two);
    assert_eq!(Time::earlier(two, None), two);
    assert_eq!(Time::earlier(None, None), None);
}

#[test]
fn arithmetic_saturates_at_both_ends() {
    assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
    assert_eq!(Time::ZERO + Duration::MAX, Time::MAX);
    assert_eq!(Time::ZERO.since(Time::MAX), Duration::ZERO);
    assert_eq!(Time::from_nanos(u64::MAX), Time::MAX);
    assert_eq!(Time::MAX.as_nanos(), u64::MAX);
    let longest = Duration::from_nanos(u64::MAX - 1);
    assert_eq!(Time::MAX.since(Time::ZERO), longest);
}

#[test]
fn an_optional_time_takes_no_more_memory() {
    assert_eq!(size_of::<Option<Time>>(), size_of::<Time>());
    assert_eq!(Time::from_nanos(0), Time::default());
    assert_eq!(Time::from_nanos(7).as_nanos(), 7);
}
