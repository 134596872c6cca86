//! Certificates by ACME (RFC 8555): ordered at the first start and before they expire, and written to a folder that
//! [`super::certificates`] watches.
//!
//! A thread of its own does this, so nothing here can delay the server: it answers with the certificate that it has, at
//! first with a generated one. An authority limits failed attempts, so pauses between them grow. Processes that share a
//! folder, as in a rolling restart, take turns by a lock.

use std::{
    convert::Infallible,
    error::Error,
    fmt,
    fs::{DirBuilder, TryLockError},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, BodyWrapper, BytesResponse, ChallengeType,
    HttpClient, Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use lastbyte_client::{Fetch, Head, Listener, Memory, Settings, Trust, Upload};
use lastbyte_driver::Clock;
use lastbyte_quic::connection::Config;
use lastbyte_server::{Identity, Server, challenges::Challenges};
use tokio::{runtime, task, time};

use super::{arguments::Arguments, certificates};
use crate::{
    failure::Failure,
    files,
    terminal::{self, notice},
};

type AnyError = Box<dyn Error + Send + Sync>;

/// Maximum time between two looks at the certificate's age.
const LOOK: Duration = Duration::from_secs(3600);
/// Time after which a process looks again whether another one has ended its order.
const TURN: Duration = Duration::from_secs(30);
/// Limit on an order.
const ORDER: Duration = Duration::from_secs(600);
/// Limit on a request to the authority.
const REQUEST: Duration = Duration::from_secs(60);
/// Largest response of the authority, in bytes.
const RESPONSE_MAX: usize = 1 << 20;
/// The pause after a failed order, and its factor and limit after further ones: four in an hour and a half at most, since
/// authorities refuse names after five failures in an hour.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_FACTOR: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(12 * 3600);
/// How an order is polled.
const POLL: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(120));

/// Orders certificates.
struct Acme {
    names: Vec<String>,
    /// `mailto:` URLs.
    contact: Vec<String>,
    directory: String,
    folder: PathBuf,
    /// Kinds of challenges that the server can answer.
    kinds: Vec<ChallengeType>,
    client: Client,
    challenges: Challenges,
}

/// Starts to order and renew the certificate of the options.
///
/// # Errors
///
/// Returns a failure if the server has no listener that can answer a challenge, the folder cannot be created, or a file of
/// the options cannot be read.
pub(super) fn start(
    arguments: &Arguments,
    server: &Server,
    challenges: Challenges,
) -> Result<(), Failure> {
    let versions = server.versions();
    let over_tls = (versions.http1 || versions.http2).then_some(ChallengeType::TlsAlpn01);
    let plain = server.plain_address().map(|_| ChallengeType::Http01);
    let kinds: Vec<_> = over_tls.into_iter().chain(plain).collect();
    if kinds.is_empty() {
        return Err(Failure::Usage(
            "--acme requires HTTP/1.1 or 2, or --http-listen, to prove control of the names".into(),
        ));
    }
    let folder = certificates::acme_folder(arguments);
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(&folder);
    created.map_err(|error| files::cannot_write(&folder, &error))?;
    let mut settings = Settings::new(Config::new("cubic".parse().map_err(Failure::run)?));
    settings.time_limit = Some(REQUEST);
    if let Some(path) = &arguments.acme_ca {
        settings.trust = Trust::Authorities(files::read(path).map_err(Failure::Usage)?);
    }
    let contact = arguments.acme_contact.iter();
    let acme = Acme {
        names: arguments.acme.clone(),
        contact: contact.map(|email| format!("mailto:{email}")).collect(),
        directory: arguments.acme_directory.clone(),
        folder,
        kinds,
        client: Client(Arc::new(settings)),
        challenges,
    };
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start: {error}")))?;
    // It ends with the process. Files are replaced in one step, so that is possible at any time.
    thread::Builder::new()
        .name("acme".to_owned())
        .spawn(move || runtime.block_on(acme.run()))
        .map_err(|error| Failure::Run(format!("cannot start: {error}")))?;
    Ok(())
}

