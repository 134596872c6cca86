//! The handshake and the keys it produces (RFC 9001 §4).
//!
//! Owns the session, the version, the keys of every packet type, the handshake stage, and what is needed until
//! confirmation: packets waiting for keys, a client's token, the parameters remembered for 0-RTT. It opens and seals
//! packets. It knows nothing of packets in flight, paths or frames; `advance.rs` applies the consequences for those.
//!
//! | file | holds |
//! |---|---|
//! | `open.rs` | which packets may be opened, and with which keys; packets received before their keys |
//! | `seal.rs` | headers and sealing |
//! | `retry.rs` | Retry and Version Negotiation |
//! | `version.rs` | version changes |

mod open;
mod retry;
mod seal;
mod version;

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    ConnectionId, Side,
    packet::{PacketType, Version},
    transport_parameters::TransportParameters,
};

pub(super) use self::{
    open::{Opened, Unopened},
    retry::Negotiated,
    version::{Choice, better, listed},
};
use super::{
    Config, Fatal,
    peer_parameters::{self, Expected},
    start::HandshakeState,
};
use crate::{
    Stage,
    crypto::{DirectionalKeys, EarlyData, Keys, NewKeys, OneRttKeys, Session},
    crypto_stream::CryptoStream,
    space::{PerSpace, Space, SpaceStates},
};

/// The handshake of a connection and its keys.
pub(super) struct Handshake {
    side: Side,
    version: Version,
    started_at: Time,
    /// The source connection ID of our long headers. All connection IDs that we issue have its length.
    local_id: ConnectionId,
    stage: Stage,
    /// `None` once the handshake is confirmed.
    state: Option<Box<HandshakeState>>,
    session: Box<dyn Session>,
    /// Whether the handshake is confirmed and the session had nothing to send; this holds until CRYPTO data is
    /// received.
    session_is_done: bool,
    /// Whether the session can derive the first 1-RTT keys again.
    restores_keys: bool,
    /// Keys of Initial and Handshake packets.
    keys: PerSpace<Option<Box<Keys>>>,
    /// 0-RTT keys: a client seals with them, a server opens.
    zero_rtt: Option<Box<DirectionalKeys>>,
    /// Until when a server keeps the 0-RTT keys.
    zero_rtt_until: Option<Time>,
    one_rtt: Option<Box<OneRttKeys>>,
    /// Whether buffered packets may have become openable.
    has_new_keys: bool,
    /// Whether the peer has shown that it received our Handshake packets and thus validated our address.
    is_peer_ahead: bool,
}

impl Handshake {
    pub(super) fn new(
        now: Time,
        state: HandshakeState,
        session: Box<dyn Session>,
        initial_keys: Keys,
    ) -> Self {
        Self {
            side: state.offer.side,
            version: state.offer.version,
            started_at: now,
            local_id: state.offer.local_id,
            stage: Stage::Handshaking,
            state: Some(Box::new(state)),
            session,
            session_is_done: false,
            restores_keys: false,
            keys: PerSpace::new(Some(Box::new(initial_keys)), None, None),
            zero_rtt: None,
            zero_rtt_until: None,
            one_rtt: None,
            has_new_keys: false,
            is_peer_ahead: false,
        }
    }

    // ---- questions ------------------------------------------------------------------------------------------------

    /// This side.
    pub(super) const fn side(&self) -> Side {
        self.side
    }

    /// The version in use.
    pub(super) const fn version(&self) -> Version {
        self.version
    }

    /// When the connection started.
    pub(super) const fn started_at(&self) -> Time {
        self.started_at
    }

    /// The handshake stage.
    pub(super) const fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether it is confirmed (RFC 9001 §4.1.2).
    pub(super) fn is_confirmed(&self) -> bool {
        self.stage == Stage::Confirmed
    }

    /// The destination connection ID of the client's first packet; `None` once the handshake is confirmed.
    pub(super) fn original_destination(&self) -> Option<ConnectionId> {
        self.state
            .as_deref()
            .map(|state| state.original_destination)
    }

    /// Our transport parameters; `None` once the handshake is confirmed.
    pub(super) fn parameters(&self, config: &Config) -> Option<TransportParameters> {
        self.state
            .as_deref()
            .map(|state| state.offer.parameters(config))
    }

    /// The session.
    pub(super) fn session(&self) -> &dyn Session {
        &*self.session
    }

    /// The length of the connection IDs that we issue.
    pub(super) fn local_id_len(&self) -> usize {
        self.local_id.len()
    }

