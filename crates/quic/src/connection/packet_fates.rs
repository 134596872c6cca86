//! Consequences of an acknowledged or lost packet besides those for its frames: MTU discovery and tracing.

use lastbyte_congestion::Time;

use super::tracer::Tracer;
use crate::{
    path::MtuDiscovery,
    recovery::{LossDecision, NewlyAcked, PacketObserver, SentPacket},
    space::Space,
    trace::{Event, LossTrigger},
};

/// Passes acknowledged and lost packets to MTU discovery and the trace listener.
pub(super) struct PacketFates<'a> {
    /// MTU discovery of the path in use.
    pub(super) mtu: &'a mut MtuDiscovery,
    pub(super) tracer: &'a mut Tracer,
}

impl PacketObserver for PacketFates<'_> {
    fn packet_acked(&mut self, now: Time, space: Space, acked: &NewlyAcked) {
        let packet = &acked.packet;
        if packet.is_mtu_probe {
            self.mtu.on_probe_acked();
        } else if !packet.is_off_path {
            self.mtu.on_packet_acked(packet.bytes);
        }
        if !self.tracer.is_on() {
            return;
        }
        self.tracer.event(
            now,
            &Event::PacketAcked {
                space,
                number: acked.number,
                len: packet.bytes,
                is_late: acked.was_lost,
            },
        );
    }

    fn packet_lost(
        &mut self,
        now: Time,
        space: Space,
        number: u64,
        packet: &SentPacket,
        decision: LossDecision,
    ) {
        if packet.is_mtu_probe {
            self.mtu.on_probe_lost();
        } else if !packet.is_off_path {
            self.mtu.on_packet_lost(now, packet.sent_at, packet.bytes);
        }
        let trigger = match decision {
            LossDecision::LostByTime => LossTrigger::TimeThreshold,
            _ => LossTrigger::ReorderingThreshold,
        };
        self.tracer.event(
            now,
            &Event::PacketLost {
                space,
                number,
                len: packet.bytes,
                trigger,
            },
        );
    }
}
