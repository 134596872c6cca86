//! HMAC as two digests (RFC 2104).
//!
//! Pads keys. Tags are compared elsewhere, in constant time.
//!
//! Decision: not aws-lc's HMAC. Its keys and contexts are 700 bytes long, are copied three times for each tag, and most keys of
//! a handshake make one tag only. Two digests of a buffer on the stack cost less than half.

use std::hint::black_box;

use aws_lc_rs::digest::{self, Algorithm, Digest};

#[cfg(test)]
mod tests;

/// The largest block of a hash, that of SHA-384, in bytes.
const BLOCK_MAX: usize = 128;
/// Longer input goes to the heap.
const STACK_LEN: usize = 384;

/// The tag of a message in pieces.
pub(crate) fn sign<'a>(
    hash: &'static Algorithm,
    key: &[u8],
    message: impl Iterator<Item = &'a [u8]> + Clone,
) -> Digest {
    let block_len = hash.block_len().min(BLOCK_MAX);
    let mut padded = [0; BLOCK_MAX];
    if key.len() > block_len {
        let key = digest::digest(hash, key);
        padded[..key.as_ref().len()].copy_from_slice(key.as_ref());
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let padded = &mut padded[..block_len];

    let len = block_len + message.clone().map(<[u8]>::len).sum::<usize>();
    let mut stack = [0; STACK_LEN];
    let mut heap = Vec::new();
    let input: &mut [u8] = if let Some(input) = stack.get_mut(..len) {
        input
    } else {
        heap.resize(len, 0);
        &mut heap
    };
    let (start, mut rest) = input.split_at_mut(block_len);
    for (byte, key) in start.iter_mut().zip(&*padded) {
        *byte = key ^ 0x36;
    }
    for piece in message {
        let (place, after) = rest.split_at_mut(piece.len());
        place.copy_from_slice(piece);
        rest = after;
    }
    let inner = digest::digest(hash, input);
    wipe(input);

    let mut outer = [0; BLOCK_MAX + digest::MAX_OUTPUT_LEN];
    let outer = &mut outer[..block_len + inner.as_ref().len()];
    for (byte, key) in outer.iter_mut().zip(&*padded) {
        *byte = key ^ 0x5c;
    }
    outer[block_len..].copy_from_slice(inner.as_ref());
    let tag = digest::digest(hash, outer);
    wipe(outer);
    wipe(padded);
    tag
}

/// Leaves no key on the stack.
fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // Otherwise the compiler may leave out a write that is not read.
    black_box(bytes);
}
