//! Checks 64 bytes of a row at once: for each byte, whether it may stand after the bytes before it. Only the keys that are
//! looked for are visited. This takes the same time in whatever order keys stand.
//!
//! It knows strings of plain text, integers without a sign, and objects of these, without blanks. The rest of JSON is "odd"
//! and left to [`super::grammar`], a member at a time.

use super::grammar::{self, Next, Span, last_block, peek};
use super::kernel::{Kernel, Run, STRETCH, Stretch};
use super::selection::Fields;

/// Bytes that a stretch shares with the one before, so that the two bytes before each of its other bytes are known.
const SHARED: usize = 2;

/// Maximum depth of objects here; the parser's limit is higher.
const DEPTH_MAX: u32 = 32;

/// A stretch of a row, and what is known before it is read.
#[derive(Clone, Copy)]
struct Position {
    /// Its offset.
    at: usize,
    /// Its bytes that were not checked yet.
    fresh: u64,
    /// All bits, if it starts within a string, on the closing quote, too; otherwise none.
    in_string: u64,
    /// One, if its first byte is within a key (the opening quote is, the closing one is not).
    in_key: u64,
    /// Objects that are open.
    depth: u32,
    /// Offset of the last stretch with separators between members of the row, and these.
    member: (usize, u64),
}

/// Why a scan ended.
enum Stop {
    /// The end of the row: offset of its brace.
    Brace(usize),
    /// Something odd: offset of the separator before its member.
    Odd(usize),
}

/// Finds the fields in the members from `start` on, a place between two of them, or the start of the row if `first`.
/// Returns the offset of the next line; `None` if the rest of the line is not JSON.
#[inline(always)]
pub(super) fn walk(
    kernel: impl Kernel,
    bytes: &[u8],
    start: usize,
    first: bool,
    fields: &Fields,
    found: &mut [Option<Span>],
) -> Option<usize> {
    let mut at = start;
    loop {
        let first = first && at == start;
        if peek(bytes, at) == if first { b'{' } else { b',' } {
            match scan(kernel, bytes, at, fields, found) {
                Stop::Brace(brace) => return grammar::line_end(bytes, brace + 1),
                Stop::Odd(member) => at = member,
            }
        }
        match grammar::next(kernel, bytes, at, first && at == start)? {
            Next::End(end) => return Some(end),
            Next::Member(member) => {
                let key = &bytes[member.key.0..member.key.1];
                if let Some(slot) = fields.slot(key, member.plain_key) {
                    found[slot] = Some(member.value);
                }
                at = member.value.end;
            }
        }
    }
}

/// Scans from a separator or the row's brace.
#[inline(always)]
fn scan(
    kernel: impl Kernel,
    bytes: &[u8],
    start: usize,
    fields: &Fields,
    found: &mut [Option<Span>],
) -> Stop {
    let mut position = Position {
        at: start,
        fresh: !1,
        in_string: 0,
        in_key: 0,
        depth: 1,
        member: (start, 1),
    };
    loop {
        kernel.call(Pass(bytes, fields, &mut position));
        if let Some(stop) = stop(kernel, bytes, fields, found, &mut position) {
            return stop;
        }
    }
}

/// Passes stretches that have no braces, no wanted keys and nothing odd.
struct Pass<'a>(&'a [u8], &'a Fields, &'a mut Position);

impl Run for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, kernel: impl Kernel) {
        let Pass(bytes, fields, position) = self;
        // A copy, whose fields are registers.
        let mut here = *position;
        let top = here.top();
        let window = fields.window();
        while let Some(window) = bytes.get(here.at..).and_then(|rest| rest.get(..window))
            && let Some(stretch) = window.first_chunk()
        {
            let checked = check(kernel, stretch, &here, 0, 0);
            let wanted = checked.keys & top & fields.candidates(kernel, window);
            if checked.odd | wanted != 0 {
                break;
            }
            here.advance(&checked, checked.commas & top);
        }
        *position = here;
    }
}

