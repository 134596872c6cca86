//! Where the time of a transfer went, as a sentence.

use crate::scale::Unit;

/// A part of the time from the request to the last acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The congestion window was full.
    Window,
    /// Flow control allowed no data.
    FlowControl,
    /// Losses were repaired.
    Repair,
    /// The pacer held data back.
    Pacing,
    /// There was nothing to send.
    Application,
    /// Paced, or nothing to send: the pacing rate is not known.
    Unlimited,
    /// The last acknowledgment was on its way.
    LastAck,
}

const PARTS: [(Part, &str); 7] = [
    (Part::Window, "the window was full"),
    (Part::FlowControl, "blocked by flow control"),
    (Part::Repair, "losses were repaired"),
    (Part::Pacing, "held back by the pacer"),
    (Part::Application, "nothing to send, or the sender was busy"),
    (Part::Unlimited, "paced, busy, or nothing to send"),
    (Part::LastAck, "waiting for the last acknowledgment"),
];

/// The time of each part, in ms, at the part's place.
pub type Times = [f64; PARTS.len()];

/// The parts, the largest first, as a sentence without a full stop; `None` if all are zero.
pub fn sentence(times: &Times) -> Option<String> {
    let (total, parts) = written(times, &PARTS)?;
    Some(format!(
        "Of the {total} from the request to the last acknowledgment: {parts}"
    ))
}

/// The same of a transfer that was not complete at the end of its times.
pub fn sentence_incomplete(times: &Times) -> Option<String> {
    let names = PARTS.map(|(part, name)| match part {
        Part::Repair => (part, "losses were not yet repaired"),
        Part::LastAck => (part, "waiting for acknowledgments"),
        _ => (part, name),
    });
    let (total, parts) = written(times, &names)?;
    Some(format!(
        "The transfer is not complete. Of the {total} from the request to the end: {parts}"
    ))
}

/// The total of the times, and the parts, the largest first. `None` if all are zero.
fn written(times: &Times, names: &[(Part, &str); PARTS.len()]) -> Option<(String, String)> {
    let total: f64 = times.iter().sum();
    if total <= 0.0 {
        return None;
    }
    let mut parts: Vec<(u32, &str)> = names
        .iter()
        .zip(percent(times))
        .filter(|(_, share)| *share > 0)
        .map(|((_, name), share)| (share, *name))
        .collect();
    parts.sort_by_key(|(share, _)| core::cmp::Reverse(*share));
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(share, name)| format!("{share} % {name}"))
        .collect();
    Some((Unit::Milliseconds.format(total), parts.join(", ")))
}

/// Whole percentages that add up to 100: the largest remainders are rounded up.
fn percent(times: &Times) -> [u32; PARTS.len()] {
    let total: f64 = times.iter().sum();
    let exact = times.map(|time| time / total * 100.0);
    let mut whole = exact.map(|share| share as u32);
    let missing = 100_u32.saturating_sub(whole.iter().sum());
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    for index in order.into_iter().take(missing as usize) {
        whole[index] += 1;
    }
    whole
}
