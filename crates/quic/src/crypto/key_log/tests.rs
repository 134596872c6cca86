#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::sync::Mutex;

use rustls::KeyLog as _;

use super::*;

#[test]
fn a_line_is_label_random_and_secret_in_hexadecimal() {
    let lines = Mutex::new(Vec::new());
    let log = KeyLogLines(|line: &str| lines.lock().unwrap().push(line.to_owned()));
    assert!(log.will_log("CLIENT_TRAFFIC_SECRET_0"));
    log.log("CLIENT_TRAFFIC_SECRET_0", &[0, 1, 0xfe], &[0xab; 2]);
    assert_eq!(
        *lines.lock().unwrap(),
        ["CLIENT_TRAFFIC_SECRET_0 0001fe abab"]
    );
}
