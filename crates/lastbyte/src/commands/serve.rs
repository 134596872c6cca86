//! `lastbyte serve`: serves a directory, objects by size, or an upstream server over HTTP/1.1, 2 and 3.
//!
//! Owns options, files and signals, and the messages to the operator. `lastbyte_server` does the serving.

#![expect(
    clippy::disallowed_methods,
    reason = "the environment is read where arguments are"
)]

#[cfg(feature = "acme")]
mod acme;
mod activation;
mod arguments;
mod certificates;
mod config;
pub(super) mod descriptors;
mod handler;
mod handover;
mod kernel;
mod ramp;
mod replay;
mod route;
mod simulated;

use std::{
    cell::RefCell,
    ffi::OsString,
    fmt::Write as _,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use lastbyte_congestion::{Registry, Spec, Time};
use lastbyte_driver::{AeadChoice, Clock};
use lastbyte_http3 as http3;
use lastbyte_quic::{
    cid::QuicLbConfig,
    connection::Config,
    crypto::AeadProvider,
    endpoint::{RetryBalancers, RetryPolicy},
    path::MtuConfig,
    stream::WindowBudget,
    trace::Trace,
};
use lastbyte_record::qlog::{Header, Qlog};
use lastbyte_scenario as scenario;
use lastbyte_server::{
    Arm, Arms, Identity, LogWriter, Server, Settings,
    access::AccessLog,
    challenges::Challenges,
    handover::Successor,
    log::{LogSettings, LogThread},
    server::Report,
};
use lastbyte_udp::{Steering, socket::loopback};
use lastbyte_units::SipHash;
use lastbyte_wire::Side;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
    time::{Instant, MissedTickBehavior, interval_at},
};

pub(crate) use self::{arguments::Arguments, simulated::Simulated};
use self::{
    arguments::Retry,
    certificates::{CertificateFiles, Look},
    config::Effective,
    ramp::{Ramp, Ramping},
};
use crate::{
    commands::{
        experiment_file::{self, FOUR_ARMS, Published},
        fleet_file::FleetFile,
        values,
    },
    failure::Failure,
    files,
    jobs::ONE_SIGNAL,
    terminal::{self, notice, warn_if_exposed},
};

