//! SipHash-2-4 (Aumasson and Bernstein, 2012): a hash with a key, which clients that do not know the key cannot predict.
//!
//! This module owns the function. What is hashed is decided by [`table`](crate::table) and [`flows`](crate::flows).

#[cfg(test)]
mod tests;

/// The hash of `bytes` under `key`.
#[must_use]
pub fn siphash(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let (low, high) = key.split_at(8);
    let (k0, k1) = (word(low), word(high));
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        absorb(&mut state, word(chunk));
    }
    let last = word(chunks.remainder()) | (bytes.len() as u64) << 56;
    absorb(&mut state, last);
    state[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

/// Up to 8 bytes, little-endian.
fn word(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(whole)
}

fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    round(state);
    state[0] ^= word;
}

fn round(state: &mut [u64; 4]) {
    let [v0, v1, v2, v3] = state;
    *v0 = v0.wrapping_add(*v1);
    *v1 = v1.rotate_left(13) ^ *v0;
    *v0 = v0.rotate_left(32);
    *v2 = v2.wrapping_add(*v3);
    *v3 = v3.rotate_left(16) ^ *v2;
    *v0 = v0.wrapping_add(*v3);
    *v3 = v3.rotate_left(21) ^ *v0;
    *v2 = v2.wrapping_add(*v1);
    *v1 = v1.rotate_left(17) ^ *v2;
    *v2 = v2.rotate_left(32);
}
