//! Upper, lower and title case, and full case folding.

use crate::names::M;

/// `upcase`, `downcase`, `capitalize` and `swapcase`.
pub(super) fn call(s: &str, method: M) -> String {
    let mut out = String::with_capacity(s.len());
    match method {
        M::Upcase => out.extend(s.chars().flat_map(char::to_uppercase)),
        M::Capitalize => {
            let mut chars = s.chars();
            if let Some(first) = chars.next() {
                title(&mut out, first);
            }
            chars.for_each(|c| lower(&mut out, c));
        }
        _ => s.chars().for_each(|c| lower(&mut out, c)),
    }
    out
}

/// A character at a time: Ruby does not know the final sigma.
fn lower(out: &mut String, c: char) {
    out.extend(c.to_lowercase());
}

fn title(out: &mut String, c: char) {
    match c {
        'Ǆ'..='ǆ' => out.push('ǅ'),
        'Ǉ'..='ǉ' => out.push('ǈ'),
        'Ǌ'..='ǌ' => out.push('ǋ'),
        'Ǳ'..='ǳ' => out.push('ǲ'),
        // Georgian sentences begin with small letters.
        'ა'..='ჿ' => out.push(c),
        'Ა'..='Ჿ' => out.extend(c.to_lowercase()),
        // Greek letters with an iota below keep it there; some have one character for both.
        'ᾀ'..='ᾯ' => out.push(char::from_u32(c as u32 | 8).unwrap_or(c)),
        'ᾳ' | 'ᾼ' => out.push('ᾼ'),
        'ῃ' | 'ῌ' => out.push('ῌ'),
        'ῳ' | 'ῼ' => out.push('ῼ'),
        '\u{1f00}'..='\u{1fff}' => {
            out.extend(
                c.to_uppercase()
                    .map(|c| if c == 'Ι' { '\u{345}' } else { c }),
            );
        }
        // The character before it is not a letter.
        'ŉ' => out.push_str("ʼN"),
        _ => {
            let mut all = c.to_uppercase();
            out.extend(all.next());
            all.for_each(|c| lower(out, c));
        }
    }
}

/// Full case folding, as in Unicode's `CaseFolding.txt` (statuses C and F).
pub(crate) fn fold(s: &str) -> String {
    let mut out = String::with_capacity(s.len());
    s.chars().for_each(|c| folded(&mut out, c));
    out
}

fn folded(out: &mut String, c: char) {
    match c {
        _ if c.is_ascii() => out.push(c.to_ascii_lowercase()),
        // Cherokee folds to its large letters.
        'ı' | 'Ꭰ'..='Ᏽ' => out.push(c),
        'ᏸ'..='ᏽ' => out.push(char::from_u32(c as u32 - 8).unwrap_or(c)),
        'ꭰ'..='ꮿ' => out.push(char::from_u32(c as u32 - 0xab70 + 0x13a0).unwrap_or(c)),
        // All characters of one case class have the same large letters, but for large ones that are large themselves.
        _ => out.extend(
            c.to_lowercase()
                .flat_map(char::to_uppercase)
                .flat_map(char::to_lowercase),
        ),
    }
}