/// Serves until SIGINT or SIGTERM.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    // While there is only one thread: this changes the environment.
    let inherited = activation::take()?;
    let (loaded, mut options) = load(arguments)?;
    let arguments = &loaded;
    let mut one_for_all = arguments.workers.is_none() && inherited.udp_count() == 1;
    let has_passed_sockets = inherited.udp_count() > 0;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("cannot start: {error}")))?;
    // Before anything else: a signal that arrives during startup must not be lost.
    let mut signals = {
        let _inside = runtime.enter();
        Signals::listen()
            .map_err(|error| Failure::Run(format!("cannot listen for signals: {error}")))?
    };
    let descriptors = descriptors::raise();
    let aead = arguments.aead.choose();
    let mut certificates = CertificateFiles::read(arguments)?;
    let identities = certificates.identities();
    let ramp = Ramp::started(arguments, registry, None)?;
    let specs = (registry, ramp.as_ref());
    let mut settings = settings(arguments, identities, descriptors, specs, aead.provider)?;
    let config_hash = config_hash(arguments, &options, ramp.as_ref())?;
    settings.inherited = inherited;
    let first = settings.identities.first();
    let hash = first.and_then(Identity::public_key_hash);
    Server::check(&settings).map_err(Failure::usage)?;
    check_listeners(arguments)?;
    warn_of_dates(&certificates);
    kernel::warn(arguments);
    if arguments.check {
        check_logs(arguments)?;
        notice("configuration OK");
        return Ok(ExitCode::SUCCESS);
    }
    let mut takeover = None;
    if let Some(path) = &arguments.handover {
        settings.hands_over = true;
        takeover = handover::begin(path, &mut settings)?;
        one_for_all &= takeover.is_none();
    }
    limit_connections(&mut settings, descriptors);
    settings.arms = settings.arms.with_config_hash(&config_hash);
    let logs = start_logs(arguments, &mut settings)?;
    let challenges = (!arguments.acme.is_empty()).then(Challenges::default);
    settings.challenges.clone_from(&challenges);
    if let Some(takeover) = &takeover {
        handover::stop_predecessor(takeover)?;
    }
    let windows = settings.window_budget.clone();
    let mut server = Server::start(settings).map_err(Failure::run)?;
    let mut successor = handover::listen(arguments.handover.as_deref(), &mut server)?;
    if let Some(takeover) = takeover {
        handover::finish(takeover)?;
        if !has_passed_sockets {
            handover::warn_of_addresses(arguments, &server);
        }
    }
    if one_for_all && server.workers() == 1 {
        notice(ONE_WORKER);
    }
    #[cfg(feature = "acme")]
    if let Some(challenges) = challenges {
        acme::start(arguments, &server, challenges)?;
    }
    notice(format!("configuration {config_hash}"));
    let ramping = Ramping::new(ramp);
    show_ramp(ramping.get().as_ref(), &server);
    let in_effect = RefCell::new((arguments.clone(), config_hash));
    notice(greeting(arguments, &server, hash.as_deref(), &aead));

    let check = |new: &Arguments| handler::handler(new, descriptors, aead.provider).map(drop);
    let reloading = |certificates: &mut CertificateFiles| {
        let inputs = (arguments, registry, &windows);
        let (what, new) = reload(inputs, &server, certificates, &mut options, &ramping, check)?;
        in_effect.replace(new);
        Ok(what)
    };
    let decided = |ramp: &Ramp| {
        let (arguments, hash) = &mut *in_effect.borrow_mut();
        apply(
            ramp,
            &server,
            hash,
            arms(arguments, (registry, Some(ramp)), &windows)?,
        );
        Ok(())
    };
    runtime.block_on(until_end(
        &server,
        &mut signals,
        &mut successor,
        &mut certificates,
        reloading,
        (&ramping, decided),
    ));
    // Its place is free for a later process: this one makes no looks while it drains.
    ramping.set(None);
    notice("shutting down");
    let report = runtime.block_on(end(server, arguments.drain, &mut signals))?;
    // Without waiting for a look at large logs.
    runtime.shutdown_background();
    Ok(finish_logs(logs, print_report(&report)))
}

/// Limits TCP connections by the limit of open files.
fn limit_connections(settings: &mut Settings, descriptors: Option<u64>) {
    let wanted = settings.tcp.connections;
    settings.tcp.connections = descriptors::for_tcp(descriptors, wanted);
    // A slightly lower limit is not worth a message.
    let is_much_less = settings.tcp.connections < wanted - wanted / 10;
    if let (true, Some(limit)) = (is_much_less, descriptors) {
        notice(format!(
            "limiting TCP connections to {} (expected {wanted}): the limit of open files is {limit} (`ulimit -n`)",
            settings.tcp.connections
        ));
    }
}

/// Printed if systemd passed one UDP socket and no number of workers was given.
const ONE_WORKER: &str = "HTTP/3 has one worker because one UDP socket was passed; for more, repeat `ListenDatagram=` for each worker and set `ReusePort=yes`";

/// The experiment that is none.
const OFF: &str = "off";

/// The options, with those of the configuration file.
fn load(arguments: &Arguments) -> Result<(Arguments, Effective), Failure> {
    // Behind the binary's name and the command's.
    let command_line: Vec<OsString> = std::env::args_os().skip(2).collect();
    let (loaded, effective) = config::read(arguments.config.as_deref(), &command_line)?;
    loaded.validate()?;
    loaded.validate_certificate()?;
    if let Some(path) = &loaded.handover {
        handover::check(path)?;
    }
    let mut loaded = loaded;
    loaded.experiment.take_if(|name| name == OFF);
    check_inputs(&loaded)?;
    kernel::check(&loaded)?;
    Ok((loaded, effective))
}

