//! `lastbyte --version`: the version, with the commit where the build script knows it.

use std::{
    io::{Write as _, stdout},
    process::ExitCode,
};

use super::values::Aead;
use crate::failure::Failure;

/// Prints the version and, if `verbose`, the libraries that this machine would use by default.
pub(crate) fn run(verbose: bool) -> Result<ExitCode, Failure> {
    let version = env!("LASTBYTE_VERSION");
    let text = if verbose {
        let aead = Aead::Auto.choose();
        format!(
            "lastbyte {version}\nTLS handshake: aws-lc\nAES-GCM of packets and TLS records: {aead}\n"
        )
    } else {
        format!("lastbyte {version}\n")
    };
    stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Failure::stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}
