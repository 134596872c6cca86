//! Redirects (RFC 9110 §15.4): the request that follows a redirect, by the same rules as curl's `--location`.

use lastbyte_http3::Fields;

use crate::{
    failure::Failure,
    fetch::{Fetch, Upload},
    url::Origin,
};

#[cfg(test)]
mod tests;

/// The most redirects of a fetch.
const REDIRECTS_MAX: u32 = 50;
/// Fields with credentials, which are not sent to another origin.
const SECRETS: [&str; 2] = ["authorization", "cookie"];

/// The request that follows a redirect; `None` if the response is not a redirect, or redirects are not followed. `first` is
/// the origin of the first request, and `redirects` the number of redirects followed so far.
///
/// # Errors
///
/// Returns [`Failure::Redirects`] if the limit is reached, [`Failure::Scheme`] or [`Failure::Url`] if `location` cannot be
/// fetched, and [`Failure::Rewind`] if the request body cannot be sent again.
pub(crate) fn next(
    fetch: &Fetch,
    first: &Origin,
    status: u16,
    location: Option<&[u8]>,
    redirects: u32,
) -> Result<Option<Fetch>, Failure> {
    let Some(location) = location.filter(|_| fetch.follows_redirects) else {
        return Ok(None);
    };
    let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
    // An empty reference would be the same URL again.
    if !is_redirect || location.trim_ascii().is_empty() {
        return Ok(None);
    }
    if redirects >= REDIRECTS_MAX {
        return Err(Failure::Redirects(REDIRECTS_MAX));
    }
    let mut url = fetch.url.join_field(location).map_err(|error| {
        let location = String::from_utf8_lossy(location);
        let what = format!("invalid redirect to `{}`: {error}", location.escape_debug());
        match error {
            crate::url::UrlError::Scheme(_) => Failure::Scheme(what),
            _ => Failure::Url(what),
        }
    })?;
    let mut next = fetch.clone();
    let is_first = url.origin() == first;
    if url.credentials().is_none()
        && is_first
        && let Some(credentials) = fetch.url.credentials()
    {
        url = url.with_credentials(credentials);
    }
    if !is_first {
        next.fields = without(&next.fields, &[&SECRETS[..], &["host"]].concat());
    }
    next.url = url;
    let becomes_get = match status {
        301 | 302 => fetch.method == "POST",
        303 => !matches!(&*fetch.method, "GET" | "HEAD"),
        _ => false,
    };
    if becomes_get
        || (fetch.is_method_fixed && fetch.upload.is_some() && matches!(status, 301..=303))
    {
        if !fetch.is_method_fixed {
            "GET".clone_into(&mut next.method);
        }
        next.upload = None;
        let of_content = [
            "content-type",
            "content-length",
            "content-encoding",
            "expect",
        ];
        next.fields = without(&next.fields, &of_content);
    } else if matches!(next.upload, Some(Upload::Stream(_))) {
        return Err(Failure::Rewind);
    }
    Ok(Some(next))
}

fn without(fields: &Fields, names: &[&str]) -> Fields {
    let mut kept = Fields::new();
    for line in fields {
        if names.contains(&line.name) {
            continue;
        }
        if line.is_sensitive {
            kept.push_sensitive(line.name, line.value);
        } else {
            kept.push(line.name, line.value);
        }
    }
    kept
}