/// Returns an error for an input that is a pipe, say: a server that waits for its writer cannot be stopped.
fn check_inputs(arguments: &Arguments) -> Result<(), Failure> {
    let experiment = arguments.experiment.as_deref();
    let experiment = experiment.filter(|name| *name != FOUR_ARMS);
    let files = [
        arguments.acme_ca.as_deref(),
        arguments.ticket_keys.as_deref(),
        arguments.pages.as_deref(),
        arguments.proxy_ca.as_deref(),
        arguments.lb_config.as_deref(),
        experiment.map(Path::new),
    ];
    let mut files = files.into_iter().flatten();
    files.try_for_each(|path| files::check_regular(path).map_err(Failure::Usage))
}

/// The hash of the configuration for the logs, and the epoch of a ramp, or of an experiment that has one.
fn config_hash(
    arguments: &Arguments,
    effective: &Effective,
    ramp: Option<&Ramp>,
) -> Result<String, Failure> {
    let mut epoch = None;
    let mut hashed = effective.hashed();
    // Its content is part of the configuration, too.
    if let Some(path) = arguments
        .experiment
        .as_deref()
        .filter(|name| *name != FOUR_ARMS)
    {
        let text = files::read_text(Path::new(path)).map_err(Failure::Usage)?;
        epoch = ramp.map_or_else(|| Published::of(&text).epoch, |ramp| Some(ramp.epoch()));
        hashed.push_str(&text);
    }
    let hash = SipHash::from_bytes(&[0; 16]).hash_2_4(hashed.as_bytes());
    Ok(match epoch {
        Some(epoch) => format!("{hash:016x}-{epoch}"),
        None => format!("{hash:016x}"),
    })
}

/// The settings of the server, except for the files that it writes.
fn settings(
    arguments: &Arguments,
    identities: Vec<Identity>,
    descriptors: Option<u64>,
    specs: (&Registry, Option<&Ramp>),
    aead: AeadProvider,
) -> Result<Settings, Failure> {
    let (handler, upstreams) = handler::handler(arguments, descriptors, aead)?;
    let windows = WindowBudget::new(arguments.buffer_memory);
    let arms = arms(arguments, specs, &windows)?;
    let mut identities = identities.into_iter();
    let first = identities.next();
    let first = first.ok_or_else(|| Failure::Usage("no certificate (expected --cert)".into()))?;
    let mut settings = Settings::new(arguments.listen, first, arms, handler);
    settings.identities.extend(identities);
    settings.upstreams = upstreams;
    settings.versions = arguments.versions();
    settings.plain = arguments.http_listen;
    settings.metrics = arguments.metrics;
    settings.workers = arguments.workers;
    settings.ticket_keys = ticket_keys(arguments)?;
    settings.retry = retry(arguments);
    settings.aead = aead;
    settings.takes_zero_rtt = !arguments.no_0rtt;
    settings.server_id = arguments.server_id;
    (settings.connection_ids, settings.retry_balancers) = balancing(arguments)?;
    settings.host = host_identity();
    settings.quic = arguments.quic_limits();
    settings.interim_http1 = arguments.http1_hints;
    settings.alt_svc = Some(arguments.alt_svc).filter(|age| *age > Duration::ZERO);
    settings.tcp = arguments.tcp_limits();
    settings
        .tcp_congestion
        .clone_from(&arguments.tcp_congestion);
    settings.budget = arguments.budget();
    settings.window_budget = windows;
    settings.http3 = http3_config(arguments);
    Ok(settings)
}

/// When clients must validate their address.
const fn retry(arguments: &Arguments) -> RetryPolicy {
    match arguments.retry {
        Retry::Always => RetryPolicy::Always,
        Retry::Load => RetryPolicy::UnderLoad { handshakes: 500 },
        Retry::Never => RetryPolicy::Never,
    }
}

/// The settings of HTTP/3.
fn http3_config(arguments: &Arguments) -> http3::Config {
    http3::Config {
        field_section_size_max: arguments.head_size,
        limits: http3::Limits {
            stall: Some(arguments.stall_limit()),
            ..http3::Limits::default()
        },
        ..http3::Config::default()
    }
}

