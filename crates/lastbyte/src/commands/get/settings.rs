//! Conversion of arguments to settings.

use std::{io::Write, path::PathBuf, sync::Arc};

use lastbyte_client::{Family, Settings, Versions};
use lastbyte_congestion::Registry;
use lastbyte_quic::{connection::Config, crypto::key_log::KeyLogLines};

use super::{
    arguments::{Arguments, Http},
    output,
};
use crate::{failure::Failure, files};

/// Servers send tickets a round trip after the handshake.
const TICKET_WAIT: core::time::Duration = core::time::Duration::from_secs(1);

/// Why the run cannot start.
pub(super) enum Refusal {
    Usage(Failure),
    Authorities(String),
    Identity(String),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Usage(failure)
    }
}

pub(super) fn settings(arguments: &Arguments, registry: &Registry) -> Result<Settings, Refusal> {
    let it = &arguments.connection;
    let congestion = registry
        .parse(&it.congestion)
        .map_err(|error| Failure::Usage(format!("--congestion: {error}")))?;
    let mut settings = Settings::new(Config::new(congestion));
    settings.versions = versions(arguments);
    it.credentials
        .apply(&mut settings, Refusal::Authorities, Refusal::Identity)?;
    if let Some(key_log) = key_log(arguments)? {
        settings.key_log = Some(key_log);
    }
    settings.aead = it.aead.choose().provider;
    settings.early_data = it.zero_rtt;
    if it.session_store.is_some() || (it.zero_rtt && it.repeat.get() > 1) {
        settings.ticket_wait = TICKET_WAIT;
    }
    settings.family = match (it.ipv4, it.ipv6) {
        (true, _) => Family::Ipv4,
        (_, true) => Family::Ipv6,
        _ => Family::Any,
    };
    settings.overrides.clone_from(&it.resolve);
    settings.connect_to.clone_from(&it.connect_to);
    settings.dns_servers.clone_from(&it.dns_servers);
    settings.connect_timeout = it.connect_timeout;
    settings.time_limit = it.max_time.filter(|limit| !limit.is_zero());
    settings.tls13 = it.tls_max != "1.2";
    if !settings.tls13 && settings.versions == Versions::Http3 {
        let what = "HTTP/3 requires TLS 1.3: remove `--tls-max 1.2`";
        return Err(Failure::Usage(what.to_owned()).into());
    }
    settings.parallel = it.parallel_max.get();
    if output::to_stdout(arguments) > 1 {
        // One after the other, so that their output is not mixed.
        settings.parallel = 1;
    }
    Ok(settings)
}

fn versions(arguments: &Arguments) -> Versions {
    let it = &arguments.connection;
    match it.http {
        Http::One => Versions::Http11,
        Http::Two => Versions::Http2,
        Http::Three => Versions::Http3,
        Http::Auto if it.http1_1 => Versions::Http11,
        Http::Auto if it.http2 => Versions::Http2,
        Http::Auto if it.http3_only => Versions::Http3,
        Http::Auto => Versions::Any,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "SSLKEYLOGFILE is how such files are named everywhere"
)]
fn key_log(arguments: &Arguments) -> Result<Option<Arc<dyn rustls::KeyLog>>, Failure> {
    let from_environment = std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from);
    let Some(path) = arguments.shown.keylog.clone().or(from_environment) else {
        return Ok(None);
    };
    let file = std::sync::Mutex::new(files::append_private(&path)?);
    Ok(Some(Arc::new(KeyLogLines(move |line: &str| {
        let mut file = file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // A failing key log must not fail a connection.
        let _ = writeln!(file, "{line}");
    }))))
}
