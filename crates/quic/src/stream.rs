//! The streams of a connection (RFC 9000 §2, §3, §4).
//!
//! [`Streams`] is the set of all of them. Start with its fields, which are its parts, and `settle`, which keeps them consistent.
//!
//! | file | owns |
//! |---|---|
//! | `incoming` | effects of the peer's frames |
//! | `outgoing` | which frames are written, and in which order |
//! | `fate` | effects of acknowledged and lost frames |
//! | `entry` | one stream: both parts, and its pending frames |
//! | `application` | the application's interface |
//! | `send`, `body`, `source` | the sending part of a stream, its data, sources of data |
//! | `receive`, `assembler` | the receiving part, and out-of-order data |
//! | `state` | the states of both parts, as tables |
//! | `ids` | stream IDs and limits |
//! | `scheduler` | which stream sends next |
//! | `event`, `error`, `config` | events, errors, configuration |
//!
//! This module knows nothing of packets, keys or timers, reads no clock, never panics because of a peer, and holds no
//! unbounded queue.
//!
//! Decisions:
//!
//! - Live streams are in one ordered map, so that a lookup is O(log n) and the order is the same in each run. A stream
//!   is in the map until both parts are in a terminal state (§3.1, §3.2) and its events are taken. Nothing is kept of
//!   finished streams: a stream that was opened and is not in the map is finished, and frames for it are ignored.
//! - `MAX_STREAMS` increases as streams leave the map, so that a peer that opens and resets streams faster than the
//!   application processes them is stopped by its own limit.
//! - Each pending frame is a bit in the set of its stream; a stream with such bits is in a queue once. The content of a
//!   frame is decided only when it is written, so a lost frame only sets its bit again.

mod application;
mod assembler;
mod body;
mod config;
mod entry;
mod error;
mod event;
mod fate;
mod ids;
mod incoming;
mod outgoing;
mod ranges;
mod receive;
mod scheduler;
mod send;
mod source;
mod state;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use lastbyte_congestion::Time;
use lastbyte_wire::{Direction, Side, StreamId, transport_parameters::TransportParameters};

use crate::flow::{ReceiveWindow, SendCredit, WindowShare};

#[doc(inline)]
pub use crate::flow::{WindowBudget, WindowSize};
pub use application::Read;
pub use config::{Config, Statistics};
pub use error::{ReadError, StreamError, UnknownStream, WriteError};
pub use event::StreamEvent;
pub use receive::{KeepAll, StreamSink};
pub use scheduler::{Class, Place, Priority, Scheduler};
pub use source::{Source, SourceError};
pub use state::{ReceiveState, SendState};

use assembler::RingPool;
use entry::{ControlSet, Stream};
use event::EventQueue;
use ids::{LocalStreams, PeerStreams, PerDirection};
use receive::ReceivePart;
use send::SendPart;

/// Before the first RTT sample (RFC 9002 §6.2.2).
const RTT_INITIAL: Duration = Duration::from_millis(333);

/// The progress of a stream in both directions, for an application that gives up on peers that neither read nor send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of ours that the peer has acknowledged without a gap.
    pub acked: u64,
    /// Bytes of ours before the first one that was never sent, also of a stream that is reset.
    pub sent: u64,
    /// Bytes that the application has passed to be sent.
    pub end: u64,
    /// Whether any of them, or the end of the stream, is unacknowledged.
    pub is_outstanding: bool,
    /// Whether the peer's limit for this stream blocks some of them (RFC 9000 §4.1).
    pub is_blocked: bool,
    /// Bytes buffered, excluding sources.
    pub buffered: usize,
    /// One more than the highest offset received from the peer.
    pub received: u64,
    /// Whether the peer's data is incomplete, and everything received in order was read: the peer must send next.
    pub awaits_peer: bool,
}

/// Initial flow-control limits of a new stream, from the peer's transport parameters (RFC 9000 §18.2).
#[derive(Clone, Copy, Debug, Default)]
struct InitialLimits {
    /// On a bidirectional stream that the peer opens.
    peer_bidirectional: u64,
    /// On a bidirectional stream that we open.
    local_bidirectional: u64,
    /// On a unidirectional stream that we open.
    unidirectional: u64,
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    config: Config,
    live: BTreeMap<StreamId, Box<Stream>>,
    local: PerDirection<LocalStreams>,
    peer: PerDirection<PeerStreams>,
    initial_limits: InitialLimits,
    /// Connection-level limit of what we send.
    credit: SendCredit,
    /// Connection-level limit of what the peer sends.
    window: ReceiveWindow,
    /// What the window has of the budget, which bounds the windows of the streams as well: their sum.
    window_share: Option<WindowShare>,
    queues: Queues,
    rings: RingPool,
    rtt: Duration,
    statistics: Statistics,
}

