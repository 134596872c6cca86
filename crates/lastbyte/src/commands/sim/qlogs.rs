//! A folder of qlog files, two for each connection.

use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_congestion::Time;
use lastbyte_quic::trace::Trace;
use lastbyte_record::qlog::{Header, Health, Qlog};
use lastbyte_scenario::Handshake;
use lastbyte_sim::{Listener, row::Label};
use lastbyte_wire::Side;

use crate::{
    failure::Failure,
    files::{Names, Output, cannot_write, check_absent, create, create_folder},
    terminal::wrote_as,
};

/// Writes qlog files into a folder.
pub(super) struct Qlogs {
    folder: PathBuf,
    /// Whether files of an earlier run are overwritten.
    overwrites: bool,
    label: Label,
    names: Names,
    /// What the names of the files of each flow begin with, of this simulation.
    groups: BTreeMap<usize, String>,
    written: Vec<(PathBuf, Health)>,
    failure: Option<Failure>,
}

impl Qlogs {
    /// Makes the folder.
    pub(super) fn new(folder: PathBuf, overwrites: bool, label: Label) -> Result<Self, Failure> {
        create_folder(&folder)?;
        Ok(Self {
            folder,
            overwrites,
            label,
            names: Names::default(),
            groups: BTreeMap::new(),
            written: Vec::new(),
            failure: None,
        })
    }

    /// Files of another simulation from now on, unless a file of the last one could not be written.
    pub(super) fn relabel(&mut self, label: Label) -> Result<(), Failure> {
        self.label = label;
        self.groups.clear();
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Whether all files could be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        for (path, health) in &self.written {
            if let Some(error) = health.take_error() {
                return Err(cannot_write(path, &error));
            }
        }
        wrote_as(&self.folder, &format!("{} qlog files", self.written.len()));
        Ok(())
    }

    /// One for both ends.
    fn group(&mut self, flow: usize) -> String {
        let Self {
            label,
            names,
            groups,
            ..
        } = self;
        let group = groups.entry(flow).or_insert_with(|| {
            let handshake = match label.handshake {
                Handshake::Full => String::new(),
                other => format!("_{}", other.name()),
            };
            names.unique(&format!(
                "{}_{}_{}_{}_{flow}{handshake}",
                label.network, label.arm, label.size_bytes, label.seed
            ))
        });
        group.clone()
    }

    fn open(&mut self, flow: usize, side: Side) -> Result<Qlog<Output>, Failure> {
        let label = &self.label;
        let end = match side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let title = format!(
            "{} over {}, {} bytes, seed {}, flow {flow}",
            label.arm, label.network, label.size_bytes, label.seed
        );
        let group = self.group(flow);
        let path = self.folder.join(format!("{group}_{end}.sqlog"));
        if !self.overwrites {
            check_absent(&path)?;
        }
        let file = create(&path)?;
        let header = Header {
            title,
            vantage_point: side,
            group_id: group,
        };
        let (qlog, health) = Qlog::new(&header, Time::ZERO, file);
        self.written.push((path, health));
        Ok(qlog)
    }
}

impl Listener for Qlogs {
    fn trace(&mut self, flow: usize, side: Side) -> Option<Box<dyn Trace>> {
        if self.failure.is_some() {
            return None;
        }
        match self.open(flow, side) {
            Ok(qlog) => Some(Box::new(qlog)),
            Err(failure) => {
                self.failure = Some(failure);
                None
            }
        }
    }
}
