//! HKDF (RFC 5869).
//!
//! Extraction and expansion, without the labels of protocols.
//!
//! Decision: not aws-lc's own HKDF. That one extracts again for each output of an extracted secret, and its HMAC costs more than
//! ours ([`hmac`]). A handshake of a server derives about 45 outputs from 22 secrets.

use std::iter;

use aws_lc_rs::digest::{Algorithm, Digest};
use rustls::crypto::tls13::{OkmBlock, OutputLengthError};

use super::hmac;

#[cfg(test)]
mod tests;

/// A pseudorandom key, from which others are derived.
pub(super) struct Prk {
    hash: &'static Algorithm,
    key: OkmBlock,
}

impl Prk {
    /// `HKDF-Extract`. Without a salt, the salt is as many zeros as the hash has bytes: the same key of an HMAC as no bytes.
    pub(super) fn extract(hash: &'static Algorithm, salt: Option<&[u8]>, secret: &[u8]) -> Self {
        let key = hmac::sign(hash, salt.unwrap_or_default(), iter::once(secret));
        Self::new(hash, OkmBlock::new(key.as_ref()))
    }

    /// A key that was derived.
    pub(super) const fn new(hash: &'static Algorithm, key: OkmBlock) -> Self {
        Self { hash, key }
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
        let mut block: Option<Digest> = None;
        for (number, chunk) in (1..=u8::MAX).zip(output.chunks_mut(block_len)) {
            let before = block.as_ref().map_or(&[][..], Digest::as_ref);
            let next = self.block(before, info, number);
            chunk.copy_from_slice(&next.as_ref()[..chunk.len()]);
            block = Some(next);
        }
        Ok(())
    }

    /// `HKDF-Expand` to the length of the hash.
    pub(super) fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        OkmBlock::new(self.block(&[], info, 1).as_ref())
    }

    /// Length of the hash, in bytes.
    pub(super) fn block_len(&self) -> usize {
        self.hash.output_len()
    }

    /// The block of this number, which follows `before`.
    fn block(&self, before: &[u8], info: &[&[u8]], number: u8) -> Digest {
        let pieces = iter::once(before).chain(info.iter().copied());
        let number = [number];
        let pieces = pieces.chain(iter::once(&number[..]));
        hmac::sign(self.hash, self.key.as_ref(), pieces)
    }
}
