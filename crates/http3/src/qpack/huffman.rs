//! Huffman-coded strings (RFC 9204 §4.1.2, RFC 7541 §5.2 and Appendix B).
//!
//! The code is canonical: it is determined by the lengths of its code words, from which both directions are computed at
//! compile time. Words of up to eight bits, which cover almost all text, are found by one look-up; longer ones by
//! comparison with the first word of each length.

#[cfg(test)]
mod tests;

/// The length in bits of each symbol's word; the last is EOS, which is never sent (RFC 7541 Appendix B).
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const EOS: usize = 256;
const LONGEST: usize = 30;

/// A code word and its length in bits.
#[derive(Clone, Copy)]
struct Word {
    bits: u32,
    len: u8,
}

/// The tables computed from the lengths.
struct Tables {
    words: [Word; 257],
    /// By the first eight bits: the symbol in the low byte, the length above it; 0 for longer words.
    short: [u16; 256],
    /// Symbols in the order of their words.
    symbols: [u16; 257],
    /// By length: the start of its symbols in `symbols`, its first word, and the word after its last; words are
    /// left-aligned in 32 bits.
    first_symbol: [u16; LONGEST + 1],
    first_word: [u32; LONGEST + 1],
    end: [u64; LONGEST + 1],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        words: [Word { bits: 0, len: 0 }; 257],
        short: [0; 256],
        symbols: [0; 257],
        first_symbol: [0; LONGEST + 1],
        first_word: [0; LONGEST + 1],
        end: [0; LONGEST + 1],
    };
    let mut word = 0u64;
    let mut count = 0;
    let mut len = 1;
    while len <= LONGEST {
        word <<= 1;
        tables.first_symbol[len] = count as u16;
        tables.first_word[len] = (word << (32 - len)) as u32;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == len {
                tables.words[symbol] = Word {
                    bits: word as u32,
                    len: len as u8,
                };
                tables.symbols[count] = symbol as u16;
                if len <= 8 {
                    let mut index = (word as usize) << (8 - len);
                    let end = (word as usize + 1) << (8 - len);
                    while index < end {
                        tables.short[index] = (len as u16) << 8 | symbol as u16;
                        index += 1;
                    }
                }
                count += 1;
                word += 1;
            }
            symbol += 1;
        }
        tables.end[len] = word << (32 - len);
        len += 1;
    }
    tables
}

/// The bytes are not a valid Huffman-coded string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHuffman;

/// The encoded size of a string in bytes.
#[inline]
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends an encoded string.
pub(super) fn encode(text: &[u8], into: &mut Vec<u8>) {
    let mut held = 0u64;
    let mut count = 0u32;
    for byte in text {
        let word = TABLES.words[usize::from(*byte)];
        held = held << word.len | u64::from(word.bits);
        count += u32::from(word.len);
        // Fewer than 32 bits are pending, and no word has more than 30.
        if count >= 32 {
            count -= 32;
            into.extend_from_slice(&((held >> count) as u32).to_be_bytes());
        }
    }
    while count >= 8 {
        count -= 8;
        into.push((held >> count) as u8);
    }
    if count > 0 {
        // Padded with the first bits of EOS, which are ones.
        into.push((held << (8 - count)) as u8 | 0xff >> count);
    }
}

/// Appends the decoded text of a string: at most 8 / 5 of its size.
pub(super) fn decode(bytes: &[u8], into: &mut Vec<u8>) -> Result<(), NotHuffman> {
    into.reserve(bytes.len() * 8 / 5);
    let mut rest = bytes;
    // The next bits, left-aligned, followed by ones.
    let mut held = u64::MAX;
    let mut count = 0u32;
    loop {
        if count <= 32 {
            if let Some((next, behind)) = rest.split_first_chunk::<4>() {
                let next = u64::from(u32::from_be_bytes(*next)) << 32;
                let ones = (u64::MAX >> 32) >> count;
                held = held & !(u64::MAX.checked_shr(count).unwrap_or(0)) | next >> count | ones;
                count += 32;
                rest = behind;
            } else if let Some((next, behind)) = rest.split_first() {
                let next = u64::from(*next) << 56;
                let ones = (u64::MAX >> 8) >> count;
                held = held & !(u64::MAX.checked_shr(count).unwrap_or(0)) | next >> count | ones;
                count += 8;
                rest = behind;
                continue;
            }
        }
        let short = TABLES.short[(held >> 56) as usize];
        let (symbol, len) = if short == 0 {
            let (symbol, len) = long((held >> 32) as u32);
            if usize::from(symbol) == EOS && len <= count {
                return Err(NotHuffman);
            }
            (symbol as u8, len)
        } else {
            (short as u8, u32::from(short >> 8))
        };
        if len > count {
            // RFC 7541 §5.2: padding is shorter than a byte, and all ones; the bits are followed by ones already.
            let is_padding = count < 8 && held == u64::MAX;
            return if is_padding { Ok(()) } else { Err(NotHuffman) };
        }
        into.push(symbol);
        held = held << len | ((1 << len) - 1);
        count -= len;
    }
}

/// The symbol of a word of more than eight bits, and its length.
#[inline(never)]
fn long(bits: u32) -> (u16, u32) {
    for len in 9..=LONGEST {
        if u64::from(bits) < TABLES.end[len] {
            let index = (bits - TABLES.first_word[len]) >> (32 - len);
            let at = usize::from(TABLES.first_symbol[len]) + index as usize;
            return (
                TABLES.symbols.get(at).copied().unwrap_or(EOS as u16),
                len as u32,
            );
        }
    }
    (EOS as u16, LONGEST as u32)
}
