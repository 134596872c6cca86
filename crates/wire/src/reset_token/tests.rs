use super::*;

#[test]
fn comparison_covers_every_byte() {
    let token = StatelessResetToken::new([7; 16]);
    assert_eq!(token, StatelessResetToken::new([7; 16]));
    for index in 0..16 {
        let mut bytes = [7; 16];
        bytes[index] ^= 0x80;
        assert_ne!(token, StatelessResetToken::new(bytes), "byte {index}");
    }
}

#[test]
fn debug_does_not_print_the_token() {
    let token = StatelessResetToken::new([0xab; 16]);
    assert_eq!(format!("{token:?}"), "StatelessResetToken(..)");
}
