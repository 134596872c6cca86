//! The cipher of QUIC-LB (draft-ietf-quic-load-balancers §5.4): one block of AES-128 for 16 bytes, and for other
//! lengths a Feistel network of four rounds.
//!
//! Encrypts and decrypts bytes in place, without knowing their meaning.
//!
//! Decision: halves are stored in full width, and in the byte that both halves share, the bits of the other half are
//! cleared after each round. §5.4.2's text clears a half under the wrong name in one place; its vectors agree with this
//! code.

use std::fmt;

use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, UnboundCipherKey,
};

/// A key, for both directions.
pub(super) struct Cipher {
    forward: EncryptingKey,
    backward: DecryptingKey,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

impl Cipher {
    /// `None` if the cipher rejects the key, which does not happen.
    pub(super) fn new(key: &[u8; BLOCK]) -> Option<Self> {
        let unbound = || UnboundCipherKey::new(&AES_128, key).ok();
        Some(Self {
            forward: EncryptingKey::ecb(unbound()?).ok()?,
            backward: DecryptingKey::ecb(unbound()?).ok()?,
        })
    }

    /// 2 to 28 bytes, in place; `None` for another number.
    pub(super) fn encrypt(&self, bytes: &mut [u8]) -> Option<()> {
        if bytes.len() == BLOCK {
            return self.forward.encrypt(bytes).ok().map(|_| ());
        }
        let mut halves = Halves::split(bytes)?;
        for pass in 1..=PASSES {
            halves.step(self, pass)?;
        }
        halves.join(bytes)
    }

    /// The inverse.
    pub(super) fn decrypt(&self, bytes: &mut [u8]) -> Option<()> {
        if bytes.len() == BLOCK {
            let context = DecryptionContext::None;
            return self.backward.decrypt(bytes, context).ok().map(|_| ());
        }
        let mut halves = Halves::split(bytes)?;
        for pass in (1..=PASSES).rev() {
            halves.step(self, pass)?;
        }
        halves.join(bytes)
    }

    /// The round function (§5.4.2).
    fn round(&self, half: &[u8; HALF_MAX], len: u8, pass: u8) -> Option<[u8; BLOCK]> {
        let mut block = [0; BLOCK];
        block.get_mut(..HALF_MAX)?.copy_from_slice(half);
        *block.last_chunk_mut()? = [len, pass];
        self.forward.encrypt(&mut block).ok()?;
        Some(block)
    }
}

/// The two halves, each from its first byte on, zero after its last.
struct Halves {
    left: [u8; HALF_MAX],
    right: [u8; HALF_MAX],
    half_len: usize,
    len: u8,
}

impl Halves {
    fn split(bytes: &[u8]) -> Option<Self> {
        if !(2..=2 * HALF_MAX).contains(&bytes.len()) {
            return None;
        }
        let half_len = bytes.len().div_ceil(2);
        let mut halves = Self {
            left: [0; HALF_MAX],
            right: [0; HALF_MAX],
            half_len,
            len: bytes.len() as u8,
        };
        let (left, right) = (bytes.get(..half_len)?, bytes.get(bytes.len() - half_len..)?);
        halves.left.get_mut(..half_len)?.copy_from_slice(left);
        halves.right.get_mut(..half_len)?.copy_from_slice(right);
        halves.clear_shared()?;
        Some(halves)
    }

    /// With an odd number of bytes both halves share one: the left one has its high bits, the right one its low bits.
    fn clear_shared(&mut self) -> Option<()> {
        if self.len % 2 == 1 {
            *self.left.get_mut(self.half_len - 1)? &= 0xf0;
            *self.right.first_mut()? &= 0x0f;
        }
        Some(())
    }

    /// Odd passes change the right half, even ones the left.
    fn step(&mut self, cipher: &Cipher, pass: u8) -> Option<()> {
        let (source, target) = if pass % 2 == 1 {
            (&self.left, &mut self.right)
        } else {
            (&self.right, &mut self.left)
        };
        let mixed = cipher.round(source, self.len, pass)?;
        for (byte, mix) in target.iter_mut().zip(mixed).take(self.half_len) {
            *byte ^= mix;
        }
        self.clear_shared()
    }

    fn join(&self, bytes: &mut [u8]) -> Option<()> {
        let start = bytes.len() - self.half_len;
        bytes.fill(0);
        for (byte, half) in bytes.iter_mut().zip(self.left).take(self.half_len) {
            *byte = half;
        }
        let right = bytes.get_mut(start..)?;
        for (byte, half) in right.iter_mut().zip(self.right) {
            *byte |= half;
        }
        Some(())
    }
}

const BLOCK: usize = 16;
/// Input of the round function besides the length and the pass.
const HALF_MAX: usize = BLOCK - 2;
const PASSES: u8 = 4;