impl Streams {
    /// No streams, and no permission to open one until the peer's transport parameters are known.
    #[must_use]
    pub fn new(side: Side, config: Config) -> Self {
        let bidirectional = config.bidirectional_streams.min(Config::STREAMS_MAX);
        let unidirectional = config.unidirectional_streams.min(Config::STREAMS_MAX);
        Self {
            side,
            live: BTreeMap::new(),
            local: PerDirection::default(),
            peer: PerDirection::new(
                PeerStreams::new(bidirectional),
                PeerStreams::new(unidirectional),
            ),
            initial_limits: InitialLimits::default(),
            credit: SendCredit::new(0),
            window: ReceiveWindow::new(config.connection_window),
            window_share: config.window_budget.clone().map(WindowShare::new),
            queues: Queues::default(),
            rings: RingPool::default(),
            rtt: RTT_INITIAL,
            statistics: Statistics::default(),
            config,
        }
    }

    /// Sets the path's round-trip time, by which the windows are tuned. 333 ms before the first call.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Applies the peer's transport parameters: remembered ones, for 0-RTT (RFC 9000 §7.4.1), or those of the
    /// handshake. Limits only increase. After [`Streams::on_zero_rtt_rejected`] the new ones must be passed.
    pub fn on_peer_parameters(&mut self, parameters: &TransportParameters) {
        let limits = &mut self.initial_limits;
        let raise = |limit: &mut u64, to: u64| *limit = to.max(*limit);
        raise(
            &mut limits.peer_bidirectional,
            parameters.initial_max_stream_data_bidi_local.get(),
        );
        raise(
            &mut limits.local_bidirectional,
            parameters.initial_max_stream_data_bidi_remote.get(),
        );
        raise(
            &mut limits.unidirectional,
            parameters.initial_max_stream_data_uni.get(),
        );
        self.credit.raise(parameters.initial_max_data.get());
        for (direction, limit) in [
            (
                Direction::Bidirectional,
                parameters.initial_max_streams_bidi,
            ),
            (
                Direction::Unidirectional,
                parameters.initial_max_streams_uni,
            ),
        ] {
            if self.local.get_mut(direction).raise(limit) {
                *self.queues.events.available.get_mut(direction) = true;
            }
        }
        self.for_all_live(|streams, id| {
            let limit = streams.initial_limit(id);
            if let Some(send) = streams.send_mut(id) {
                send.credit.raise(limit);
            }
        });
    }

    /// The server rejected 0-RTT and has dropped everything that was sent (RFC 9001 §4.6.2). It is sent again as far as
    /// the new limits permit, which must be passed to [`Streams::on_peer_parameters`] next. Receipts of 0-RTT packets
    /// are void.
    pub fn on_zero_rtt_rejected(&mut self) {
        self.initial_limits = InitialLimits::default();
        self.credit.restart();
        for direction in ids::DIRECTIONS {
            self.local.get_mut(direction).on_zero_rtt_rejected();
        }
        self.for_all_live(|streams, id| {
            let Some(stream) = streams.live.get_mut(&id) else {
                return;
            };
            if let Some(send) = &mut stream.send {
                send.on_zero_rtt_rejected();
                if send.state() == SendState::ResetSent {
                    stream.control.insert(ControlSet::RESET_STREAM);
                }
            }
            if let Some(receive) = &stream.receive
                && receive.stop_to_send().is_some()
            {
                stream.control.insert(ControlSet::STOP_SENDING);
            }
        });
    }

    /// Frees buffers that are empty.
    pub(crate) fn release_memory(&mut self) {
        for stream in self.live.values_mut() {
            if let Some(send) = &mut stream.send {
                send.release_memory();
            }
            if let Some(receive) = &mut stream.receive {
                receive.assembler.release_memory();
            }
        }
        self.rings.clear();
        self.queues.scheduler.release_memory();
        self.queues.control.shrink_to_fit();
        self.queues.events.streams.shrink_to_fit();
    }

    /// Statistics of data sent.
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Number of streams that are open or have pending events.
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Bytes of stream data buffered: written and unacknowledged, or received and unread.
    pub fn buffered(&self) -> usize {
        let of = |stream: &Stream| {
            let sent = stream.send.as_ref().map_or(0, |send| send.body.written());
            let received = stream.receive.as_ref();
            sent + received.map_or(0, |receive| receive.assembler.memory())
        };
        self.live.values().map(|stream| of(stream)).sum()
    }

    /// The progress of both parts of a stream; `None` if it is unknown or finished.
    pub fn progress(&self, id: StreamId) -> Option<Progress> {
        let stream = self.live.get(&id)?;
        let send = stream.send.as_deref();
        let receive = stream.receive.as_deref();
        Some(Progress {
            acked: send.map_or(0, SendPart::acked_to),
            sent: send.map_or(0, SendPart::final_size),
            end: send.map_or(0, |send| send.body.end()),
            is_outstanding: send.is_some_and(SendPart::is_outstanding),
            is_blocked: send.is_some_and(SendPart::is_blocked),
            buffered: send.map_or(0, |send| send.body.written()),
            received: receive.map_or(0, ReceivePart::highest),
            awaits_peer: receive.is_some_and(ReceivePart::awaits_peer),
        })
    }

