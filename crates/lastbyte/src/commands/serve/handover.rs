//! `--handover`: the messages of a replacement. [`lastbyte_server::handover`] implements the protocol.

use std::{io, path::Path};

use lastbyte_server::{
    Server, Settings,
    handover::{Successor, Takeover},
};

use crate::failure::Failure;

/// The sockets of the server that runs, if there is one.
pub(super) fn begin(path: &Path, settings: &mut Settings) -> Result<Option<Takeover>, Failure> {
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
