use super::*;

#[test]
fn a_run_ends_at_the_first_other_byte() {
    for zeros in 0..40 {
        for tail in [&[][..], &[1], &[1, 0, 0, 0, 0, 0, 0, 0, 0]] {
            let bytes = [&vec![0; zeros][..], tail].concat();
            let mut reader = Reader::new(&bytes);
            assert_eq!(Padding::decode(&mut reader).len.get(), zeros + 1);
            assert_eq!(reader.rest(), tail);
        }
    }
}
