mod pair;
mod rules;
mod sending;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    Side, StreamId, VarInt, Writer,
    frame::{Frame, Frames},
    packet::PacketType,
    transport_parameters::TransportParameters,
};

use super::*;
use crate::{flow::WindowSize, receipt::Receipt};

const NOW: Time = Time::from_nanos(1_000_000_000);

fn varint(value: u64) -> VarInt {
    VarInt::new(value).expect("small")
}

fn id(number: u64) -> StreamId {
    varint(number).into()
}

fn small() -> Config {
    Config {
        connection_window: WindowSize {
            initial: 10_000,
            maximum: 40_000,
        },
        stream_window: WindowSize {
            initial: 4000,
            maximum: 16_000,
        },
        window_budget: None,
        bidirectional_streams: 4,
        unidirectional_streams: 3,
        send_buffer: 5000,
        gaps_max: 1000,
    }
}

/// The parameters of a peer with this configuration.
fn parameters(config: &Config) -> TransportParameters {
    let mut parameters = TransportParameters::default();
    config.announce(&mut parameters);
    parameters
}

/// A client whose peer has the same configuration.
fn client(config: &Config) -> Streams {
    let mut streams = Streams::new(Side::Client, config.clone());
    streams.on_peer_parameters(&parameters(config));
    streams
}

/// Writes one packet.
fn packet(streams: &mut Streams, len: usize) -> (Vec<u8>, Vec<Receipt>) {
    let mut buffer = vec![0xff; len];
    let mut writer = Writer::new(&mut buffer);
    let mut receipts = Vec::new();
    let wrote = streams.write_frames(&mut writer, &mut |receipt| receipts.push(receipt));
    let written = writer.position();
    assert_eq!(wrote, written > 0);
    assert_eq!(wrote, !receipts.is_empty());
    buffer.truncate(written);
    (buffer, receipts)
}

fn frames(payload: &[u8]) -> Vec<Frame<'_>> {
    if payload.is_empty() {
        return Vec::new();
    }
    Frames::new(payload, PacketType::OneRtt, Side::Client)
        .expect("not empty")
        .map(|frame| frame.expect("well-formed"))
        .collect()
}

fn dispatch(
    streams: &mut Streams,
    frame: &Frame<'_>,
    sink: &mut dyn StreamSink,
) -> Result<(), StreamError> {
    match frame {
        Frame::Stream(frame) => streams.on_stream(frame, NOW, sink).map(drop),
        Frame::ResetStream(frame) => streams.on_reset_stream(frame, NOW),
        Frame::StopSending(frame) => streams.on_stop_sending(frame),
        Frame::MaxStreamData(frame) => streams.on_max_stream_data(frame),
        Frame::StreamDataBlocked(frame) => streams.on_stream_data_blocked(frame),
        Frame::MaxData(frame) => {
            streams.on_max_data(frame);
            Ok(())
        }
        Frame::MaxStreams(frame) => {
            streams.on_max_streams(frame);
            Ok(())
        }
        Frame::DataBlocked(frame) => {
            streams.on_data_blocked(frame);
            Ok(())
        }
        Frame::StreamsBlocked(frame) => {
            streams.on_streams_blocked(frame);
            Ok(())
        }
        Frame::Padding(_) => Ok(()),
        other => panic!("streams do not write {other:?}"),
    }
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

fn lose(streams: &mut Streams, receipts: &[Receipt]) {
    for receipt in receipts {
        streams.lost(receipt);
    }
}

fn acknowledge(streams: &mut Streams, receipts: &[Receipt]) {
    for receipt in receipts {
        streams.acked(receipt);
    }
}