impl Acme {
    async fn run(self) -> Infallible {
        let mut failures = 0_u32;
        loop {
            let rest = self.rest(Clock::since_epoch());
            if !rest.is_zero() {
                failures = 0;
                time::sleep(rest.min(LOOK)).await;
                continue;
            }
            let pause = match self.turn(failures).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => TURN,
                Err(why) => {
                    let pause = PAUSE.saturating_mul(PAUSE_FACTOR.saturating_pow(failures));
                    let pause = pause.min(PAUSE_MAX);
                    failures += 1;
                    terminal::error(format!(
                        "error: no certificate for {} from {}: {why}\ntrying again in {} minutes",
                        self.names.join(", "),
                        self.directory,
                        pause.as_secs() / 60
                    ));
                    pause
                }
            };
            time::sleep(pause).await;
        }
    }

    /// The time until the certificate is ordered: when a third of its validity is left, or at once if there is none for
    /// these names.
    fn rest(&self, now: Duration) -> Duration {
        let (chain, key) = certificates::acme_files(&self.folder, &self.names);
        let contents = Identity::read(&chain, &key).and_then(|identity| identity.contents());
        let Ok(contents) = contents else {
            return Duration::ZERO;
        };
        let has = |name: &String| {
            contents
                .names
                .iter()
                .any(|own| own.eq_ignore_ascii_case(name))
        };
        if contents.names.len() != self.names.len() || !self.names.iter().all(has) {
            return Duration::ZERO;
        }
        let validity = contents.validity;
        let lifetime = validity.until.saturating_sub(validity.from);
        Duration::from_secs(validity.until - lifetime / 3).saturating_sub(now)
    }

    /// Orders the certificate, unless another process does: whether it did.
    async fn turn(&self, failures: u32) -> Result<bool, AnyError> {
        let lock = files::append_private(&self.folder.join("lock")).map_err(text)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        // Another process may have written it in the meantime.
        if self.rest(Clock::since_epoch()).is_zero() {
            let names = self.names.join(", ");
            notice(format!(
                "ordering a certificate for {names} from {}",
                self.directory
            ));
            // One kind may be blocked on the way: by a firewall, or a proxy that ends TLS.
            let kind = self.kinds.iter().cycle().nth(failures as usize);
            let kind = kind.ok_or("no kind of challenge")?;
            time::timeout(ORDER, self.order(kind)).await??;
            notice(format!(
                "certificate for {names}: written to `{}`",
                self.folder.display()
            ));
        }
        Ok(true)
    }

    async fn order(&self, kind: &ChallengeType) -> Result<(), AnyError> {
        let account = self.account().await?;
        let names = self.names.iter().cloned().map(Identifier::Dns);
        let names: Vec<_> = names.collect();
        let mut order = account.new_order(&NewOrder::new(&names)).await?;
        let mut pending = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let offered = authorization.challenge(kind.clone());
            let mut challenge =
                offered.ok_or_else(|| format!("`{name}` cannot be proven by {kind:?}"))?;
            let proof = challenge.key_authorization();
            let added = self.challenges.add(&name, &challenge.token, proof.as_str());
            pending.push(added?);
            challenge.set_ready().await?;
        }
        let status = order.poll_ready(&POLL).await?;
        if status != OrderStatus::Ready {
            return Err(reason(&mut order).await.into());
        }
        let key = rcgen::KeyPair::generate()?;
        let params = rcgen::CertificateParams::new(self.names.clone())?;
        let request = params.serialize_request(&key)?;
        order.finalize_csr(request.der()).await?;
        let chain = order.poll_certificate(&POLL).await?;
        drop(pending);
        self.write(&chain, &key.serialize_pem())
    }

    /// The account at the authority, which is created once.
    async fn account(&self) -> Result<Account, AnyError> {
        let path = self.folder.join("account.json");
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        if path.exists() {
            let text = files::read_text(&path)?;
            let credentials: AccountCredentials = serde_json::from_str(&text)
                .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
            return Ok(builder.from_credentials(credentials).await?);
        }
        let contact: Vec<&str> = self.contact.iter().map(String::as_str).collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = builder.create(&new, self.directory.clone(), None).await?;
        replace(&path, &serde_json::to_vec(&credentials)?)?;
        Ok(account)
    }

    fn write(&self, chain: &str, key: &str) -> Result<(), AnyError> {
        let (chain_path, key_path) = certificates::acme_files(&self.folder, &self.names);
        let (new_chain, new_key) = (self.folder.join("new.pem"), self.folder.join("new.key"));
        replace(&new_chain, chain.as_bytes())?;
        replace(&new_key, key.as_bytes())?;
        Server::check_identities(&[Identity::read(&new_chain, &new_key)?])?;
        for (from, to) in [(new_key, key_path), (new_chain, chain_path)] {
            files::rename(&from, &to).map_err(text)?;
        }
        Ok(())
    }
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), AnyError> {
    Ok(files::replace(path, bytes).map_err(text)?)
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Run(why) | Failure::Usage(why) => why,
        Failure::BrokenPipe => "broken pipe".to_owned(),
        Failure::Interrupted => "interrupted".to_owned(),
    }
}

