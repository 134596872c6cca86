//! The NSS key log format, which Wireshark reads.
//!
//! Owns the format of a line. Whether there is a log, and where it goes, is decided elsewhere: the application reads
//! `SSLKEYLOGFILE`, opens the file, and passes a function.
//!
//! QUIC has no secrets of its own: packet protection keys are derived from the TLS secrets (RFC 9001 §5.1), so these
//! lines are sufficient.

use std::fmt::{self, Write as _};

#[cfg(test)]
mod tests;

/// A key log that passes each line, without its line end, to a function: use `Arc::new(KeyLogLines(…))` as the
/// `key_log` of [`rustls::ClientConfig`] and [`rustls::ServerConfig`]. The lines allow decryption of the connections.
pub struct KeyLogLines<F>(pub F);

impl<F: Fn(&str) + Send + Sync> rustls::KeyLog for KeyLogLines<F> {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = String::from(label);
        for bytes in [client_random, secret] {
            line.push(' ');
            for byte in bytes {
                // Writing to a String cannot fail.
                let _ = write!(line, "{byte:02x}");
            }
        }
        (self.0)(&line);
    }
}

impl<F> fmt::Debug for KeyLogLines<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogLines(..)")
    }
}
