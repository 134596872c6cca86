//! Stateless resets (RFC 9000 §10.3).
//!
//! Owns their encoding, and which packets may be answered with one.
//!
//! Decision: 42 bytes, the length of a typical short packet, so that it looks like one; in response to packets of 43
//! bytes or fewer it is one byte shorter than those, so that two endpoints that both lost their state do not answer
//! each other forever (§10.3.3).

use lastbyte_wire::{
    StatelessResetToken,
    packet::{STATELESS_RESET_LEN_MIN, StatelessReset},
};

/// The length of the response to a packet of this length; `None` if there must be none.
pub(super) const fn len(trigger: usize) -> Option<usize> {
    if trigger <= STATELESS_RESET_LEN_MIN {
        return None;
    }
    Some(if trigger <= LEN_MAX {
        trigger - 1
    } else {
        LEN_MAX
    })
}

/// Writes a reset of this length, starting with random bytes. Returns the length; `None` if it does not fit.
pub(super) fn write(
    buffer: &mut [u8],
    len: usize,
    random: [u8; 32],
    token: StatelessResetToken,
) -> Option<usize> {
    let datagram = buffer.get_mut(..len)?;
    for (byte, random) in datagram.iter_mut().zip(random) {
        *byte = random;
    }
    StatelessReset { token }.encode(datagram)?;
    Some(len)
}

/// Random bytes and the token.
const LEN_MAX: usize = 42;
