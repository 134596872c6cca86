//! Packet protection and the handshake (RFC 9001).
//!
//! What it owns: keys, and what is sealed with them; the handshake of one connection behind the trait [`Session`]; what
//! a server seals for itself, that is Retry tags, tokens and stateless reset tokens.
//!
//! What it never does: read a clock, the environment or a global source of randomness of its own. [`tls`] alone draws
//! randomness, inside its TLS library, as key exchange has to; [`plain`] is the twin that draws none. It does not know
//! CRYPTO frames, retransmission or packet number spaces: bytes come in order and go out in order, by [`Space`].
//!
//! | module | holds |
//! |---|---|
//! | [`keys`] | one direction's keys: seal and open in place, mask (RFC 9001 §5) |
//! | [`aead`] | the library that protects packets and TLS records |
//! | [`initial`] | keys from the client's first destination connection ID (RFC 9001 §5.2) |
//! | [`key_update`] | the 1-RTT keys over their generations, and the limits of their use (RFC 9001 §6) |
//! | [`tls`] | TLS 1.3 (RFC 9001 §4, §8), with its key log in [`key_log`] |
//! | [`tickets`] | stateless tickets with 0-RTT, and client sessions that are kept (RFC 9001 §4.5, §4.6) |
//! | [`hkdf`], [`kdf_hook`] | key derivation, and what of it is ours to see and to change |
//! | [`plain`] | the same shape without cryptography, for simulators: one seed, the same bytes |
//! | [`retry`], [`token`], [`reset`] | RFC 9001 §5.8, RFC 9000 §8.1, §10.3.2 |
//!
//! # How a connection uses it
//!
//! 1. [`ClientCrypto::start`] or [`ServerCrypto::start`] gives a [`Session`], `initial_keys` the keys of Initial
//!    packets.
//! 2. After the start, and after each [`Session::read_crypto`], it takes what there is: bytes to be sent with
//!    [`Session::write_crypto`], space by space, and keys with [`Session::next_keys`] until there are none.
//! 3. Until [`Session::is_handshaking`] says no. Tickets come later, by the same calls in [`Space::Application`].
//!
//! # Decisions
//!
//! - *Sessions are trait objects, keys are values.* A handshake is some twenty calls, so dispatch costs nothing. A
//!   packet is two calls: a key is a branch that predicts well and then one virtual call, where a trait object around
//!   the TLS library's trait object would make two.
//! - *Levels are packet types* ([`lastbyte_wire::packet::PacketType`]). Each has its own keys, and there is no other level (RFC 9001 §4, Table 1).
//! - *Output is pulled, never pushed*, so that a session needs no callbacks, and wrappers can look at what passes.

use std::{borrow::Cow, fmt};

use lastbyte_wire::{
    ConnectionId, Side, TransportError, packet::Version, transport_parameters::TransportParameters,
};

pub(crate) use crate::space::PerSpace;
pub use crate::space::Space;

pub mod aead;
mod hkdf;
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
#[cfg(test)]
pub(crate) mod vectors;

pub use aead::AeadProvider;
pub use kdf_hook::provider;
pub use key_update::{KeyUpdateErrorKind, OneRttKeys, OneRttOpened};
pub use keys::{
    DirectionalKeys, HeaderKey, Keys, OpenError, Opened, PacketKey, SealError, TAG_LEN,
};

/// The most handshake bytes a session holds for one space until they are taken: a certificate chain of 60 kB and what
/// goes with it. A session that would hold more fails, since only our own configuration can make it so.
pub const CRYPTO_OUT_MAX: usize = 64 * 1024;

/// What is to be had of a [`Session`] once: the keys of a level.
#[derive(Debug)]
pub enum NewKeys {
    /// For 0-RTT packets: a client seals with them, a server opens.
    ZeroRtt(DirectionalKeys),
    /// For Handshake packets.
    Handshake(Keys),
    /// For 1-RTT packets. A server has them before the handshake is complete, and may send, but must not open before
    /// (RFC 9001 §5.7).
    OneRtt(Box<OneRttKeys>),
}

/// What has become of 0-RTT (RFC 9001 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyData {
    /// A client did not offer it. A server was not offered it, or refused: its packets cannot be opened, and are
    /// dropped.
    Unavailable,
    /// A client offered it, and the answer is still open. What is sent may have to be sent again.
    Offered,
    /// The server takes it.
    Accepted,
    /// The server does not: all that was sent in 0-RTT packets counts as never sent (RFC 9001 §4.6.2).
    Rejected,
}

/// The handshake of one connection, and what goes on of it afterwards.
///
/// After an error a session is of no more use; it repeats the error.
pub trait Session: fmt::Debug + Send {
    /// Takes CRYPTO data: in order, without gaps, each byte once.
    ///
    /// # Errors
    ///
    /// The handshake failed, or the data came in a space where none is to come any more, or yet (RFC 9001 §4.1.3).
    /// The connection is to be closed with [`SessionError::code`].
    fn read_crypto(&mut self, space: Space, data: &[u8]) -> Result<(), SessionError>;

    /// Moves all CRYPTO data that is to be sent in `space` to the end of `out`, and says how many bytes that was. Never
    /// more than [`CRYPTO_OUT_MAX`]. Before the keys of a space are there, there is no data for it.
    fn write_crypto(&mut self, space: Space, out: &mut Vec<u8>) -> usize;

    /// The next keys, in the order they became available; each once.
    fn next_keys(&mut self) -> Option<NewKeys>;

