use super::*;

#[test]
fn each_kind_has_its_own_counter_and_name() {
    let mut counts = FrameCounts::default();
    for (count, kind) in (1..).zip(FrameKind::ALL) {
        counts.add(kind, count);
    }
    for (count, kind) in (1..).zip(FrameKind::ALL) {
        assert_eq!(counts.of(kind), count, "{kind:?}");
        let others = FrameKind::ALL.into_iter().filter(|other| *other != kind);
        assert!(others.map(FrameKind::name).all(|name| name != kind.name()));
    }
}

#[test]
fn counts_go_beyond_32_bits() {
    let mut counts = FrameCounts::default();
    for count in [u64::from(u32::MAX), 3, 5 << 32] {
        counts.add(FrameKind::Padding, count);
    }
    assert_eq!(counts.of(FrameKind::Padding), (6 << 32) + 2);
    assert_eq!(counts.of(FrameKind::Stream), 0);
    counts.add(FrameKind::Padding, u64::MAX);
    counts.add(FrameKind::Padding, u64::MAX);
    assert!(counts.of(FrameKind::Padding) >= u64::from(u32::MAX) << 32);
}
