//! An HKDF that observes the pre-shared keys of tickets, can replace them (RFC 8446 §4.6.1, §7.1; RFC 5869), and can use
//! the labels of another QUIC version (RFC 9001 §5.1, RFC 9369 §3.3.1).
//!
//! Owns cipher suites that are those of another provider except for this HKDF, whose outputs `hkdf.rs` computes. A key is
//! changed only within [`answer`] and [`with_labels`], and kept only within [`record`].
//!
//! Decisions:
//!
//! - *Thread-local state for the duration of one call*: rustls holds an HKDF as a `'static` reference shared by all
//!   connections, so the HKDF cannot know whose key it derives. But it derives within the call that reads the ticket.
//! - *No keys of TLS records*: QUIC protects packets, so the suites derive no such keys, and TLS over TCP fails with them.
//! - *Suites are created once and leaked*, one for each suite of the underlying provider, since rustls requires
//!   `'static`.

use std::{
    cell::{Cell, RefCell},
    iter, ptr,
    sync::{Mutex, PoisonError},
};

use aws_lc_rs::digest::{self, Algorithm};
use lastbyte_wire::packet::Version;
use rustls::{
    CipherSuiteCommon, ConnectionTrafficSecrets, Error, SupportedCipherSuite, Tls13CipherSuite,
    crypto::{
        CryptoProvider,
        cipher::{
            AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter,
            MessageEncrypter, OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm,
            UnsupportedOperationError,
        },
        hash::HashAlgorithm,
        hmac::Tag,
        tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError},
    },
};

use super::{hkdf::Prk, hmac};

/// The common prefix of all labels.
const PREFIX: &[u8] = b"tls13 ";
/// The label of a ticket's key, as encoded in an `HkdfLabel` after its length.
const LABEL: &[u8] = b"tls13 resumption";

/// A key that was derived for a ticket.
pub(super) struct Derived {
    /// The ticket's nonce (RFC 8446 §4.6.1).
    pub(super) nonce: Vec<u8>,
    pub(super) psk: Vec<u8>,
}

enum Mode {
    Closed,
    /// Maximum number of tickets read in one call.
    Recording(Vec<Derived>),
    /// The replacement key, and whether it was used.
    Answering(Vec<u8>, bool),
}

thread_local! {
    static MODE: RefCell<Mode> = const { RefCell::new(Mode::Closed) };
}

/// Removes the hook, also when unwinding.
struct Closing;

impl Drop for Closing {
    fn drop(&mut self) {
        MODE.set(Mode::Closed);
    }
}

/// Calls a function, and returns the ticket keys that were derived in it.
pub(super) fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<Derived>) {
    let _closing = Closing;
    MODE.set(Mode::Recording(Vec::new()));
    let result = work();
    match MODE.replace(Mode::Closed) {
        Mode::Recording(derived) => (result, derived),
        Mode::Closed | Mode::Answering(..) => (result, Vec::new()),
    }
}

/// Calls a function, with this as the key of each ticket whose hash has its length. Returns whether there was one.
pub(super) fn answer<T>(psk: &[u8], work: impl FnOnce() -> T) -> (T, bool) {
    let _closing = Closing;
    MODE.set(Mode::Answering(psk.to_vec(), false));
    let result = work();
    match MODE.replace(Mode::Closed) {
        Mode::Answering(_, was_asked) => (result, was_asked),
        Mode::Closed | Mode::Recording(_) => (result, false),
    }
}

thread_local! {
    static LABELS: Cell<Option<Version>> = const { Cell::new(None) };
}

/// Calls a function in which keys are derived with the labels of this version, whichever rustls requests; `None`: with
/// those that it requests.
pub(super) fn with_labels<T>(version: Option<Version>, work: impl FnOnce() -> T) -> T {
    struct Restoring(Option<Version>);
    impl Drop for Restoring {
        fn drop(&mut self) {
            LABELS.set(self.0);
        }
    }
    let _restoring = Restoring(LABELS.replace(version));
    work()
}

/// The labels of each version, after "tls13 ", by purpose: key, IV, header protection, key update.
const fn labels(version: Version) -> [&'static [u8]; 4] {
    match version {
        Version::V1 => [b"quic key", b"quic iv", b"quic hp", b"quic ku"],
        Version::V2 => [b"quicv2 key", b"quicv2 iv", b"quicv2 hp", b"quicv2 ku"],
    }
}

/// Parses an `HkdfLabel`: a two-byte length, then label and context, each after a length byte.
fn parts(info: &[u8]) -> Option<([u8; 2], &[u8], &[u8])> {
    let [a, b, label_len, rest @ ..] = info else {
        return None;
    };
    let (label, context) = rest.split_at_checked((*label_len).into())?;
    let (context_len, context) = context.split_first()?;
    (context.len() == usize::from(*context_len)).then_some(([*a, *b], label, context))
}

/// The nonce, if the derived key is that of a ticket.
fn ticket_nonce(info: &[u8]) -> Option<&[u8]> {
    let (_, label, context) = parts(info)?;
    (label == LABEL).then_some(context)
}

/// The same `HkdfLabel` with the label of the selected version. `None` if it is not a QUIC label, or no version is
/// selected.
fn relabelled(info: &[&[u8]]) -> Option<Vec<u8>> {
    let version = LABELS.get()?;
    let whole = info.concat();
    let (length, label, context) = parts(&whole)?;
    let asked = label.strip_prefix(PREFIX)?;
    let index = [Version::V1, Version::V2]
        .into_iter()
        .find_map(|known| labels(known).iter().position(|label| *label == asked))?;
    let label = [PREFIX, labels(version)[index]].concat();
    let mut changed = length.to_vec();
    changed.push(label.len() as u8);
    changed.extend(label);
    changed.push(context.len() as u8);
    changed.extend(context);
    Some(changed)
}

