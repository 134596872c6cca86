//! `--handover`: the messages of a replacement. [`lastbyte_server::handover`] implements the protocol.

use std::{io, path::Path};

use lastbyte_server::{
    Server, Settings,
    handover::{self, Successor, Takeover},
};

use super::arguments::Arguments;
use crate::{failure::Failure, files, terminal::notice};

/// Checks that the socket would replace no other file.
pub(super) fn check(path: &Path) -> Result<(), Failure> {
    handover::check(path)
        .map_err(|error| Failure::Usage(format!("--handover: `{}`: {error}", path.display())))
}

/// The sockets of the server that runs, if there is one.
pub(super) fn begin(path: &Path, settings: &mut Settings) -> Result<Option<Takeover>, Failure> {
    files::check_folder_of(path)?;
    let Some(mut takeover) = Takeover::begin(path).map_err(|error| failed(path, &error))? else {
        return Ok(None);
    };
    settings.take_over(&mut takeover).map_err(Failure::usage)?;
    Ok(Some(takeover))
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => " (expected a server of the same user)",
        io::ErrorKind::TimedOut => " (the server that runs does not answer)",
        _ => "",
    };
    Failure::Run(format!(
        "cannot take over by `{}`: {error}{hint}",
        path.display()
    ))
}

pub(super) fn stop_predecessor(takeover: &Takeover) -> Result<(), Failure> {
    takeover
        .stop_predecessor()
        .map_err(|error| Failure::Run(format!("the server that runs does not stop: {error}")))
}

/// Warns of addresses that have no effect, because the sockets are those of the server that ran.
pub(super) fn warn_of_addresses(arguments: &Arguments, server: &Server) {
    for (option, wanted, actual) in [
        ("listen", Some(arguments.listen), Some(server.address())),
        ("http-listen", arguments.http_listen, server.plain_address()),
        ("metrics", arguments.metrics, server.metrics_address()),
    ] {
        if let (Some(wanted), Some(actual)) = (wanted, actual)
            && wanted.port() != 0
            && wanted != actual
        {
            notice(format!(
                "warning: --{option} {wanted} has no effect: the socket that was taken over is that of {actual} (stop the server to change the address)"
            ));
        }
    }
}

/// Waits for a later process from now on.
pub(super) fn listen(
    path: Option<&Path>,
    server: &mut Server,
) -> Result<Option<Successor>, Failure> {
    let (Some(path), Some(offer)) = (path, server.take_offer()) else {
        return Ok(None);
    };
    let successor = Successor::listen(path, offer)
        .map_err(|error| Failure::Run(format!("cannot listen on `{}`: {error}", path.display())))?;
    Ok(Some(successor))
}

pub(super) fn finish(takeover: Takeover) -> Result<(), Failure> {
    takeover
        .finish()
        .map_err(|error| Failure::Run(format!("the server that ran has ended: {error}")))
}

/// Returns when a later process serves.
pub(super) async fn taken(successor: &mut Option<Successor>) {
    match successor {
        Some(successor) => successor.taken().await,
        None => std::future::pending().await,
    }
}
