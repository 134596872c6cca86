use super::*;

#[test]
fn handles_do_not_alias() {
    let mut slab = Slab::new();
    let first = slab.insert('a');
    let second = slab.insert('b');
    assert_eq!(slab.remove(first), Some('a'));
    assert_eq!(slab.remove(first), None);
    assert_eq!(slab.next_handle().index(), first.index());
    let third = slab.insert('c');
    assert_eq!(third.index(), first.index());
    assert_ne!(third, first);
    assert_eq!((slab.get(first), slab.get(third)), (None, Some(&'c')));
    assert_eq!(slab.get_mut(first), None);
    assert_eq!(slab.handle_at(first.index()), Some(third));
    assert_eq!(slab.handles().collect::<Vec<_>>(), [third, second]);
    assert_eq!(slab.len(), 2);

    slab.insert('d');
    slab.remove(second);
    assert_eq!(slab.end(), 3);
    let range = |indices| slab.range(indices).copied().collect::<String>();
    assert_eq!(
        [0..3, 0..2, 1..3, 2..9, 3..4, 7..9].map(range),
        ["cd", "c", "d", "d", "", ""]
    );
}