/// Whether a key or IV of TLS records is derived. QUIC has none (RFC 9001 §4), but rustls derives them four times in
/// each handshake.
fn is_of_records(info: &[&[u8]]) -> bool {
    let [_, _, prefix, label, ..] = info else {
        return false;
    };
    *prefix == PREFIX && (*label == b"key" || *label == b"iv")
}

/// Replaces the AEAD of TLS records: creates no keys, and neither seals nor opens.
struct NoRecords {
    key_len: usize,
    fips: bool,
}

impl Tls13AeadAlgorithm for NoRecords {
    fn encrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(NoRecordKey)
    }

    fn decrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(NoRecordKey)
    }

    fn key_len(&self) -> usize {
        self.key_len
    }

    fn extract_keys(
        &self,
        _: AeadKey,
        _: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }

    fn fips(&self) -> bool {
        self.fips
    }
}

struct NoRecordKey;

impl MessageEncrypter for NoRecordKey {
    fn encrypt(
        &mut self,
        _: OutboundPlainMessage<'_>,
        _: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len
    }
}

impl MessageDecrypter for NoRecordKey {
    fn decrypt<'a>(
        &mut self,
        _: InboundOpaqueMessage<'a>,
        _: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}

/// Derives keys with this hash.
pub(super) struct HookedHkdf(&'static Algorithm);

struct HookedExpander(Prk);

pub(super) static SHA256: HookedHkdf = HookedHkdf(&digest::SHA256);
pub(super) static SHA384: HookedHkdf = HookedHkdf(&digest::SHA384);

impl Hkdf for HookedHkdf {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        let zeros = [0; OkmBlock::MAX_LEN];
        self.extract_from_secret(salt, &zeros[..self.0.output_len()])
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(HookedExpander(Prk::extract(self.0, salt, secret)))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(HookedExpander(Prk::new(self.0, okm.clone())))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        Tag::new(hmac::sign(self.0, key.as_ref(), iter::once(message)).as_ref())
    }
}

impl HkdfExpander for HookedExpander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        if is_of_records(info) {
            output.fill(0);
            return Ok(());
        }
        match relabelled(info) {
            Some(info) => self.0.expand(&[&info], output),
            None => self.0.expand(info, output),
        }
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        if let Some(info) = relabelled(info) {
            return self.0.expand_block(&[&info]);
        }
        let okm = self.0.expand_block(info);
        MODE.with_borrow_mut(|mode| match mode {
            Mode::Closed => okm,
            Mode::Recording(all) => {
                if let Some(nonce) = ticket_nonce(&info.concat()) {
                    all.push(Derived {
                        nonce: nonce.to_vec(),
                        psk: okm.as_ref().to_vec(),
                    });
                }
                okm
            }
            Mode::Answering(psk, was_asked) => {
                let fits = psk.len() == okm.as_ref().len();
                if !fits || ticket_nonce(&info.concat()).is_none() {
                    return okm;
                }
                *was_asked = true;
                OkmBlock::new(psk)
            }
        })
    }

    fn hash_len(&self) -> usize {
        self.0.block_len()
    }
}

/// A suite, and its replacement with the hook.
struct Hooked {
    base: &'static Tls13CipherSuite,
    hooked: &'static Tls13CipherSuite,
}

static ALL: Mutex<Vec<Hooked>> = Mutex::new(Vec::new());

/// The suite with the hook. `None` if its hash is neither SHA-256 nor SHA-384.
pub(super) fn hooked(base: &'static Tls13CipherSuite) -> Option<&'static Tls13CipherSuite> {
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all
        .iter()
        .find(|known| ptr::eq(known.base, base) || ptr::eq(known.hooked, base));
    if let Some(known) = known {
        return Some(known.hooked);
    }
    let hkdf_provider = match base.common.hash_provider.algorithm() {
        HashAlgorithm::SHA256 => &SHA256,
        HashAlgorithm::SHA384 => &SHA384,
        _ => return None,
    };
    let hooked: &'static Tls13CipherSuite = Box::leak(Box::new(Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: base.common.suite,
            hash_provider: base.common.hash_provider,
            confidentiality_limit: base.common.confidentiality_limit,
        },
        hkdf_provider,
        aead_alg: Box::leak(Box::new(NoRecords {
            key_len: base.aead_alg.key_len(),
            fips: base.aead_alg.fips(),
        })),
        quic: base.quic,
    }));
    all.push(Hooked { base, hooked });
    Some(hooked)
}

/// A provider that behaves like another one except for key derivation, which is aws-lc's, and for the hooks of this module. A
/// configuration built with it can store a client's sessions ([`super::tickets::client`]) and change the QUIC version during
/// the handshake (RFC 9368 §2.3); with any other provider, neither works. It is for QUIC only: TLS over TCP fails with it,
/// since it creates no keys for TLS records.
pub fn provider(base: CryptoProvider) -> CryptoProvider {
    let cipher_suites = base
        .cipher_suites
        .iter()
        .map(|suite| {
            let hooked = suite.tls13().and_then(hooked);
            hooked.map_or(*suite, SupportedCipherSuite::Tls13)
        })
        .collect();
    CryptoProvider {
        cipher_suites,
        ..base
    }
}

/// Whether all TLS 1.3 suites of the provider come from [`provider`].
pub(super) fn is_hooked(provider: &CryptoProvider) -> bool {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let mut suites = provider.cipher_suites.iter();
    suites.all(|suite| {
        suite
            .tls13()
            .is_none_or(|suite| all.iter().any(|known| ptr::eq(known.hooked, suite)))
    })
}
