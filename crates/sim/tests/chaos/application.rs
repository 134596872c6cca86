//! The applications of both ends: requests and responses with predictable bytes.

use std::collections::BTreeMap;

use lastbyte_congestion::Time;
use lastbyte_quic::{
    connection::Connection,
    stream::{ReadError, StreamEvent},
};
use lastbyte_units::mix;
use lastbyte_wire::{Direction, Side, StreamId, VarInt};

use super::plan::{Cut, Plan, StreamPlan};

const CODE: VarInt = VarInt::from_u32(7);

/// One end's view of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    written: u64,
    read: u64,
    is_sent: bool,
    is_received: bool,
}

/// The application of one end.
#[derive(Debug)]
pub(crate) struct Application {
    side: Side,
    seed: u64,
    plans: Vec<StreamPlan>,
    streams: BTreeMap<StreamId, Progress>,
    opened: usize,
    has_begun: bool,
    /// Streams that are complete in both directions, as seen by each end.
    pub(crate) settled: usize,
    /// Bytes read with the expected content.
    pub(crate) verified: u64,
}

impl Application {
    pub(crate) fn new(side: Side, plan: &Plan) -> Self {
        Self {
            side,
            seed: plan.seed,
            plans: plan.streams.clone(),
            streams: BTreeMap::new(),
            opened: 0,
            has_begun: false,
            settled: 0,
            verified: 0,
        }
    }

    /// Whether all streams of a client are complete.
    pub(crate) const fn is_done(&self) -> bool {
        self.settled == self.plans.len()
    }

    /// Runs the application.
    pub(crate) fn attend(
        &mut self,
        now: Time,
        connection: &mut Connection,
        may_open: bool,
    ) -> Result<(), String> {
        if self.side == Side::Client && may_open && !self.has_begun {
            self.has_begun = true;
            self.open(now, connection);
        }
        while let Some(event) = connection.streams().poll_event() {
            match event {
                StreamEvent::Opened(direction) => {
                    while let Some(id) = connection.streams().accept(direction) {
                        self.streams.insert(id, Progress::default());
                        self.read(now, connection, id)?;
                    }
                }
                StreamEvent::Available(_) => self.open(now, connection),
                StreamEvent::Readable(id) => self.read(now, connection, id)?,
                StreamEvent::Writable(id) => self.write(now, connection, id),
                StreamEvent::Reset { id, .. } => {
                    if self.side == Side::Server {
                        let _ = connection.streams().reset(id, CODE);
                        self.sent(id);
                    }
                    self.received(id);
                }
                StreamEvent::Stopped { id, .. } | StreamEvent::Finished(id) => self.sent(id),
                StreamEvent::SourceFailed { .. } => return Err("there is no source".into()),
            }
        }
        Ok(())
    }

    /// Opens streams up to the server's limit.
    fn open(&mut self, now: Time, connection: &mut Connection) {
        while self.opened < self.plans.len() {
            let Some(id) = connection.streams().open(Direction::Bidirectional) else {
                return;
            };
            self.opened += 1;
            self.streams.insert(id, Progress::default());
            self.write(now, connection, id);
        }
    }

    fn plan(&self, id: StreamId) -> StreamPlan {
        self.plans[id.index() as usize]
    }

    fn write(&mut self, now: Time, connection: &mut Connection, id: StreamId) {
        let plan = self.plan(id);
        let (len, reset_at) = match (self.side, plan.cut) {
            (Side::Client, Cut::RequestReset(at)) => (plan.request, Some(at)),
            (Side::Client, _) => (plan.request, None),
            (Side::Server, Cut::ResponseReset(at)) => (plan.response, Some(at)),
            (Side::Server, _) => (plan.response, None),
        };
        let end = reset_at.unwrap_or(len);
        let key = self.key(id, self.side);
        let Some(progress) = self.streams.get_mut(&id).filter(|one| !one.is_sent) else {
            return;
        };
        let bytes: Vec<u8> = (progress.written..end).map(|at| byte(key, at)).collect();
        let streams = connection.streams();
        let Ok(written) = streams.write(id, &bytes) else {
            return; // stopped: an event reports it
        };
        progress.written += written as u64;
        if progress.written < end {
            return;
        }
        if reset_at.is_some() {
            let _ = streams.reset(id, CODE);
            self.sent(id);
            if self.side == Side::Client {
                // The response is then up to the server.
                let _ = connection.streams().stop_sending(id, CODE, now);
                self.received(id);
            }
        } else {
            let _ = streams.finish(id);
        }
    }

    fn read(&mut self, now: Time, connection: &mut Connection, id: StreamId) -> Result<(), String> {
        let plan = self.plan(id);
        let key = self.key(id, self.side.peer());
        let Some(progress) = self.streams.get_mut(&id).filter(|one| !one.is_received) else {
            return Ok(());
        };
        let mut wrong = None;
        let before = progress.read;
        let read = connection.streams().read(id, now, &mut |data| {
            for value in data {
                if *value != byte(key, progress.read) {
                    wrong = wrong.or(Some(progress.read));
                }
                progress.read += 1;
            }
            data.len()
        });
        let progress = *progress;
        if let Some(at) = wrong {
            return Err(format!(
                "{:?}: byte {at} of stream {id:?} is wrong",
                self.side
            ));
        }
        self.verified += progress.read - before;
        let len = match self.side {
            Side::Client => plan.response,
            Side::Server => plan.request,
        };
        match read {
            Ok(read) if read.end => {
                if progress.read != len {
                    let read = progress.read;
                    return Err(format!(
                        "{:?}: stream {id:?} ended after {read} bytes of {len}",
                        self.side
                    ));
                }
                self.received(id);
                if self.side == Side::Server {
                    self.write(now, connection, id);
                }
            }
            Err(ReadError::Reset(_)) => {
                if self.side == Side::Server {
                    let _ = connection.streams().reset(id, CODE);
                    self.sent(id);
                }
                self.received(id);
            }
            _ => {
                if self.side == Side::Client
                    && let Cut::ResponseStopped(at) = plan.cut
                    && progress.read >= at
                {
                    let _ = connection.streams().stop_sending(id, CODE, now);
                    self.received(id);
                }
            }
        }
        Ok(())
    }

    fn sent(&mut self, id: StreamId) {
        self.settle(id, |progress| progress.is_sent = true);
    }

    fn received(&mut self, id: StreamId) {
        self.settle(id, |progress| progress.is_received = true);
    }

    fn settle(&mut self, id: StreamId, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = self.streams.get_mut(&id) {
            let was_over = progress.is_sent && progress.is_received;
            change(progress);
            let is_over = progress.is_sent && progress.is_received;
            self.settled += usize::from(is_over && !was_over);
        }
    }

    fn key(&self, id: StreamId, sender: Side) -> u64 {
        mix(self.seed ^ id.index() << 8 ^ u64::from(sender == Side::Server))
    }
}

fn byte(key: u64, at: u64) -> u8 {
    mix(key ^ (at / 8)).to_be_bytes()[(at % 8) as usize]
}