/// Why an order is not ready: the problem of the first challenge that has one.
async fn reason(order: &mut Order) -> String {
    let mut authorizations = order.authorizations();
    while let Some(Ok(authorization)) = authorizations.next().await {
        let name = authorization.identifier().to_string();
        let mut problems = authorization.challenges.iter();
        if let Some(problem) = problems.find_map(|challenge| challenge.error.as_ref()) {
            return format!("`{name}`: {problem}");
        }
    }
    "the order is not ready".to_owned()
}

/// Requests to the authority, over this project's own client.
#[derive(Clone)]
struct Client(Arc<Settings>);

impl HttpClient for Client {
    fn request(
        &self,
        request: http::Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, instant_acme::Error>> + Send>> {
        let settings = Arc::clone(&self.0);
        Box::pin(async move {
            let other = |error: AnyError| instant_acme::Error::Other(error);
            let (parts, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            let body = body.to_bytes();
            let fetched = task::spawn_blocking(move || fetch(&settings, &parts, &body)).await;
            let response = fetched.map_err(|error| other(error.into()))?;
            Ok(BytesResponse::from(response.map_err(other)?))
        })
    }
}

fn fetch(
    settings: &Settings,
    parts: &http::request::Parts,
    body: &Bytes,
) -> Result<http::Response<Full<Bytes>>, AnyError> {
    let mut fetch = Fetch::get(parts.uri.to_string().parse()?);
    fetch.method = parts.method.to_string();
    for (name, value) in &parts.headers {
        fetch.fields.push(name.as_str(), value.as_bytes());
    }
    // Authorities ask clients to name themselves (RFC 8555 §6.1).
    let agent = concat!("lastbyte/", env!("CARGO_PKG_VERSION"));
    fetch.fields.push("user-agent", agent);
    if !body.is_empty() {
        fetch.upload = Some(Upload::source(body.to_vec()));
    }
    let mut received = Received::default();
    let memory = Memory::default();
    let report = lastbyte_client::run(settings, &memory, Clock::new(), vec![fetch], &mut received)?;
    let outcome = report.outcomes.first().ok_or("no outcome")?;
    if let Some(failure) = &outcome.failure {
        return Err(failure.to_string().into());
    }
    let mut response = http::Response::builder().status(outcome.status.ok_or("no status")?);
    for (name, value) in &received.fields {
        response = response.header(name, &value[..]);
    }
    Ok(response.body(Full::new(received.body.into()))?)
}

/// A response as it arrives.
#[derive(Default)]
struct Received {
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Listener for Received {
    fn on_head(&mut self, _fetch: usize, head: &Head<'_>) -> io::Result<()> {
        let fields = head.response.fields().iter();
        self.fields = fields
            .map(|field| (field.name.to_owned(), field.value.to_owned()))
            .collect();
        Ok(())
    }

    fn on_body(&mut self, _fetch: usize, bytes: &[u8]) -> io::Result<()> {
        if self.body.len() + bytes.len() > RESPONSE_MAX {
            let why = format!("a response of more than {RESPONSE_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.body.extend_from_slice(bytes);
        Ok(())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