/// The layout of connection IDs of `--lb-config`, and the balancers that send Retry packets.
fn balancing(
    arguments: &Arguments,
) -> Result<(Option<QuicLbConfig>, Option<RetryBalancers>), Failure> {
    match (&arguments.lb_config, arguments.server_id) {
        (Some(path), Some(id)) => {
            let file = FleetFile::read(path)?;
            Ok((Some(file.layout_for(id)?), file.fleet.retry))
        }
        _ => Ok((None, None)),
    }
}

/// Bytes that identify this host across restarts, as far as the system provides them.
fn host_identity() -> Vec<u8> {
    ["/etc/machine-id", "/proc/sys/kernel/hostname"]
        .iter()
        .filter_map(|path| files::read(Path::new(path)).ok())
        .collect::<Vec<_>>()
        .concat()
}

/// Returns an error if two listeners have the same address.
fn check_listeners(arguments: &Arguments) -> Result<(), Failure> {
    let versions = arguments.versions();
    // HTTP/3 alone has no listener for TCP.
    let has_tcp = versions.http1 || versions.http2;
    values::check_listeners(&[
        ("--listen", has_tcp.then_some(arguments.listen)),
        ("--http-listen", arguments.http_listen),
        ("--metrics", arguments.metrics),
    ])
}

/// Reloads what can change while connections are open. Everything is validated before anything is applied: `check` does what is
/// needed for a restart with these options.
fn reload(
    (arguments, registry, windows): (&Arguments, &Registry, &WindowBudget),
    server: &Server,
    certificates: &mut CertificateFiles,
    effective: &mut Effective,
    ramping: &Ramping,
    check: impl Fn(&Arguments) -> Result<(), Failure>,
) -> Result<(String, (Arguments, String)), Failure> {
    if let Some(config) = &arguments.config {
        files::check_regular(config).map_err(Failure::Usage)?;
    }
    let (arguments, read) = load(arguments)?;
    check(&arguments)?;
    let mut reloaded = effective.clone();
    let needs_restart = reloaded.reload(&read);
    let mut what = vec!["arms"];
    let before = ramping.get();
    let ramp = Ramp::started(&arguments, registry, before.as_ref())?;
    let arms = arms(&arguments, (registry, ramp.as_ref()), windows)?;
    let config_hash = config_hash(&arguments, &reloaded, ramp.as_ref())?;
    let keys = ticket_keys(&arguments)?;
    let (layout, balancers) = balancing(&arguments)?;
    let invalid = |why| Failure::Usage(format!("--lb-config: {why}"));
    if let Some(layout) = &layout {
        server.check_connection_ids(layout).map_err(invalid)?;
    }
    // A generated certificate is kept.
    if !arguments.self_signed {
        let read = CertificateFiles::read(&arguments)?;
        server
            .set_identities(&read.identities())
            .map_err(Failure::usage)?;
        warn_of_dates(&read);
        *certificates = read;
        what.push("certificate");
    }
    if let Some(keys) = &keys {
        server.set_ticket_keys(keys).map_err(Failure::usage)?;
        what.push("ticket keys");
    }
    if let Some(layout) = &layout
        && server.set_connection_ids(layout).map_err(invalid)?
    {
        what.push("connection IDs");
    }
    server.set_retry_balancers(balancers.as_ref());
    if balancers.is_some() {
        what.push("Retry keys");
    }
    server.set_arms(arms.with_config_hash(&config_hash));
    server.set_upload_window(arguments.tcp_limits().upload_window);
    *effective = reloaded;
    let mut text = format!("{}; configuration {config_hash}", what.join(", "));
    if !needs_restart.is_empty() {
        let _ = write!(text, "; needs a restart: {}", needs_restart.join(", "));
    }
    show_ramp(ramp.as_ref(), server);
    ramping.set(ramp);
    Ok((text, (arguments, config_hash)))
}

/// Gives the arms their shares by a decision. The hash on the lines of the logs gets its number.
fn apply(ramp: &Ramp, server: &Server, hash: &mut String, arms: Arms) {
    let named = ramp.named(hash);
    server.set_ramp(ramp.status());
    server.set_arms(arms.with_config_hash(&named));
    if named != *hash || ramp.has_one_look() {
        notice(ramp.decision().unwrap_or_default());
    }
    *hash = named;
}

