//! Packet protection and the handshake (RFC 9001).
//!
//! Owns keys, and sealing with them; the handshake of one connection behind the trait [`Session`]; Retry tags, tokens
//! and stateless reset tokens.
//!
//! It reads no clock, no environment and no global source of randomness. Only [`tls`] draws randomness, inside its TLS
//! library, as key exchange requires; [`plain`] is the stand-in that draws none. It does not know CRYPTO frames,
//! retransmission or packet numbers: bytes are passed in order, by [`Space`].
//!
//! | module | holds |
//! |---|---|
//! | [`keys`] | one direction's keys: seal and open in place, mask (RFC 9001 §5) |
//! | [`aead`] | the library that protects packets and TLS records |
//! | [`initial`] | keys from the client's first destination connection ID (RFC 9001 §5.2) |
//! | [`key_update`] | 1-RTT keys, key updates and AEAD usage limits (RFC 9001 §6) |
//! | [`tls`] | TLS 1.3 (RFC 9001 §4, §8), with its key log in [`key_log`] |
//! | [`tickets`] | stateless tickets with 0-RTT, and stored client sessions (RFC 9001 §4.5, §4.6) |
//! | [`hmac`], [`hkdf`], [`kdf_hook`] | key derivation, and what of it is ours to see and to change |
//! | [`traffic`] | 1-RTT keys derived again, for a connection that was idle |
//! | [`plain`] | the same messages without cryptography, for simulators: one seed, the same bytes |
//! | [`retry`], [`token`], [`reset`] | RFC 9001 §5.8, RFC 9000 §8.1, §10.3.2 |
//!
//! # How a connection uses it
//!
//! 1. [`ClientCrypto::start`] or [`ServerCrypto::start`] returns a [`Session`], `initial_keys` the keys of Initial
//!    packets.
//! 2. After the start, and after each [`Session::read_crypto`], it takes the output: bytes with
//!    [`Session::write_crypto`], space by space, and keys with [`Session::next_keys`] until there are none.
//! 3. This continues until [`Session::is_handshaking`] returns false. Tickets follow later, by the same calls in
//!    [`Space::Application`].
//!
//! # Decisions
//!
//! - *Sessions are trait objects, keys are values.* A handshake takes some twenty calls, so dispatch is negligible. A
//!   packet takes two: a key is a well-predicted branch and one virtual call, where a trait object around the TLS
//!   library's trait object would take two.
//! - *Levels are packet types* ([`lastbyte_wire::packet::PacketType`]). Each has its own keys, and there is no other
//!   level (RFC 9001 §4, Table 1).
//! - *Output is pulled, never pushed*, so that a session needs no callbacks, and wrappers can inspect the data.

use std::{borrow::Cow, fmt};

use lastbyte_wire::{
    ConnectionId, Side, TransportError, packet::Version, transport_parameters::TransportParameters,
};

pub(crate) use crate::space::PerSpace;
pub use crate::space::Space;

pub mod aead;
mod hkdf;
pub(crate) mod hmac;
pub mod initial;
mod kdf_hook;
pub mod key_log;
pub mod key_update;
pub mod keys;
pub mod plain;
pub mod reset;
pub mod retry;
#[cfg(test)]
pub(crate) mod testing;
pub mod tickets;
pub mod tls;
pub mod token;
mod traffic;

pub use aead::AeadProvider;
pub use kdf_hook::provider;
pub use key_update::{KeyUpdateErrorKind, OneRttKeys, OneRttOpened};
pub use keys::{
    DirectionalKeys, HeaderKey, Keys, OpenError, Opened, PacketKey, SealError, TAG_LEN,
};

/// Maximum number of handshake bytes a session buffers for one space: a certificate chain of 60 kB and the other
/// messages. A session that exceeds it fails, since only our own configuration can cause that.
pub const CRYPTO_OUT_MAX: usize = 64 * 1024;

/// Keys of an encryption level, which a [`Session`] returns once.
#[derive(Debug)]
pub enum NewKeys {
    /// For 0-RTT packets: a client seals with them, a server opens.
    ZeroRtt(DirectionalKeys),
    /// For Handshake packets.
    Handshake(Keys),
    /// For 1-RTT packets. A server has them before the handshake is complete, and may send with them, but must not open
    /// packets before (RFC 9001 §5.7).
    OneRtt(Box<OneRttKeys>),
}

/// The state of 0-RTT (RFC 9001 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// A client did not offer it. A server was not offered it, or refused: such packets cannot be opened, and are
    /// dropped.
    Unavailable,
    /// The client offered it, and the server has not decided yet. Data may have to be retransmitted.
    Offered,
    /// The server accepted it.
    Accepted,
    /// The server refused it: everything sent in 0-RTT packets counts as not sent (RFC 9001 §4.6.2).
    Rejected,
}

/// The handshake of one connection, and the messages after it.
///
/// After an error a session repeats the error.
pub trait Session: fmt::Debug + Send {
    /// Processes CRYPTO data: in order, without gaps, each byte once.
    ///
    /// # Errors
    ///
    /// Returns [`SessionError`] if the handshake failed, or the data arrived in a space in which none is permitted now
    /// (RFC 9001 §4.1.3). The connection must be closed with [`SessionError::code`].
    fn read_crypto(&mut self, space: Space, data: &[u8]) -> Result<(), SessionError>;

    /// Appends all CRYPTO data to be sent in `space` to `out`, and returns its length, which never exceeds
    /// [`CRYPTO_OUT_MAX`]. There is no data for a space before its keys are available.
    fn write_crypto(&mut self, space: Space, out: &mut Vec<u8>) -> usize;

