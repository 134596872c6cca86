//! Secrets for debuggers: lines in the NSS key log format, which Wireshark reads.
//!
//! Owns: how a line looks. Never: decides whether there is a log, or where it goes: `SSLKEYLOGFILE` is read at the edge,
//! by whoever has leave to read the environment and to open files, and what it names is handed in as a function.
//!
//! QUIC has no secrets of its own: packet protection keys follow from the TLS secrets (RFC 9001 §5.1), so these are all.

use std::fmt::{self, Write as _};

#[cfg(test)]
mod tests;

/// A key log that hands each line, without its end, to a function: `Arc::new(KeyLogLines(…))` goes into `key_log` of
/// [`rustls::ClientConfig`] and [`rustls::ServerConfig`]. With these lines, the connections can be decrypted.
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