/// The decision in effect, for the operator and in the metrics.
fn show_ramp(ramp: Option<&Ramp>, server: &Server) {
    server.set_ramp(ramp.and_then(Ramp::status));
    if let Some(decision) = ramp.and_then(Ramp::decision) {
        notice(decision);
    }
}

/// Warns of certificates that are not valid, or soon will not be.
fn warn_of_dates(certificates: &CertificateFiles) {
    for warning in certificates.warnings(Clock::since_epoch().as_secs()) {
        notice(format!("warning: {warning}"));
    }
}

/// Uses certificates that were written since the last look. Returns whether those in the files can be used, if they changed.
fn renew(certificates: &mut CertificateFiles, server: &Server) -> Option<bool> {
    let result = match certificates.look(Clock::since_epoch().as_secs()) {
        Look::Unchanged => return None,
        Look::Renewed(identities) => server
            .set_identities(&identities)
            .map_err(|error| error.to_string()),
        Look::Restored => Ok(()),
        Look::Failed(why) => Err(why),
    };
    match &result {
        Ok(()) => notice(format!("certificates: {}", certificates.summary())),
        Err(error) => terminal::error(format!(
            "error: {error}\nthe certificate files changed and cannot be used; keeping the current certificates"
        )),
    }
    Some(result.is_ok())
}

/// The request of an operator, by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    ShutDown,
    Reload,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::ShutDown,
            _ = self.terminate.recv() => Request::ShutDown,
            _ = self.hangup.recv() => Request::Reload,
        }
    }
}

/// Warns, reloads, and looks for new certificates until the server is to end: by a signal, a failed worker, or a later process.
async fn until_end(
    server: &Server,
    signals: &mut Signals,
    successor: &mut Option<Successor>,
    certificates: &mut CertificateFiles,
    mut reload: impl FnMut(&mut CertificateFiles) -> Result<String, Failure>,
    (ramping, decided): (&Ramping, impl Fn(&Ramp) -> Result<(), Failure>),
) {
    let mut warns_of_names = true;
    // A renewed certificate does not make a refused configuration valid.
    let mut is_configured = true;
    let mut looks = interval_at(Instant::now() + certificates::PERIOD, certificates::PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let request = tokio::select! {
            request = signals.next() => request,
            _ = looks.tick() => {
                if let Some(are_usable) = renew(certificates, server) {
                    server.record_reload(is_configured && are_usable);
                }
                continue;
            }
            looked = ramping.next() => {
                if let Err(Failure::Usage(why) | Failure::Run(why)) = looked.and_then(|ramp| decided(&ramp)) {
                    terminal::error(format!("error: {why}\nno look at the ramp; keeping the current shares"));
                }
                continue;
            }
            () = handover::taken(successor) => {
                notice("a later process has taken over");
                return;
            }
            worker = server.worker_failed() => {
                notice(format!("error: HTTP/3 worker {worker} failed"));
                Request::ShutDown
            }
            () = server.server_name_refused(), if warns_of_names => {
                notice(NAME_REFUSED);
                warns_of_names = false;
                continue;
            }
        };
        if request == Request::ShutDown {
            // The sockets are closed: new clients go elsewhere.
            if let Some(successor) = successor.take() {
                successor.close();
            }
            return;
        }
        let reloaded = reload(certificates);
        is_configured = reloaded.is_ok();
        server.record_reload(is_configured);
        match reloaded {
            Ok(what) => notice(format!("reloaded: {what}")),
            Err(Failure::Usage(why) | Failure::Run(why)) => terminal::error(format!(
                "error: {why}\nreload failed; keeping the current configuration"
            )),
            Err(Failure::BrokenPipe | Failure::Interrupted) => {}
        }
    }
}

