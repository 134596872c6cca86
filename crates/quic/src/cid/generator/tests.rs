use super::*;

#[test]
fn ids_have_their_length_and_do_not_repeat() {
    let key = Arc::new(ResetKey::new(&[7; 32]));
    for len in [0, 4, 8, 20] {
        let ids = RandomIds { len };
        assert_eq!(ids.id_len(), len);
        let mut made = Vec::new();
        for seed in 0..10 {
            let mut generator = ids.generator(&key, [seed; 32]);
            made.extend((0..100).map(|_| generator.generate()));
        }
        assert!(made.iter().all(|id| id.len() == len));
        made.sort_by_key(|id| id.as_slice().to_vec());
        made.dedup();
        assert_eq!(made.len(), if len == 0 { 1 } else { 1000 });
    }
}

#[test]
fn rfc9000_10_3_2_the_token_follows_from_key_and_id() {
    let key = Arc::new(ResetKey::new(&[7; 32]));
    let mut first = RandomIds::default().generator(&key, [1; 32]);
    let second = RandomIds::default().generator(&key, [2; 32]);
    let id = first.generate();
    assert_eq!(first.reset_token(&id), second.reset_token(&id));
    assert_eq!(first.reset_token(&id), key.token(&id));
}