/// Passes any stretch, or ends the scan.
#[inline(always)]
fn stop(
    kernel: impl Kernel,
    bytes: &[u8],
    fields: &Fields,
    found: &mut [Option<Span>],
    position: &mut Position,
) -> Option<Stop> {
    let at = position.at;
    let rest = bytes.get(at..).unwrap_or_default();
    let stretch = &rest
        .first_chunk()
        .copied()
        .unwrap_or_else(|| last_block(bytes, at));
    let begins = kernel.equal(stretch, b'{');
    let ends = kernel.equal(stretch, b'}');
    let checked = check(kernel, stretch, position, begins, ends);
    let mut odd = checked.odd;
    // The bytes on the level of the row.
    let mut top = position.top();
    let mut last = None;
    let mut braces = (begins | ends) & !checked.string & position.fresh;
    while braces != 0 {
        let brace = braces & braces.wrapping_neg();
        braces ^= brace;
        if begins & brace != 0 {
            position.depth += 1;
            top &= brace - 1;
            if position.depth > DEPTH_MAX {
                odd |= brace;
                break;
            }
            continue;
        }
        position.depth -= 1;
        match position.depth {
            0 => {
                odd &= brace | (brace - 1);
                top &= brace - 1;
                last = Some(at + brace.trailing_zeros() as usize);
                break;
            }
            1 => top |= !(brace - 1),
            _ => {}
        }
    }
    // The bytes before the first odd one.
    top &= (odd & odd.wrapping_neg()).wrapping_sub(1);
    let mut keys = checked.keys & top;
    if let Some(window) = rest.get(..fields.window()) {
        keys &= fields.candidates(kernel, window);
    }
    while keys != 0 {
        let key = at + keys.trailing_zeros() as usize + 1;
        keys &= keys - 1;
        if let Some((slot, value)) = fields.key_at(bytes, key) {
            found[slot] = grammar::value(kernel, bytes, value);
        }
    }
    let commas = checked.commas & top;
    if odd != 0 {
        let (at, commas) = match commas {
            0 => position.member,
            _ => (at, commas),
        };
        return Some(Stop::Odd(at + commas.ilog2() as usize));
    }
    position.advance(&checked, commas);
    last.map(Stop::Brace)
}

/// What [`check`] found in a stretch.
struct Checked {
    /// Fresh bytes that are odd: not what this module knows, or not JSON.
    odd: u64,
    /// Bytes of strings, with their opening quotes.
    string: u64,
    /// Bytes of keys, with their opening quotes.
    key: u64,
    /// Fresh opening quotes of keys.
    keys: u64,
    /// Commas outside of strings.
    commas: u64,
}

/// Checks a stretch in which these are the braces, also those in strings.
#[inline(always)]
fn check(
    kernel: impl Kernel,
    stretch: &Stretch,
    position: &Position,
    begins: u64,
    ends: u64,
) -> Checked {
    let marks = kernel.marks(stretch);
    let quotes = kernel.equal(stretch, b'"');
    let string = kernel.parity(quotes) ^ position.in_string;
    let open = quotes & string;
    let close = quotes & !string;
    let inside = string | quotes;
    let comma = kernel.equal(stretch, b',') & !inside;
    let colon = kernel.equal(stretch, b':') & !inside;
    let digit = marks.digits & !inside;
    let begin = begins & !inside;
    let end = ends & !inside;
    let after_separator = (comma | begin) << 1;
    let after_colon = colon << 1;
    let key_open = open & after_separator;
    // A carry runs through the bytes of a key to its closing quote.
    let carried = string.wrapping_add(key_open).wrapping_add(position.in_key);
    let key_close = close & carried;
    let value = open & !after_separator | digit & !(digit << 1) | begin;
    let lone_zero = kernel.equal(stretch, b'0') & after_colon;
    let odd = marks.specials & !quotes
        | !(inside | comma | colon | digit | begin | end)
        | value & !after_colon
        | (comma | end) & !((close | digit | end) << 1)
        | colon ^ key_close << 1
        | digit & lone_zero << 1;
    Checked {
        odd: odd & position.fresh,
        string,
        key: string & !carried,
        keys: key_open & position.fresh,
        commas: comma,
    }
}

impl Position {
    /// All bits on the level of the row, none below it.
    #[inline(always)]
    fn top(&self) -> u64 {
        if self.depth == 1 { u64::MAX } else { 0 }
    }

    /// Goes to the next stretch. `commas` are those between members of the row.
    #[inline(always)]
    fn advance(&mut self, checked: &Checked, commas: u64) {
        if commas != 0 {
            self.member = (self.at, commas);
        }
        // The last byte that is not in the next stretch, and the first that is.
        let last = STRETCH - SHARED - 1;
        self.in_string = 0_u64.wrapping_sub(checked.string >> last & 1);
        self.in_key = checked.key >> (last + 1) & 1;
        self.fresh = u64::MAX << SHARED;
        self.at += STRETCH - SHARED;
    }
}