/// Shuts down gracefully; a second signal exits at once, unless it is the first one ([`ONE_SIGNAL`]).
async fn end(server: Server, limit: Duration, signals: &mut Signals) -> Result<Report, Failure> {
    let (sender, report) = oneshot::channel();
    thread::Builder::new()
        .name("shutdown".into())
        .spawn(move || {
            let _ = sender.send(server.shut_down(limit));
        })
        .map_err(|error| Failure::Run(format!("cannot shut down gracefully: {error}")))?;
    let later = Instant::now() + ONE_SIGNAL;
    tokio::pin!(report);
    loop {
        tokio::select! {
            report = &mut report => {
                return report.map_err(|_| Failure::Run("the server failed during shutdown".into()));
            }
            request = signals.next() => {
                if request == Request::ShutDown && Instant::now() > later {
                    std::process::exit(130);
                }
            }
        }
    }
}

/// Prints totals of connections, requests and datagrams.
fn print_report(report: &Report) -> ExitCode {
    let (quic, tcp) = (&report.statistics, &report.tcp);
    let mut text = format!(
        "HTTP/3: {} connections, {} requests ({} as 0-RTT)\n",
        quic.accepted, quic.requests, quic.early_requests
    );
    let _ = writeln!(
        text,
        "HTTP/1.1 and 2: {} connections, {} and {} requests",
        tcp.accepted, tcp.requests_http1, tcp.requests_http2
    );
    let mut code = ExitCode::SUCCESS;
    for (number, worker) in report.workers.iter().enumerate() {
        match worker {
            Ok(counted) => {
                let _ = writeln!(
                    text,
                    "worker {number}: received {} datagrams in {} calls, sent {} in {}; forwarded {} to other workers, dropped {} of them",
                    counted.datagrams_received,
                    counted.receives,
                    counted.datagrams_sent,
                    counted.sends,
                    counted.forwarded,
                    counted.forwards_dropped
                );
            }
            Err(error) => {
                let _ = writeln!(text, "error: worker {number}: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    notice(&text);
    code
}

/// Returns an error if a log cannot be written. None is created.
fn check_logs(arguments: &Arguments) -> Result<(), Failure> {
    let key_log = key_log_path(arguments);
    let logs = [&arguments.log, &arguments.access_log, &key_log];
    let mut paths = logs.into_iter().flatten();
    paths.try_for_each(|path| files::check_appendable(path))
}

/// Opens the files that the server writes.
fn start_logs(
    arguments: &Arguments,
    settings: &mut Settings,
) -> Result<Vec<(LogThread, PathBuf)>, Failure> {
    let mut logs = Vec::new();
    settings.log = start_log(arguments, arguments.log.as_deref(), &mut logs)?;
    let access = start_log(arguments, arguments.access_log.as_deref(), &mut logs)?;
    settings.sites = arguments.sites();
    settings.access = access.map(|writer| {
        AccessLog::new(writer, arguments.access_format()).with_sites(settings.sites.clone())
    });
    settings.key_log = key_log(arguments)?;
    settings.trace = arguments.qlog.as_deref().map(qlogs).transpose()?;
    Ok(logs)
}

fn start_log(
    arguments: &Arguments,
    path: Option<&Path>,
    threads: &mut Vec<(LogThread, PathBuf)>,
) -> Result<Option<LogWriter>, Failure> {
    let Some(path) = path else {
        return Ok(None);
    };
    let settings = LogSettings {
        rotate_at: arguments.log_rotate,
        keep: arguments.log_keep,
        packing: arguments.log_compress,
    };
    let (writer, thread) = lastbyte_server::log::start(path, &settings)
        .map_err(|error| files::cannot_write(path, &error))?;
    threads.push((thread, path.to_owned()));
    Ok(Some(writer))
}

fn ticket_keys(arguments: &Arguments) -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = &arguments.ticket_keys else {
        return Ok(None);
    };
    let keys = files::read(path).map_err(Failure::Usage)?;
    Server::check_ticket_keys(&keys)
        .map_err(|error| Failure::Usage(format!("`{}`: {error}", path.display())))?;
    warn_if_exposed(path);
    Ok(Some(keys))
}

/// Waits until the logs are written. Prints what each has lost, and returns the exit code.
fn finish_logs(logs: Vec<(LogThread, PathBuf)>, mut code: ExitCode) -> ExitCode {
    for (thread, path) in logs {
        if let Some(what) = finish_log(thread, &path) {
            terminal::error(format!("error: {what}"));
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Waits until a log is written. Returns what was lost.
fn finish_log(thread: LogThread, path: &Path) -> Option<String> {
    let (statistics, error) = thread.finish();
    let lost = statistics.dropped + statistics.failed;
    let all = statistics.written + lost;
    let path = path.display();
    match error {
        Some(error) => Some(format!(
            "{lost} of {all} lines could not be written to `{path}`: {error}"
        )),
        None => (lost > 0).then(|| {
            format!("{lost} of {all} lines were dropped: `{path}` could not be written fast enough")
        }),
    }
}

/// The arms, with the experiment's name.
fn arms(
    arguments: &Arguments,
    (registry, ramp): (&Registry, Option<&Ramp>),
    windows: &WindowBudget,
) -> Result<Arms, Failure> {
    let (arms, name) = match ramp {
        Some(ramp) => {
            let (arms, name) = ramp.arms();
            (arms, Some(name))
        }
        None => specs(arguments, registry)?,
    };
    // An arm whose share is 0 has no connections.
    let arms = arms.into_iter().filter(|arm| arm.share != 0.0).map(|arm| {
        let mut config = connection_config(arguments, arm.spec);
        config.streams.window_budget = Some(windows.clone());
        Arm {
            name: arm.name,
            share: arm.share,
            config: Arc::new(config),
        }
    });
    let mut arms = Arms::new(arms.collect()).ok_or_else(|| {
        Failure::Usage("invalid share in the experiment (expected a number above 0)".into())
    })?;
    if arguments.sticky {
        arms = arms.sticky(name.as_deref().unwrap_or_default());
    }
    if let Some(name) = &name {
        arms = arms.of_experiment(name);
    }
    Ok(arms)
}

/// The configuration of connections, without the budget of their windows.
fn connection_config(arguments: &Arguments, spec: Spec) -> Config {
    let mut config = Config::new(spec);
    config.versions.clone_from(&arguments.quic_version);
    // Received data that the handler has not read stays in memory.
    config.streams.connection_window = lastbyte_origin::upload_window(arguments.upload_window);
    config.streams.stream_window = lastbyte_origin::upload_window(arguments.upload_window);
    config.mtu = MtuConfig {
        initial: arguments.initial_mtu,
        maximum: arguments.mtu.max(arguments.initial_mtu),
    };
    config
}

/// The congestion controls: the arms of the experiment and its name, or one arm.
fn specs(
    arguments: &Arguments,
    registry: &Registry,
) -> Result<(Vec<scenario::Arm>, Option<String>), Failure> {
    match &arguments.experiment {
        None => {
            let text = arguments.congestion.clone();
            let spec = registry
                .parse(&text)
                .map_err(|error| Failure::Usage(format!("`congestion`: {error}")))?;
            let arm = scenario::Arm {
                name: text,
                spec,
                share: 1.0,
            };
            Ok((vec![arm], None))
        }
        Some(name) => {
            let experiment = experiment_file::read(Some(Path::new(name)), registry)?;
            Ok((experiment.arms, Some(experiment.name)))
        }
    }
}

type KeyLog = Arc<dyn Fn(&str) + Send + Sync>;

/// The file of `--keylog`, or else the one named by SSLKEYLOGFILE, unless that is empty.
fn key_log_path(arguments: &Arguments) -> Option<PathBuf> {
    if arguments.keylog.is_some() {
        return arguments.keylog.clone();
    }
    let named = std::env::var_os("SSLKEYLOGFILE")?;
    (!named.is_empty()).then(|| named.into())
}

/// The log of TLS secrets, in the file of `--keylog` or SSLKEYLOGFILE.
fn key_log(arguments: &Arguments) -> Result<Option<KeyLog>, Failure> {
    let Some(path) = key_log_path(arguments) else {
        return Ok(None);
    };
    let file = files::append_private(&path)?;
    notice(format!(
        "writing TLS secrets to `{}`: they decrypt all connections",
        path.display()
    ));
    let file = Mutex::new(file);
    Ok(Some(Arc::new(move |line: &str| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed write must not fail the handshake.
        let _ = writeln!(file, "{line}");
    })))
}

type TraceMaker = Arc<dyn Fn(u64, Time) -> Option<Box<dyn Trace>> + Send + Sync>;

/// A client that is refused has an alert only.
const NAME_REFUSED: &str = "warning: a TLS handshake failed, because its server name is not a DNS name, as with a port \
     (reported once; counted in `lastbyte_tcp_handshakes_failed_total`)";

fn qlogs(folder: &Path) -> Result<TraceMaker, Failure> {
    files::create_folder(folder)?;
    notice(format!(
        "writing a qlog file for each connection to `{}`",
        folder.display()
    ));
    let folder = folder.to_owned();
    // Each process numbers its connections from 0, and several write to one directory during a rolling restart.
    let process = Clock::since_epoch().as_millis();
    let has_failed = AtomicBool::new(false);
    Ok(Arc::new(move |number, now| {
        let stem = format!("{process}-{number}_server");
        let file = match files::create_beside(&folder, &stem, "sqlog") {
            Ok((_, file)) => file,
            Err(failure) => {
                if let Failure::Run(why) = failure
                    && !has_failed.swap(true, Ordering::Relaxed)
                {
                    notice(format!("warning: {why} (reported once)"));
                }
                return None;
            }
        };
        let header = Header {
            title: format!("connection {number}"),
            vantage_point: Side::Server,
            group_id: number.to_string(),
        };
        let (qlog, _health) = Qlog::new(&header, now, file);
        Some(Box::new(qlog) as Box<dyn Trace>)
    }))
}

/// The messages at startup. The line `listening on` is the last one: scripts wait for it.
fn greeting(
    arguments: &Arguments,
    server: &Server,
    hash: Option<&str>,
    aead: &AeadChoice,
) -> String {
    let address = server.address();
    let mut text = String::new();
    let mut missing = Vec::new();
    if let Some((capabilities, steering)) = server.capabilities() {
        if capabilities.send_segments == 1 {
            missing.push("segmentation offload (GSO): each datagram takes a system call");
        }
        if capabilities.receive_segments == 1 {
            missing.push("receive offload (GRO)");
        }
        if server.workers() > 1 && steering == Steering::ByAddress {
            missing.push(
                "steering by connection ID: datagrams of migrated clients are forwarded between workers",
            );
        }
    }
    for what in missing {
        let _ = writeln!(text, "no {what}");
    }
    if let Some(hash) = hash.filter(|_| arguments.self_signed) {
        let reached = loopback(address);
        let port = reached.port();
        let has_other = arguments.directory.is_some()
            || arguments.proxy.is_some()
            || !arguments.route.is_empty();
        let path = match arguments {
            Arguments { pages: Some(_), .. } => "0/0",
            Arguments {
                generated: false, ..
            } if has_other => "",
            _ => "1m",
        };
        let _ = write!(
            text,
            "to use the generated certificate:\n  lastbyte get -k https://localhost:{port}/{path} -o /dev/null\n  chromium \
             --origin-to-force-quic-on=localhost:{port} --ignore-certificate-errors-spki-list={hash} \
             '--host-resolver-rules=MAP localhost {}' https://localhost:{port}/\n",
            host(reached)
        );
    }
    if let Some(address) = server.plain_address() {
        let _ = writeln!(text, "redirecting HTTP to HTTPS on {address}");
    }
    if let Some(address) = server.metrics_address() {
        let _ = writeln!(text, "serving metrics on {address}");
    }
    let _ = writeln!(text, "AES-GCM by {aead}");
    let versions = server.versions();
    let count = server.workers();
    let plural = if count == 1 { "" } else { "s" };
    let workers = match count {
        0 => String::new(),
        count => format!(", {count} worker{plural}"),
    };
    let _ = writeln!(text, "listening on {address} ({versions}{workers})");
    text
}

fn host(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}
