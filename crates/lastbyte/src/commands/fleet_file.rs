//! The configuration file of a load balancer and its servers (TOML).
//!
//! Owns the keys, and errors that name the file and contain no values of it, since it has secrets. `lastbyte lb` reads all of it, `lastbyte serve --lb-config` the layout of
//! connection IDs and the keys of Retry packets. `lastbyte_balancer` validates the values.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
};

use lastbyte_balancer::{Fleet, Server};
use lastbyte_quic::{cid::QuicLbConfig, endpoint::RetryBalancers};
use serde::Deserialize;

use crate::{failure::Failure, files, terminal::warn_if_exposed};

#[cfg(test)]
mod tests;

/// A file that has been read and validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FleetFile {
    name: String,
    pub(super) fleet: Fleet,
    /// The address of each server's health check, in the order of the fleet.
    pub(super) health: Vec<Option<SocketAddr>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Text {
    hash_key: Option<String>,
    retry: Option<RetryText>,
    ids: Vec<IdsText>,
    servers: Vec<ServerText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct IdsText {
    config_id: u8,
    server_id_length: usize,
    nonce_length: usize,
    key: Option<String>,
    #[serde(default)]
    encode_length: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ServerText {
    id: u64,
    address: SocketAddr,
    #[serde(default = "one")]
    weight: u32,
    #[serde(default)]
    drain: bool,
    health: Option<SocketAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RetryText {
    keys: Vec<String>,
    balancers: Vec<IpAddr>,
}

impl RetryText {
    fn parse(self) -> Result<RetryBalancers, String> {
        let secret = |text: &String| {
            let mut secret = [0; 32];
            // The keys of tokens are derived from it.
            secret[..16].copy_from_slice(&key(text)?);
            Ok(secret)
        };
        let secrets: Result<Vec<_>, String> = self.keys.iter().map(secret).collect();
        Ok(RetryBalancers {
            secrets: secrets.map_err(|error| format!("`keys` of `[retry]`: {error}"))?,
            addresses: self.balancers,
        })
    }
}

const fn one() -> u32 {
    1
}

impl FleetFile {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = files::read_text(path).map_err(Failure::Usage)?;
        let file = Self::parse(&path.display().to_string(), &text).map_err(Failure::Usage)?;
        let has_keys = file.fleet.ids.iter().any(|ids| ids.key.is_some());
        // Without any, the hash key is zeros.
        if has_keys || file.fleet.retry.is_some() || file.fleet.hash_key != [0; 16] {
            warn_if_exposed(path);
        }
        Ok(file)
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let invalid = |why: &dyn std::fmt::Display| format!("`{name}`: {why}");
        let text: Text =
            toml::from_str(text).map_err(|error| invalid(&without_values(&error, text)))?;
        let mut ids = Vec::new();
        for layout in text.ids {
            let key = layout.key.as_deref().map(key).transpose();
            ids.push(QuicLbConfig {
                rotation: layout.config_id,
                server_id_len: layout.server_id_length,
                nonce_len: layout.nonce_length,
                key: key.map_err(|error| invalid(&format_args!("`key`: {error}")))?,
                encodes_length: layout.encode_length,
            });
        }
        let hash_key = match text.hash_key.as_deref() {
            Some(text) => {
                key(text).map_err(|error| invalid(&format_args!("`hash-key`: {error}")))?
            }
            // Clients do not know it, unless IDs are not encrypted.
            None => ids.iter().find_map(|ids| ids.key).unwrap_or_default(),
        };
        let retry = text.retry.map(RetryText::parse).transpose();
        let health = text.servers.iter().map(|server| server.health).collect();
        let servers = text.servers.iter().map(|server| Server {
            id: server.id,
            address: server.address,
            weight: server.weight,
            drain: server.drain,
        });
        let fleet = Fleet {
            ids,
            servers: servers.collect(),
            hash_key,
            retry: retry.map_err(|error| invalid(&error))?,
        };
        fleet.validate().map_err(|error| invalid(&error))?;
        Ok(Self {
            name: name.to_owned(),
            fleet,
            health,
        })
    }

    /// The layout of connection IDs that a server issues: the first one.
    pub(super) fn layout_for(&self, server: u64) -> Result<QuicLbConfig, Failure> {
        if !self.fleet.servers.iter().any(|known| known.id == server) {
            let known = self.fleet.servers.iter().map(|known| known.id.to_string());
            return Err(Failure::Usage(format!(
                "--server-id: {server} is not a server of `{}` (expected one of {})",
                self.name,
                known.collect::<Vec<_>>().join(", ")
            )));
        }
        let first = self.fleet.ids.first();
        first
            .cloned()
            .ok_or_else(|| Failure::Usage(format!("`{}`: no [[ids]]", self.name)))
    }
}

/// An error of TOML by its position, without the line and without values, which may be keys.
fn without_values(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let before = before.unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    let message = match message.split_once(", expected ") {
        Some((what, expected)) if what.starts_with("invalid ") => {
            let kind = what.split(':').next().unwrap_or_default();
            format!("{kind} (expected {expected})")
        }
        _ => message,
    };
    // A key that stands where a name should.
    let is_key = |word: &str| word.chars().filter(char::is_ascii_hexdigit).count() > KEY_SHOWN_MAX;
    let words = message.split(' ').map(|word| match word {
        word if is_key(word) => "…",
        word => word,
    });
    let message = words.collect::<Vec<_>>().join(" ");
    format!("line {line}, column {column}: {message}")
}

/// Hexadecimal digits in a word of an error. `server-id-length` has 5.
const KEY_SHOWN_MAX: usize = 7;

/// 16 bytes in hexadecimal.
fn key(text: &str) -> Result<[u8; 16], String> {
    let expected = || "invalid key (expected 32 hexadecimal digits)".to_owned();
    if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(expected());
    }
    let number = u128::from_str_radix(text, 16).map_err(|_| expected())?;
    Ok(number.to_be_bytes())
}
