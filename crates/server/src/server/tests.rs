use super::*;

#[test]
fn rfc9000_10_3_2_resets_outlive_the_process_but_fit_one_server_only() {
    let first = reset_secret(b"a private key", 1);
    assert!(
        first == reset_secret(b"a private key", 1),
        "after a restart"
    );
    assert!(first != reset_secret(b"a private key", 2), "another server");
    assert!(first != reset_secret(b"another private key", 1));
}