    /// The next keys, in the order they became available; each once.
    fn next_keys(&mut self) -> Option<NewKeys>;

    /// The version in which the handshake continues. A server's can change once, when it has read the `ClientHello`: to
    /// one of those passed at its start ([`ServerCrypto::start_with`]).
    fn version(&self) -> Version;

    /// Informs a client that the server continues in another version (RFC 9368 §2.3): all further keys are of that
    /// version. Must precede the first byte from the server.
    fn follow(&mut self, version: Version);

    /// Whether the handshake is in progress, that is not *complete* in the sense of RFC 9001 §4.1.1. Whether it is
    /// *confirmed* (§4.1.2) is known to the connection.
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters, encoded (RFC 9001 §8.2). A server has them after the `ClientHello`, though they
    /// are authenticated only when the handshake is complete; a client has them when it is.
    fn peer_parameters(&self) -> Option<&[u8]>;

    /// The server's transport parameters that a client remembers of the connection it resumes (RFC 9000 §7.4.1).
    fn remembered_parameters(&self) -> Option<&[u8]>;

    /// The negotiated application protocol (RFC 9001 §8.1).
    fn alpn(&self) -> Option<&[u8]>;

    /// The server name sent by the client (RFC 6066 §3).
    fn server_name(&self) -> Option<&str>;

    /// The state of 0-RTT.
    fn early_data(&self) -> EarlyData;

    /// Whether an earlier session was resumed: `None` until that is known.
    fn is_resumed(&self) -> Option<bool>;

    /// Number of tickets that a client has received.
    fn tickets_received(&self) -> u32;

    /// At a server: the content of the ticket with which the client resumed a session, if it is one of [`tickets`].
    fn resumed_ticket(&self) -> Option<&tickets::ResumedTicket> {
        None
    }

    /// The name of the cipher suite, once it is negotiated.
    fn cipher_suite(&self) -> Option<&'static str>;

    /// The peer's end-entity certificate, in DER, once received.
    fn peer_certificate(&self) -> Option<&[u8]>;

    /// At a server whose handshake is complete, and whose output and keys were taken: a session with less memory that behaves
    /// the same, replaces this one, and has [`Session::one_rtt_keys`]. `None` if there is none.
    fn established(&mut self) -> Option<Box<dyn Session>> {
        None
    }

    /// At an established server: the 1-RTT keys of the first generation, derived once more.
    fn one_rtt_keys(&self) -> Option<Keys> {
        None
    }
}

/// The source of a client's sessions.
pub trait ClientCrypto: fmt::Debug + Send + Sync {
    /// Whether its sessions can change the version (RFC 9368 §2.3).
    fn can_follow(&self) -> bool;

    /// A client's keys for Initial packets, from the destination connection ID of its first packet, or of a Retry (RFC
    /// 9001 §5.2).
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys;

    /// Starts a handshake with the server of this name, a domain name or an IP address, with these transport
    /// parameters, encoded. The `ClientHello` is available at once.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if the name is invalid, or the configuration does not permit it.
    fn start(
        &self,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError>;
}

/// The source of a server's sessions.
pub trait ServerCrypto: fmt::Debug + Send + Sync {
    /// A server's keys for Initial packets, from the client's destination connection ID.
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys;

    /// Starts a handshake with a client, with these transport parameters, encoded.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if the configuration does not permit it.
    fn start(&self, version: Version, parameters: &[u8]) -> Result<Box<dyn Session>, StartError>;

    /// As [`Self::start`], but continues in the first of the `better` versions that the client lists, with the
    /// parameters that belong to it (RFC 9368 §2.3); otherwise, or if it cannot change versions, in the client's.
    ///
    /// # Errors
    ///
    /// Returns [`StartError`] if the configuration does not permit it.
    fn start_with(
        &self,
        version: Version,
        parameters: &[u8],
        better: Vec<VersionOffer>,
    ) -> Result<Box<dyn Session>, StartError>;
}

/// A version that a server prefers, with its transport parameters for that, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOffer {
    /// The version.
    pub version: Version,
    /// The parameters.
    pub parameters: Vec<u8>,
}

/// The first of these versions that a client's transport parameters list (RFC 9368 §3).
fn best_offer(better: &[VersionOffer], client: &[u8]) -> Option<usize> {
    let client = TransportParameters::decode(client, Side::Client).ok()?;
    let listed = client.version_information?.available;
    better
        .iter()
        .position(|offer| listed.contains(&offer.version.number()))
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct SessionError {
    /// The error code of the close: usually a TLS alert (RFC 9001 §4.8).
    pub code: TransportError,
    /// A description, for logs and for the reason phrase.
    pub reason: Cow<'static, str>,
}

impl SessionError {
    pub(crate) const fn new(code: TransportError, reason: &'static str) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
        }
    }

    /// CRYPTO data arrived in a space in which none is permitted (RFC 9001 §4.1.3).
    pub(crate) fn misplaced(space: Space, expected: Space) -> Self {
        Self::new(
            TransportError::PROTOCOL_VIOLATION,
            if space < expected {
                "handshake data in a packet number space that is done with"
            } else {
                "handshake data in a packet number space that is not open yet"
            },
        )
    }
}

/// Why a handshake cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The server's name is neither a domain name nor an IP address.
    #[error("`{0}` is neither a domain name nor an IP address")]
    ServerName(String),
    /// The configuration does not permit it, for this reason.
    #[error("the configuration does not allow a handshake: {0}")]
    Configuration(String),
}
