//! TLS over TCP: flights of the handshake, and records.
//!
//! Sizes of flights, when an application may write, and the overhead of records.

use lastbyte_wire::Side;

/// TLS of a connection, or none.
///
/// Sizes are of the TCP payload. Those of flights without certificates are of OpenSSL 3.0 and rustls 0.23 with X25519 and AES-GCM; a
/// client with the post-quantum group X25519MLKEM768 sends 1184 bytes more, and the server 1088.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The flights of the handshake, in order. A side sends its flight when it has received the previous one.
    pub flights: Vec<Flight>,
    /// Number of flights that must be sent or received before the client may write application data.
    pub client_ready: usize,
    /// Number of flights that must be sent or received before the server may write application data.
    pub server_ready: usize,
    /// Overhead of a record, in bytes.
    pub record_overhead: u32,
    /// Application data of a full record, in bytes; 0 without records, so that data is delivered as it arrives.
    pub record_size: u32,
}

/// A flight of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The side that sends it.
    pub from: Side,
    /// Its size, in bytes of TCP payload.
    pub bytes: u32,
}

impl Tls {
    /// Without TLS: data is written as soon as the TCP handshake permits.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            flights: Vec::new(),
            client_ready: 0,
            server_ready: 0,
            record_overhead: 0,
            record_size: 0,
        }
    }

    /// TLS 1.3, full handshake: one round trip (RFC 8446 §2), with a certificate chain of this size in bytes.
    #[must_use]
    pub fn v13(certificate_chain: u32) -> Self {
        Self::of_13(SERVER_HELLO_13 + certificate_chain + SIGNATURE, 3)
    }

    /// TLS 1.3, resumed: one round trip, without certificates (RFC 8446 §2.2).
    #[must_use]
    pub fn v13_resumed() -> Self {
        let mut tls = Self::of_13(SERVER_HELLO_13 + PRE_SHARED_KEY, 3);
        tls.flights[0].bytes += TICKET_13;
        tls
    }

    /// TLS 1.3, resumed, with early data: the client writes at once (RFC 8446 §2.3), and the server after its first flight.
    #[must_use]
    pub fn v13_early() -> Self {
        Self {
            client_ready: 1,
            server_ready: 2,
            ..Self::v13_resumed()
        }
    }

    /// TLS 1.2, full handshake: two round trips (RFC 5246 §7.3), with a certificate chain of this size in bytes.
    #[must_use]
    pub fn v12(certificate_chain: u32) -> Self {
        Self {
            flights: flights(&[
                (Side::Client, CLIENT_HELLO),
                (
                    Side::Server,
                    SERVER_HELLO_12 + certificate_chain + SIGNATURE,
                ),
                (Side::Client, CLIENT_KEY_EXCHANGE),
                (Side::Server, TICKET_12 + FINISHED_12),
            ]),
            client_ready: 4,
            server_ready: 4,
            record_overhead: OVERHEAD_12,
            record_size: RECORD,
        }
    }

    /// TLS 1.2, resumed with a ticket: one round trip (RFC 5077 §3.1).
    #[must_use]
    pub fn v12_resumed() -> Self {
        Self {
            flights: flights(&[
                (Side::Client, CLIENT_HELLO + TICKET_12),
                (Side::Server, SERVER_HELLO_12 + FINISHED_12),
                (Side::Client, FINISHED_12),
            ]),
            client_ready: 3,
            server_ready: 3,
            record_overhead: OVERHEAD_12,
            record_size: RECORD,
        }
    }

    /// TLS 1.3 with this first flight of the server. The last flight holds two tickets.
    fn of_13(server_flight: u32, client_ready: usize) -> Self {
        Self {
            flights: flights(&[
                (Side::Client, CLIENT_HELLO),
                (Side::Server, server_flight),
                (Side::Client, FINISHED_13),
                (Side::Server, 2 * TICKET_13),
            ]),
            client_ready,
            server_ready: 3,
            record_overhead: OVERHEAD_13,
            record_size: RECORD,
        }
    }
}

fn flights(all: &[(Side, u32)]) -> Vec<Flight> {
    let flight = |&(from, bytes)| Flight { from, bytes };
    all.iter().map(flight).collect()
}

/// A `ClientHello` that is padded to 512 bytes (RFC 7685), and its record header.
const CLIENT_HELLO: u32 = 517;
/// `ServerHello` with a key share, `ChangeCipherSpec`, `EncryptedExtensions` and `Finished`, with record overhead.
const SERVER_HELLO_13: u32 = 127 + 6 + 32 + 74;
/// `pre_shared_key` of a `ServerHello` (RFC 8446 §4.2.11).
const PRE_SHARED_KEY: u32 = 6;
/// `CertificateVerify` or the signature in `ServerKeyExchange`, by a P-256 key, and record overhead.
const SIGNATURE: u32 = 120;
/// `ChangeCipherSpec` and `Finished` of TLS 1.3.
const FINISHED_13: u32 = 6 + 74;
/// A `NewSessionTicket` of TLS 1.3, or its ticket in a `ClientHello`.
const TICKET_13: u32 = 255;
/// `ServerHello`, the parameters of `ServerKeyExchange` and `ServerHelloDone` of TLS 1.2.
const SERVER_HELLO_12: u32 = 90 + 50 + 9;
/// `ClientKeyExchange`, `ChangeCipherSpec` and `Finished` of TLS 1.2.
const CLIENT_KEY_EXCHANGE: u32 = 42 + FINISHED_12;
/// `ChangeCipherSpec` and `Finished` of TLS 1.2.
const FINISHED_12: u32 = 6 + 45;
/// A `NewSessionTicket` of TLS 1.2, or its ticket in a `ClientHello`.
const TICKET_12: u32 = 207;
/// RFC 8446 §5.2: header 5, content type 1, tag 16.
const OVERHEAD_13: u32 = 22;
/// RFC 5288 §3: header 5, explicit nonce 8, tag 16.
const OVERHEAD_12: u32 = 29;
/// RFC 8446 §5.1: at most 2^14 bytes.
const RECORD: u32 = 16_384;
