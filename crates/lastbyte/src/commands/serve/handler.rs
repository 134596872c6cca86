//! The handler of requests: the site, pages of a corpus, upstream servers and sinks, by route.
//!
//! Owns the share of each in the process's files and connections.

use std::{cell::RefCell, fmt, num::NonZeroUsize, path::Path, sync::Arc, thread};

use lastbyte_quic::crypto::AeadProvider;
use lastbyte_server::{
    Handler, Site,
    proxy::{Proxy, Upstream, UpstreamCounts},
    routes::{Hints, Place, Routes},
    server_timing::ServerTiming,
    sink::{Sink, UPLOAD_LEN_MAX},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::{arguments::Arguments, descriptors, replay::Replay, route::Target};
use crate::{failure::Failure, files, terminal::notice};

/// The handler of all requests, and the counters of the upstream servers behind it.
pub(super) fn handler(
    arguments: &Arguments,
    descriptors: Option<u64>,
    aead: AeadProvider,
) -> Result<(Arc<dyn Handler>, Vec<UpstreamCounts>), Failure> {
    let parts = Parts {
        arguments,
        descriptors,
        aead,
        directories: arguments.directories().count(),
        upstreams: arguments.upstreams().count(),
        counts: RefCell::default(),
    };
    let mut handler: Arc<dyn Handler> = match (&arguments.proxy, &arguments.pages) {
        (Some(upstream), _) => parts.proxy(upstream, None)?,
        (None, Some(corpus)) => {
            let port = arguments.listen.port();
            let mut replay = Replay::open(corpus, port, arguments.header.clone())?;
            notice(replay.notice());
            let hints = replay.take_hints();
            let replay: Arc<dyn Handler> = Arc::new(replay);
            if arguments.early_hints {
                Arc::new(Hints::new(hints, replay))
            } else {
                replay
            }
        }
        (None, None) => parts.site(
            arguments.directory.as_deref(),
            arguments.generated || (arguments.directory.is_none() && arguments.route.is_empty()),
        )?,
    };
    if !arguments.route.is_empty() {
        let routes = arguments.route.iter().map(|route| {
            let handler = match &route.target {
                Target::Directory(path) => parts.site(Some(path), false)?,
                Target::Upstream(upstream) => parts.proxy(upstream, Some(&route.place))?,
                Target::Generated => parts.site(None, true)?,
                Target::Sink => Arc::new(Sink::new(UPLOAD_LEN_MAX)),
            };
            Ok((route.place.clone(), handler))
        });
        handler = Arc::new(Routes::new(
            routes.collect::<Result<_, Failure>>()?,
            handler,
        ));
    }
    if !arguments.hint.is_empty() {
        handler = Arc::new(Hints::new(arguments.hint.iter().cloned(), handler));
    }
    if let Some(asks) = &arguments.server_timing {
        handler = Arc::new(ServerTiming::new(asks.clone(), handler));
    }
    Ok((handler, parts.counts.into_inner()))
}

fn cannot_start(error: impl fmt::Display) -> Failure {
    Failure::Run(format!("cannot start: {error}"))
}

/// State shared by the handlers.
struct Parts<'a> {
    arguments: &'a Arguments,
    descriptors: Option<u64>,
    aead: AeadProvider,
    directories: usize,
    upstreams: usize,
    /// Of the proxies so far.
    counts: RefCell<Vec<UpstreamCounts>>,
}

impl Parts<'_> {
    /// The servers of a route, or of `--proxy`.
    fn proxy(
        &self,
        upstream: &Upstream,
        place: Option<&Place>,
    ) -> Result<Arc<dyn Handler>, Failure> {
        let arguments = self.arguments;
        let tls = if upstream.is_secure {
            Some(proxy_tls(arguments, self.aead)?)
        } else {
            None
        };
        let threads = arguments
            .workers
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get);
        let mut upstream = upstream.clone();
        upstream.takes_underscores = arguments.proxy_underscores;
        upstream.checks = arguments.checks(place);
        let share = self
            .descriptors
            .map(|limit| limit / self.upstreams.max(1) as u64);
        let limits = arguments.proxy_limits(share);
        let proxy = Proxy::new(upstream, tls, limits, threads).map_err(cannot_start)?;
        self.counts.borrow_mut().push(proxy.counts());
        Ok(Arc::new(proxy))
    }

    fn site(&self, directory: Option<&Path>, generates: bool) -> Result<Arc<dyn Handler>, Failure> {
        let arguments = self.arguments;
        let site = match directory {
            None => Site::generated(),
            Some(path) => Site::directory(path).map_err(|error| {
                Failure::Usage(format!("cannot serve `{}`: {error}", path.display()))
            })?,
        };
        let open_files = descriptors::for_files(self.descriptors) / self.directories.max(1);
        let mut site = site
            .with_generated(generates)
            .with_open_files(open_files.max(1))
            .with_file_cache(arguments.file_cache)
            .with_listings(arguments.listing)
            .with_hidden(arguments.hidden);
        for (name, value) in &arguments.header {
            site = site.with_field(name, value);
        }
        Ok(Arc::new(site))
    }
}

/// The TLS configuration for an upstream server: trusted roots and ALPN.
fn proxy_tls(
    arguments: &Arguments,
    aead: AeadProvider,
) -> Result<Arc<rustls::ClientConfig>, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    match arguments.proxy_ca.as_deref() {
        Some(path) => {
            let pem = files::read(path).map_err(Failure::Usage)?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let unfit = |what: &dyn fmt::Display| {
                    Failure::Usage(format!("cannot use `{}`: {what}", path.display()))
                };
                let certificate =
                    certificate.map_err(|_| unfit(&"cut off or damaged (expected PEM)"))?;
                roots.add(certificate).map_err(|error| unfit(&error))?;
            }
            if roots.is_empty() {
                return Err(Failure::Usage(format!(
                    "cannot use `{}`: no certificate found (expected PEM)",
                    path.display()
                )));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = aead.crypto_provider();
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(Failure::run)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if arguments.has_proxy_http2() {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(Arc::new(config))
}
