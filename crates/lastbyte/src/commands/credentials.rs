//! Options for the identities of server and client, for the commands that connect.

use std::path::PathBuf;

use clap::Args;
use lastbyte_client::{Identity, Settings, Trust};

use crate::files;

/// The certificates that a client trusts.
#[derive(Args, Clone, Debug)]
pub(crate) struct Authorities {
    /// Do not verify the server's certificate
    ///
    /// The connection can be intercepted by a man in the middle.
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// CA certificates to trust in place of the system's (PEM)
    ///
    /// Beside -k, it is read and has no other effect.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
}

impl Authorities {
    /// Puts them into the settings of a client.
    ///
    /// # Errors
    ///
    /// Returns the text of the error if the file of `--cacert` cannot be read.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<(), String> {
        // A file that cannot be read is an error even where nothing depends on it: its name may be wrong.
        if let Some(path) = &self.cacert {
            settings.trust = Trust::Authorities(files::read(path)?);
        }
        if self.insecure {
            settings.trust = Trust::DangerouslyAcceptAny;
        }
        Ok(())
    }
}

/// The certificates of both ends.
#[derive(Args, Clone, Debug)]
pub(crate) struct Credentials {
    #[command(flatten)]
    pub(crate) authorities: Authorities,
    /// Client certificate (PEM)
    #[arg(short = 'E', long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM), if in another file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Required SHA-256 of the server's public key, in Base64; repeatable
    #[arg(long, value_name = "BASE64", value_parser = pin)]
    pub(crate) pin_sha256: Vec<String>,
}

impl Credentials {
    /// Puts them into the settings of a client.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read: that of `authorities` for `--cacert`, and of `identity` for `--cert` and `--key`.
    pub(crate) fn apply<E>(
        &self,
        settings: &mut Settings,
        authorities: impl Fn(String) -> E,
        identity: impl Fn(String) -> E,
    ) -> Result<(), E> {
        self.authorities.apply(settings).map_err(authorities)?;
        settings.pins.clone_from(&self.pin_sha256);
        if let Some(path) = &self.cert {
            let certificates = files::read(path).map_err(&identity)?;
            let key = match &self.key {
                Some(path) => files::read(path).map_err(&identity)?,
                None => certificates.clone(),
            };
            settings.identity = Some(Identity { certificates, key });
        }
        Ok(())
    }
}

/// Checks a SHA-256 in Base64: 32 bytes are 43 characters and an `=`.
pub(super) fn pin(text: &str) -> Result<String, String> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    let letters = text.strip_suffix('=').unwrap_or_default();
    if letters.len() == 43 && letters.chars().all(is_letter) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "invalid pin `{text}` (expected SHA-256 in Base64: 44 characters, the last is `=`)"
        ))
    }
}