    /// The version that the handshake goes on in. A server's can change once, when it has read the `ClientHello`: to one of
    /// those that it was started with ([`ServerCrypto::start_with`]).
    fn version(&self) -> Version;

    /// A client learns that the server goes on in another version (RFC 9368 §2.3): all keys from now on are of that. Before
    /// the first byte of the server's is read.
    fn follow(&mut self, version: Version);

    /// Whether the handshake is still going on: not *complete* in the sense of RFC 9001 §4.1.1. Whether it is
    /// *confirmed* (§4.1.2) is for the connection to know.
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters, encoded (RFC 9001 §8.2). A server has them from the `ClientHello` on, though
    /// they are authentic only when the handshake is complete; a client has them when it is.
    fn peer_parameters(&self) -> Option<&[u8]>;

    /// What a client remembers of the server's transport parameters from the connection that it resumes (RFC 9000
    /// §7.4.1).
    fn remembered_parameters(&self) -> Option<&[u8]>;

    /// The application protocol agreed on (RFC 9001 §8.1).
    fn alpn(&self) -> Option<&[u8]>;

    /// The name of the server, as the client says it (RFC 6066 §3).
    fn server_name(&self) -> Option<&str>;

    /// What has become of 0-RTT.
    fn early_data(&self) -> EarlyData;

    /// Whether an earlier session was resumed: `None` until that is known.
    fn is_resumed(&self) -> Option<bool>;

    /// How many tickets a client received.
    fn tickets_received(&self) -> u32;

    /// At a server: what the ticket says by which the client resumed a session, if it is one of [`tickets`].
    fn resumed_ticket(&self) -> Option<&tickets::ResumedTicket> {
        None
    }

    /// At a server: what is to come back by [`Self::resumed_ticket`] when the client resumes this connection. To be said
    /// before the handshake is complete, when tickets are written. Without tickets that hold data it means nothing.
    ///
    /// # Errors
    ///
    /// It is longer than [`tickets::APPLICATION_MAX`].
    fn set_ticket_data(&mut self, data: &[u8]) -> Result<(), tickets::ApplicationDataTooLong> {
        let _ = data;
        Ok(())
    }

    /// The name of the cipher suite, once it is agreed on.
    fn cipher_suite(&self) -> Option<&'static str>;

    /// The peer's own certificate, in DER, once it has shown it.
    fn peer_certificate(&self) -> Option<&[u8]>;

    /// Fills `out` with keying material for uses outside QUIC (RFC 8446 §7.5).
    ///
    /// # Errors
    ///
    /// The handshake is not complete, or more is asked for than can be given.
    fn export_keying_material(
        &self,
        label: &[u8],
        context: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<(), ExportError>;
}

/// Where a client's sessions come from.
pub trait ClientCrypto: fmt::Debug + Send + Sync {
    /// Whether its sessions can go on in another version than they began with (RFC 9368 §2.3).
    fn can_follow(&self) -> bool;

    /// A client's keys for Initial packets, given the destination connection ID of its first one, or of a Retry (RFC
    /// 9001 §5.2).
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys;

    /// Begins a handshake with the server of this name, a domain name or an IP address, with these transport
    /// parameters, encoded. The `ClientHello` is there to be taken at once.
    ///
    /// # Errors
    ///
    /// The name is none, or the configuration does not allow it.
    fn start(
        &self,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError>;
}

/// Where a server's sessions come from.
pub trait ServerCrypto: fmt::Debug + Send + Sync {
    /// A server's keys for Initial packets, given the destination connection ID of the client's.
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys;

    /// Begins a handshake with a client, with these transport parameters, encoded.
    ///
    /// # Errors
    ///
    /// The configuration does not allow it.
    fn start(&self, version: Version, parameters: &[u8]) -> Result<Box<dyn Session>, StartError>;

    /// As [`Self::start`]; goes on in the first of the `better` versions that the client lists, with the parameters that go
    /// with it (RFC 9368 §2.3). Otherwise, or if it cannot change versions, in the one that it begins with.
    ///
    /// # Errors
    ///
    /// The configuration does not allow it.
    fn start_with(
        &self,
        version: Version,
        parameters: &[u8],
        better: Vec<VersionOffer>,
    ) -> Result<Box<dyn Session>, StartError>;
}

/// A version that a server would go on in, and what its transport parameters are then, encoded.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionError {
    /// What to close the connection with: most often a TLS alert (RFC 9001 §4.8).
    pub code: TransportError,
    /// In words, for logs and for the reason phrase.
    pub reason: Cow<'static, str>,
}

impl SessionError {
    pub(crate) const fn new(code: TransportError, reason: &'static str) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
        }
    }

    /// CRYPTO data came where none is to come (RFC 9001 §4.1.3).
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

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for SessionError {}

/// Why a handshake cannot begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// What was given as the server's name is neither a domain name nor an IP address.
    ServerName(String),
    /// The configuration does not allow it, as the text says.
    Configuration(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServerName(name) => {
                write!(f, "`{name}` is neither a domain name nor an IP address")
            }
            Self::Configuration(reason) => {
                write!(f, "the configuration does not allow a handshake: {reason}")
            }
        }
    }
}

impl std::error::Error for StartError {}

/// Keying material cannot be exported: the handshake is not complete, or too much was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportError;

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "cannot export keying material before the handshake is complete, or too much was requested",
        )
    }
}

impl std::error::Error for ExportError {}
