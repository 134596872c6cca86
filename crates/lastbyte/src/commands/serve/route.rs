//! Routes and hints as arguments.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use lastbyte_server::{
    proxy::{PathAndQuery, Upstream, UpstreamError},
    routes::{Place, PlaceError},
};

/// The most routes, and hints.
pub(super) const ROUTES_MAX: usize = 64;

/// `HOST/PATH=TARGET`.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) place: Place,
    pub(super) target: Target,
}

/// The target of a route.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Directory(PathBuf),
    Upstream(Upstream),
    Sink,
    Generated,
}

impl Route {
    /// The upstream servers, if it has some.
    pub(super) const fn upstream(&self) -> Option<&Upstream> {
        match &self.target {
            Target::Upstream(upstream) => Some(upstream),
            Target::Directory(_) | Target::Sink | Target::Generated => None,
        }
    }

    /// The directory, if it is one.
    pub(super) fn directory(&self) -> Option<&Path> {
        match &self.target {
            Target::Directory(path) => Some(path),
            Target::Upstream(_) | Target::Sink | Target::Generated => None,
        }
    }
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, target) = text
            .split_once('=')
            .ok_or("missing `=` (expected `HOST/PATH=TARGET`)")?;
        let place = place
            .parse()
            .map_err(|error: PlaceError| error.to_string())?;
        let target = match target {
            "" => {
                return Err(
                    "no target (expected a directory, a URL, `sink` or `generated`)".to_owned(),
                );
            }
            "sink" => Target::Sink,
            "generated" => Target::Generated,
            url if url.contains("://") || url.starts_with("unix:") => Target::Upstream(
                url.parse()
                    .map_err(|error: UpstreamError| error.to_string())?,
            ),
            directory => Target::Directory(directory.into()),
        };
        Ok(Self { place, target })
    }
}

/// The path of health checks, and whose: without a place, of all upstream servers that have no other.
pub(super) type HealthPath = (Option<Place>, PathAndQuery);

/// `PATH`, or `PLACE=PATH`.
pub(super) fn health(text: &str) -> Result<HealthPath, String> {
    let (place, path) = match text.split_once("=/") {
        Some((place, _)) => (Some(place), &text[place.len() + 1..]),
        None => (None, text),
    };
    let place = place.map(str::parse).transpose();
    let place = place.map_err(|error: PlaceError| error.to_string())?;
    let parsed = path.parse().ok().filter(|_| path.starts_with('/'));
    let path = parsed.ok_or_else(|| {
        format!(
            "invalid path `{}` (expected `/healthz` or `/api=/healthz`)",
            path.escape_debug()
        )
    })?;
    Ok((place, path))
}

/// `PATH=LINK`.
pub(super) fn hint(text: &str) -> Result<(String, String), String> {
    let (path, link) = text
        .split_once('=')
        .ok_or("missing `=` (expected `/path=</app.css>; rel=preload`)")?;
    if !path.starts_with('/') {
        return Err(format!("invalid path `{path}` (expected a leading `/`)"));
    }
    let is_link = link.starts_with('<') && link.contains('>');
    if !is_link || link.chars().any(|c| !matches!(c, ' '..='~')) {
        return Err(format!(
            "invalid link `{}` (expected `</app.css>; rel=preload`)",
            link.escape_debug()
        ));
    }
    Ok((path.to_owned(), link.to_owned()))
}
