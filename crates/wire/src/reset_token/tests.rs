use super::*;

#[test]
fn every_byte_counts_in_the_comparison() {
    let token = StatelessResetToken::new([7; 16]);
    assert_eq!(token, StatelessResetToken::new([7; 16]));
    for index in 0..16 {
        let mut bytes = [7; 16];
        bytes[index] ^= 0x80;
        assert_ne!(token, StatelessResetToken::new(bytes), "byte {index}");
    }
}

#[test]
fn the_token_is_not_shown() {
    let token = StatelessResetToken::new([0xab; 16]);
    assert_eq!(format!("{token:?}"), "StatelessResetToken(..)");
}