    /// Connection-level limit of what we send, for logs.
    pub const fn credit(&self) -> &SendCredit {
        &self.credit
    }

    fn send_mut(&mut self, id: StreamId) -> Option<&mut SendPart> {
        self.live.get_mut(&id)?.send.as_deref_mut()
    }

    fn is_local(&self, id: StreamId) -> bool {
        id.initiator() == self.side
    }

    /// Bytes that we may send on a stream before the peer raises the limit.
    fn initial_limit(&self, id: StreamId) -> u64 {
        match (id.direction(), self.is_local(id)) {
            (Direction::Unidirectional, _) => self.initial_limits.unidirectional,
            (Direction::Bidirectional, true) => self.initial_limits.local_bidirectional,
            (Direction::Bidirectional, false) => self.initial_limits.peer_bidirectional,
        }
    }

    /// Whether the peer permits us to use the stream; rejecting 0-RTT revokes that.
    fn is_permitted(&self, id: StreamId) -> bool {
        !self.is_local(id) || id.index() < self.local.get(id.direction()).limit()
    }

    fn create(&mut self, id: StreamId) {
        let is_bidirectional = id.direction() == Direction::Bidirectional;
        let is_local = self.is_local(id);
        let sends = is_bidirectional || is_local;
        let receives = is_bidirectional || !is_local;
        let stream = Stream::new(
            sends.then(|| SendPart::new(self.initial_limit(id))),
            receives.then(|| ReceivePart::new(self.config.stream_window)),
        );
        self.live.insert(id, Box::new(stream));
    }

    /// Calls a function for each live stream, which may settle it.
    fn for_all_live(&mut self, mut act: impl FnMut(&mut Self, StreamId)) {
        let mut next = self.live.first_key_value().map(|(id, _)| *id);
        while let Some(id) = next {
            act(self, id);
            self.settle(id);
            let after = (std::ops::Bound::Excluded(id), std::ops::Bound::Unbounded);
            next = self.live.range(after).next().map(|(id, _)| *id);
        }
    }

    /// Updates all queues after a change of a stream.
    fn settle(&mut self, id: StreamId) {
        let is_permitted = self.is_permitted(id);
        let Some(stream) = self.live.get_mut(&id) else {
            return;
        };
        if self.queues.take_in(id, stream, is_permitted) {
            self.remove(id);
        }
    }

    /// The stream is finished.
    fn remove(&mut self, id: StreamId) {
        self.live.remove(&id);
        if self.is_local(id) {
            return;
        }
        let peer = self.peer.get_mut(id.direction());
        peer.on_finished();
        if id.direction() == Direction::Bidirectional && peer.are_all_finished() {
            // No request is open: an idle connection keeps no rings.
            self.rings.clear();
        }
    }

    /// Returns a stream's released bytes to the connection's window, and updates the queues.
    fn release_and_settle(&mut self, id: StreamId, now: Time) {
        let rtt = self.rtt;
        if let Some(receive) = self
            .live
            .get_mut(&id)
            .and_then(|stream| stream.receive.as_mut())
        {
            let released = receive.release(now, rtt);
            let share = self.window_share.as_mut();
            self.window
                .on_consumed_within(released, now, rtt, |growth| {
                    share.map_or(growth, |share| share.take(growth))
                });
        }
        self.settle(id);
    }
}

/// The queues of all streams.
#[derive(Debug, Default)]
struct Queues {
    scheduler: Scheduler,
    /// Streams with pending frames, each once. A stream that is finished by then is skipped.
    control: VecDeque<StreamId>,
    /// Streams whose new data their own limit blocks.
    blocked: usize,
    events: EventQueue,
}

impl Queues {
    /// Puts a stream into the queues where it belongs. Returns whether it is finished and must be removed.
    fn take_in(&mut self, id: StreamId, stream: &mut Stream, is_permitted: bool) -> bool {
        let class = stream.send.as_deref().and_then(SendPart::class);
        let wanted = class
            .filter(|_| is_permitted)
            .map(|class| (stream.priority, class));
        self.scheduler.place(id, &mut stream.place, wanted);
        let is_blocked = is_permitted && stream.send.as_deref().is_some_and(SendPart::is_blocked);
        if is_blocked != stream.is_blocked {
            stream.is_blocked = is_blocked;
            self.blocked = if is_blocked {
                self.blocked + 1
            } else {
                self.blocked.saturating_sub(1)
            };
        }
        stream.note_control();
        if is_permitted && !stream.control.is_empty() && !stream.control_queued {
            stream.control_queued = true;
            self.control.push_back(id);
        }
        if !stream.events.is_empty() && !stream.events_queued {
            stream.events_queued = true;
            self.events.streams.push_back(id);
        }
        stream.is_over()
    }
}
