//! `lastbyte --version`: the version, with the commit where the build script knows it.

use std::process::ExitCode;

use super::values::Aead;
use crate::{failure::Failure, terminal::print};

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
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
