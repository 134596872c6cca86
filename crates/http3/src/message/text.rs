//! The bytes permitted in names and values (RFC 9110 §5.1, §5.5, §5.6.2; RFC 9114 §4.2, §10.3).

/// Bit set of the elements in which a byte is permitted.
static CLASSES: [u8; 256] = classes();
const NAME: u8 = 1;
const VALUE: u8 = 1 << 1;
const TOKEN: u8 = 1 << 2;
const VISIBLE: u8 = 1 << 3;

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
        if character == b'\t' || (character >= b' ' && character != 0x7f) {
            class |= VALUE;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

#[inline]
fn all(text: &[u8], class: u8) -> bool {
    text.iter()
        .all(|byte| CLASSES[usize::from(*byte)] & class != 0)
}

/// Whether it is a field name: a token in lower case.
#[inline]
pub(crate) fn is_name(text: &[u8]) -> bool {
    !text.is_empty() && all(text, NAME)
}

/// Whether it is a field value: no control characters except tab.
#[inline]
pub(crate) fn is_value(text: &[u8]) -> bool {
    all(text, VALUE)
}

/// Whether it is a token, such as a method.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && all(text, TOKEN)
}

/// Whether it consists of visible ASCII characters, as URIs do.
pub(crate) fn is_visible(text: &[u8]) -> bool {
    !text.is_empty() && all(text, VISIBLE)
}
