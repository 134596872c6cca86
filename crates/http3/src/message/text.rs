//! The bytes permitted in names and values (RFC 9110 §5.1, §5.5, §5.6.2; RFC 9114 §4.2, §10.3).

#[cfg(test)]
mod tests;

/// Bit set of the elements in which a byte is permitted.
static CLASSES: [u8; 256] = classes();
const NAME: u8 = 1;
const TOKEN: u8 = 1 << 1;
const VISIBLE: u8 = 1 << 2;
const HOST: u8 = 1 << 3;

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        let is_mark = matches!(
            character,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        );
        let is_token = is_mark || character.is_ascii_alphanumeric();
        let mut class = 0;
        if is_token {
            class |= TOKEN;
        }
        if is_token && !character.is_ascii_uppercase() {
            class |= NAME;
        }
        if character.is_ascii_graphic() {
            class |= VISIBLE;
        }
        // RFC 3986 §3.2.2: unreserved characters and delimiters.
        let is_delimiter = matches!(character, b'(' | b')' | b',' | b';' | b'=');
        if (is_token || is_delimiter) && !matches!(character, b'#' | b'%' | b'^' | b'`' | b'|') {
            class |= HOST;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

/// Nearly all text is valid, so all of it is read without a branch for each byte.
#[inline]
fn all(text: &[u8], class: u8) -> bool {
    let classes = text.iter().map(|byte| CLASSES[usize::from(*byte)]);
    classes.fold(class, |all, one| all & one) != 0
}

/// Whether it is a field name: a token in lower case.
#[inline]
pub(crate) fn is_name(text: &[u8]) -> bool {
    !text.is_empty() && all(text, NAME)
}

/// Whether it is a field value: no control characters except tab.
#[inline]
pub(crate) fn is_value(text: &[u8]) -> bool {
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    let is_plain = |word| !has_below(word, b' ') && !has_below(word ^ bytes(0x7f), 1);
    in_words(text, is_plain) || !text.iter().any(is_control)
}

/// Whether all words of 8 bytes are plain, the last of which may overlap the one before; `false` for fewer bytes.
#[inline]
fn in_words(text: &[u8], is_plain: impl Fn(u64) -> bool) -> bool {
    let is_plain = |word: &[u8; 8]| is_plain(u64::from_ne_bytes(*word));
    let (words, _) = text.as_chunks();
    text.last_chunk().is_some_and(is_plain) && words.iter().all(is_plain)
}

/// Whether a byte of the word is below `limit`, which is at most 128.
const fn has_below(word: u64, limit: u8) -> bool {
    word.wrapping_sub(bytes(limit)) & !word & bytes(0x80) != 0
}

/// The word that consists of this byte.
const fn bytes(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Whether it is in a host as it is, without an escape.
pub(crate) fn is_host(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & HOST != 0
}

/// Whether it is a token, such as a method.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && all(text, TOKEN)
}

/// Whether it consists of visible ASCII characters, as URIs do.
pub(crate) fn is_visible(text: &[u8]) -> bool {
    let is_plain = |word| {
        let is_ascii = word & bytes(0x80) == 0;
        is_ascii && !has_below(word, b'!') && !has_below(word ^ bytes(0x7f), 1)
    };
    !text.is_empty() && (in_words(text, is_plain) || all(text, VISIBLE))
}