    /// Whether there are keys of Initial or Handshake packets.
    pub(super) const fn has_keys(&self, space: Space) -> bool {
        self.keys.get(space).is_some()
    }

    /// Whether only the Application space is left, as it is for most of a connection.
    pub(super) const fn has_one_space(&self) -> bool {
        !self.has_keys(Space::Initial) && !self.has_keys(Space::Handshake)
    }

    /// Whether there are keys to send with that the peer can be expected to have.
    pub(super) fn can_send_in(&self, space: Space) -> bool {
        match space {
            Space::Initial | Space::Handshake => self.has_keys(space),
            Space::Application => self.one_rtt.is_some() || self.is_zero_rtt(),
        }
    }

    /// Whether a client may send 0-RTT now.
    pub(super) fn is_zero_rtt(&self) -> bool {
        self.side == Side::Client && self.zero_rtt.is_some() && self.one_rtt.is_none()
    }

    /// The type of the packets of a space.
    pub(super) const fn packet_type(&self, space: Space) -> PacketType {
        match space {
            Space::Initial => PacketType::Initial,
            Space::Handshake => PacketType::Handshake,
            Space::Application if self.one_rtt.is_some() => PacketType::OneRtt,
            Space::Application => PacketType::ZeroRtt,
        }
    }

    /// The 1-RTT keys.
    pub(super) fn one_rtt(&self) -> Option<&OneRttKeys> {
        self.one_rtt.as_deref()
    }

    /// The 1-RTT keys, mutable. Those of a connection that was idle are derived again.
    #[inline]
    pub(super) fn one_rtt_mut(&mut self) -> Option<&mut OneRttKeys> {
        if self.one_rtt.as_deref().is_some_and(OneRttKeys::is_released) {
            self.restore_keys();
        }
        self.one_rtt.as_deref_mut()
    }

    #[cold]
    fn restore_keys(&mut self) {
        if let (Some(keys), Some(derived)) = (&mut self.one_rtt, self.session.one_rtt_keys()) {
            keys.restore(derived);
        }
    }

    /// Frees the 1-RTT keys if they can be derived again.
    pub(super) fn release_memory(&mut self) {
        if let Some(keys) = self.one_rtt.as_mut().filter(|_| self.restores_keys) {
            keys.release();
        }
    }

    /// Whether the peer has validated our address. A server's address always counts as validated (RFC 9002 §6.2.2.1).
    pub(super) fn is_validated_by_peer(&self) -> bool {
        self.side == Side::Server || self.is_peer_ahead
    }

    // ---- progress -------------------------------------------------------------------------------------------------

    /// CRYPTO data was received.
    pub(super) fn read_crypto(&mut self, space: Space, data: &[u8]) -> Result<(), Fatal> {
        self.session.read_crypto(space, data).map_err(Fatal::from)
    }

    /// Whether the session may have output or new keys without having received CRYPTO data.
    pub(super) const fn may_advance(&self) -> bool {
        !self.session_is_done
    }

    /// Takes the session's output.
    pub(super) fn write_crypto(&mut self, crypto: &mut SpaceStates<CryptoStream>) {
        self.take_version();
        let mut is_done = self.is_confirmed();
        for space in Space::ALL {
            let is_discarded = match space {
                Space::Initial => !self.has_keys(space),
                Space::Handshake => self.is_confirmed(),
                Space::Application => false,
            };
            if is_discarded {
                continue;
            }
            let out = crypto.get_mut(space).outgoing();
            is_done &= self.session.write_crypto(space, out) == 0;
        }
        self.session_is_done = is_done;
    }

    /// Installs the next keys if the session has any, and returns their packet type. `forged` is the number of packets
    /// that failed authentication so far, which counts towards the limit of the 1-RTT keys (RFC 9001 §6.6).
    pub(super) fn install_next_keys(&mut self, forged: u64) -> Option<PacketType> {
        let keys = self.session.next_keys()?;
        self.session_is_done = false;
        self.has_new_keys = true;
        Some(match keys {
            NewKeys::Handshake(keys) => {
                *self.keys.get_mut(Space::Handshake) = Some(Box::new(keys));
                PacketType::Handshake
            }
            NewKeys::OneRtt(mut keys) => {
                let _ = keys.count_forged(forged);
                self.one_rtt = Some(keys);
                PacketType::OneRtt
            }
            NewKeys::ZeroRtt(keys) => {
                self.zero_rtt = Some(Box::new(keys));
                PacketType::ZeroRtt
            }
        })
    }

