//! HKDF over HMAC keys that are prepared once (RFC 5869).
//!
//! Owns: extraction and expansion, by aws-lc's HMAC. Never: knows what a key is for.
//!
//! Decision: not aws-lc's own HKDF. That one prepares the HMAC key for each output, and extracts again for each output of an
//! extracted secret. A handshake of a server derives about 45 outputs from 22 secrets.

use aws_lc_rs::hmac;
use rustls::crypto::tls13::{OkmBlock, OutputLengthError};

#[cfg(test)]
mod tests;

/// A pseudorandom key, from which others are derived.
pub(super) struct Prk(hmac::Key);

impl Prk {
    /// `HKDF-Extract`. Without a salt, the salt is as many zeros as the hash has bytes.
    pub(super) fn extract(algorithm: hmac::Algorithm, salt: Option<&[u8]>, secret: &[u8]) -> Self {
        let zeros = [0; OkmBlock::MAX_LEN];
        let salt = hmac::Key::new(algorithm, salt.unwrap_or(&zeros[..algorithm.tag_len()]));
        Self::new(
            algorithm,
            &OkmBlock::new(hmac::sign(&salt, secret).as_ref()),
        )
    }

    /// A key that was derived.
    pub(super) fn new(algorithm: hmac::Algorithm, key: &OkmBlock) -> Self {
        Self(hmac::Key::new(algorithm, key.as_ref()))
    }

    /// `HKDF-Expand`, with `info` in pieces.
    pub(super) fn expand(
        &self,
        info: &[&[u8]],
        output: &mut [u8],
    ) -> Result<(), OutputLengthError> {
        let block_len = self.block_len();
        if output.len() > usize::from(u8::MAX) * block_len {
            return Err(OutputLengthError);
        }
        let mut block = OkmBlock::new(&[]);
        for (number, chunk) in (1..=u8::MAX).zip(output.chunks_mut(block_len)) {
            block = self.block(block.as_ref(), info, number);
            chunk.copy_from_slice(&block.as_ref()[..chunk.len()]);
        }
        Ok(())
    }

    /// `HKDF-Expand` of as many bytes as the hash has.
    pub(super) fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        self.block(&[], info, 1)
    }

    /// How many bytes the hash has.
    pub(super) fn block_len(&self) -> usize {
        self.0.algorithm().tag_len()
    }

    /// The block of this number, which follows `before`.
    fn block(&self, before: &[u8], info: &[&[u8]], number: u8) -> OkmBlock {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(before);
        for piece in info {
            context.update(piece);
        }
        context.update(&[number]);
        OkmBlock::new(context.sign().as_ref())
    }
}
