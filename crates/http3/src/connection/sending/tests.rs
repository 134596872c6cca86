use super::*;

#[test]
fn a_message_has_a_head_a_body_and_an_end() {
    let mut sending = Sending::default();
    assert_eq!(sending.check_head(), Ok(()));
    assert_eq!(sending.check_body(1), Err(SendError::OutOfOrder));
    assert_eq!(sending.check_end(), Err(SendError::OutOfOrder));
    sending.start_body(None);
    assert_eq!(sending.check_head(), Err(SendError::OutOfOrder));
    assert_eq!(sending.check_body(u64::MAX), Ok(()));
    sending.on_body(u64::MAX);
    assert_eq!(sending.check_end(), Ok(()));
    sending.end();
    assert_eq!(sending.check_body(0), Err(SendError::OutOfOrder));
    assert!(!sending.is_over());
    assert!(sending.finish() && sending.is_over());
}

#[test]
fn rfc9114_4_1_2_the_body_length_must_match_content_length() {
    let mut sending = Sending::default();
    sending.start_body(Some(10));
    assert_eq!(sending.check_body(11), Err(SendError::ContentLength));
    assert_eq!(sending.check_body(10), Ok(()));
    sending.on_body(4);
    assert_eq!(sending.check_body(7), Err(SendError::ContentLength));
    assert_eq!(sending.check_end(), Err(SendError::ContentLength));
    sending.on_body(6);
    assert_eq!(sending.check_end(), Ok(()));
}

#[test]
fn a_finished_message_accepts_no_writes_and_finishes_once() {
    let mut sending = Sending::default();
    assert!(sending.finish());
    assert!(!sending.finish());
    assert_eq!(sending.check_head(), Err(SendError::UnknownStream));
    assert_eq!(sending.check_body(0), Err(SendError::UnknownStream));
    assert_eq!(sending.check_end(), Err(SendError::UnknownStream));
}
