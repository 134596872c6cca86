//! Stateless resets (RFC 9000 §10.3).
//!
//! Owns: the bytes of one, and whether a packet may have one for an answer. Never: makes tokens.
//!
//! Decision: 42 bytes, as long as the shortest of usual packets, so that it looks like one; less for packets of 43 bytes or
//! fewer, one byte less than they have, so that two endpoints that both forgot do not answer each other for ever
//! (§10.3.3).

use lastbyte_wire::{
    StatelessResetToken,
    packet::{STATELESS_RESET_LEN_MIN, StatelessReset},
};

/// How long the answer to a packet of this length is; `None` if it must have none.
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

/// Writes a reset of this length, with random bytes in front. Returns the length; `None` if it does not fit.
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