    /// The server's transport parameters that a client with 0-RTT remembers (RFC 9000 §7.4.1).
    pub(super) fn recall_parameters(&mut self) -> Result<Option<&TransportParameters>, Fatal> {
        let Some(encoded) = self.session.remembered_parameters() else {
            return Ok(None);
        };
        let remembered = peer_parameters::decode(encoded, Side::Server)?.remembered();
        let state = self.state.as_mut();
        Ok(state.map(|state| &*state.remembered.insert(remembered)))
    }

    /// Whether the server has accepted 0-RTT, once known to the client (RFC 9001 §4.6.2).
    pub(super) fn take_early_data_answer(&mut self) -> Option<bool> {
        if self.side != Side::Client || self.zero_rtt.is_none() {
            return None;
        }
        let is_accepted = match self.session.early_data() {
            EarlyData::Offered => return None,
            EarlyData::Accepted => true,
            EarlyData::Rejected | EarlyData::Unavailable => false,
        };
        self.zero_rtt = None;
        if let Some(state) = self.state.as_mut().filter(|_| !is_accepted) {
            state.remembered = None;
        }
        Some(is_accepted)
    }

    /// The peer's encoded transport parameters, once known, with what they are checked against.
    pub(super) fn peer_parameters<'a>(
        &'a self,
        versions: &'a [Version],
    ) -> Option<(&'a [u8], Expected<'a>)> {
        let encoded = self.session.peer_parameters()?;
        let state = self.state.as_deref();
        let client = state.and_then(|state| state.client.as_ref());
        let expected = Expected {
            side: self.side,
            ids: state.and_then(HandshakeState::expected_ids),
            remembered: state.and_then(|state| state.remembered.as_ref()),
            first_version: self.first_version(),
            version: self.version,
            versions,
            was_negotiated: client.is_some_and(|client| client.was_negotiated),
        };
        Some((encoded, expected))
    }

    /// Whether the handshake has just completed (RFC 9001 §4.1.1).
    pub(super) fn complete(&mut self) -> bool {
        if self.stage != Stage::Handshaking || self.session.is_handshaking() {
            return false;
        }
        self.stage = Stage::Complete;
        self.has_new_keys = true;
        if self.side == Side::Client {
            self.zero_rtt = None; // RFC 9001 §4.9.3
        }
        true
    }

    /// Sets the time until which a server opens late 0-RTT packets (RFC 9001 §4.9.3).
    pub(super) const fn keep_zero_rtt_until(&mut self, until: Time) {
        self.zero_rtt_until = Some(until);
    }

    /// Marks the handshake as confirmed (RFC 9001 §4.1.2). Returns how long it took; `None` if it was confirmed
    /// already.
    pub(super) fn confirm(&mut self, now: Time) -> Option<Duration> {
        if self.is_confirmed() {
            return None;
        }
        self.stage = Stage::Confirmed;
        // RFC 9002 §A.8: equivalent to an acknowledgment of a Handshake packet, which may have been lost.
        self.is_peer_ahead = true;
        // Releases state only needed until confirmation.
        self.has_new_keys = true;
        if let Some(keys) = &mut self.one_rtt {
            keys.on_handshake_confirmed();
        }
        if let Some(session) = self.session.established() {
            self.session = session;
            self.restores_keys = true;
        }
        Some(now.since(self.started_at))
    }

    /// Discards the keys of a space (RFC 9001 §4.9). Returns their packet type; `None` if there were none.
    pub(super) fn discard(&mut self, space: Space) -> Option<PacketType> {
        self.keys.get_mut(space).take()?;
        Some(self.packet_type(space))
    }

    /// A packet in this space was acknowledged.
    pub(super) fn on_ack(&mut self, space: Space) {
        self.is_peer_ahead |= space == Space::Handshake;
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    /// When [`Handshake::on_timeout`] is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        let update = self.one_rtt.as_ref().and_then(|keys| keys.next_timeout());
        Time::earlier(update, self.zero_rtt_until)
    }

    /// Handles expired timers.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if let Some(keys) = &mut self.one_rtt {
            keys.on_timeout(now);
        }
        if self.zero_rtt_until.is_some_and(|at| at <= now) {
            self.zero_rtt_until = None;
            self.zero_rtt = None;
        }
    }
}

#[cfg(test)]
mod tests;
