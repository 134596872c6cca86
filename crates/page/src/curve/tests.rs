use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn nothing_is_shown_before_the_first_render() {
    let mut curve = Curve::new();
    curve.add(600, at(10));
    curve.show(at(50));
    curve.add(400, at(100));
    curve.extend(at(100));
    // 60 % at 50 ms, 40 % at 100 ms.
    assert_eq!(curve.index(at(0), at(100)), Duration::from_millis(70));
}

#[test]
fn the_index_of_steady_bytes_is_the_middle() {
    let mut curve = Curve::new();
    curve.show(at(0));
    for millis in 0..100_000 {
        curve.add(3, at(millis));
    }
    curve.extend(at(99_999));
    assert_eq!(curve.index(at(0), at(99_999)).as_nanos(), 49_999_500_000);
}

#[test]
fn a_page_without_visible_bytes_has_the_index_of_its_end() {
    let mut curve = Curve::new();
    curve.show(at(5));
    curve.extend(at(30));
    assert_eq!(curve.index(at(10), at(30)), Duration::from_millis(20));
}
