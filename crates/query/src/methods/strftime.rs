//! `strftime`: directives with their flags `-`, `0`, `^`, `#`, `_`, `:` and widths.

use crate::value::time::Time;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) fn format(time: &Time, pattern: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        if chars[at] != '%' {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        let mut flags = Flags::default();
        while let Some(c) = chars.get(at) {
            match c {
                '-' => flags.bare = true,
                '0' => flags.pad = Some('0'),
                '_' => flags.pad = Some(' '),
                '^' => flags.upper = true,
                '#' => flags.swap = true,
                ':' => flags.colons += 1,
                _ => break,
            }
            at += 1;
        }
        while let Some(digit) = chars.get(at).and_then(|c| c.to_digit(10)) {
            flags.width = Some((flags.width.unwrap_or(0) * 10 + digit as usize).min(1024));
            at += 1;
        }
        // The forms of another locale: Ruby prints the same, for some directives only.
        let other = match chars.get(at) {
            Some('E') => "cCxXyY",
            Some('O') => "deHkIlmMSuUVwWy",
            _ => "",
        };
        at += usize::from(!other.is_empty());
        let Some(directive) = chars.get(at) else {
            out.extend(&chars[start..]);
            break;
        };
        at += 1;
        let is_known = (other.is_empty() || other.contains(*directive))
            && (flags.colons == 0 || *directive == 'z');
        match expand(time, *directive, &flags).filter(|_| is_known) {
            Some(text) => out.push_str(&text),
            None => out.extend(&chars[start..at]),
        }
    }
    out
}

#[derive(Default)]
struct Flags {
    bare: bool,
    pad: Option<char>,
    upper: bool,
    swap: bool,
    colons: usize,
    width: Option<usize>,
}

impl Flags {
    fn number(&self, it: i64, width: usize, pad: char) -> String {
        let width = self.width.unwrap_or(width);
        if self.bare {
            return it.to_string();
        }
        match self.pad.unwrap_or(pad) {
            '0' if it < 0 => format!("-{:0>1$}", it.abs(), width.saturating_sub(1)),
            '0' => format!("{it:0>width$}"),
            _ => format!("{it:>width$}"),
        }
    }

    fn text(&self, it: &str) -> String {
        let it = if self.upper || self.swap {
            it.to_uppercase()
        } else {
            it.to_owned()
        };
        let width = self.width.unwrap_or(0);
        match self.pad {
            Some('0') => format!("{it:0>width$}"),
            _ => format!("{it:>width$}"),
        }
    }
}

fn expand(time: &Time, directive: char, flags: &Flags) -> Option<String> {
    let c = time.civil();
    let hour12 = if c.hour % 12 == 0 { 12 } else { c.hour % 12 };
    let whole = |pattern: &str| Some(flags.text(&format(time, pattern)));
    let number = |it: i64, width: usize| Some(flags.number(it, width, '0'));
    match directive {
        'Y' => number(c.year, if c.year < 0 { 5 } else { 4 }),
        'C' => number(c.year.div_euclid(100), 2),
        'y' => number(c.year.rem_euclid(100), 2),
        'm' => number(c.month, 2),
        'B' => Some(flags.text(MONTHS[c.month as usize - 1])),
        'b' | 'h' => Some(flags.text(&MONTHS[c.month as usize - 1][..3])),
        'd' => number(c.day, 2),
        'e' => Some(flags.number(c.day, 2, ' ')),
        'j' => number(c.yearday, 3),
        'H' => number(c.hour, 2),
        'k' => Some(flags.number(c.hour, 2, ' ')),
        'I' => number(hour12, 2),
        'l' => Some(flags.number(hour12, 2, ' ')),
        'p' if flags.swap => Some(if c.hour < 12 { "am" } else { "pm" }.to_owned()),
        'P' => Some(if c.hour < 12 { "am" } else { "pm" }.to_owned()),
        'p' => Some(flags.text(if c.hour < 12 { "AM" } else { "PM" })),
        'M' => number(c.minute, 2),
        'S' => number(c.second, 2),
        'L' | 'N' => {
            let digits = flags.width.unwrap_or(if directive == 'L' { 3 } else { 9 });
            let nine = format!("{:09}", time.fraction());
            Some(format!("{:0<digits$}", &nine[..digits.min(9)]))
        }
        'z' => {
            let text = match flags.colons {
                0 => time.offset_text(""),
                1 => time.offset_text(":"),
                2 => time.offset_text(":") + &format!(":{:02}", time.offset().abs() % 60),
                _ => return None,
            };
            Some(text)
        }
        'Z' => Some(flags.text(time.zone().unwrap_or_default())),
        'A' => Some(flags.text(DAYS[c.weekday as usize])),
        'a' => Some(flags.text(&DAYS[c.weekday as usize][..3])),
        'u' => number(if c.weekday == 0 { 7 } else { c.weekday }, 1),
        'w' => number(c.weekday, 1),
        'G' => number(week(&c).0, 4),
        'g' => number(week(&c).0.rem_euclid(100), 2),
        'V' => number(week(&c).1, 2),
        'U' => number((c.yearday - 1 + 7 - c.weekday) / 7, 2),
        'W' => number((c.yearday - 1 + 7 - (c.weekday + 6) % 7) / 7, 2),
        's' => number(time.seconds(), 1),
        'n' => Some("\n".to_owned()),
        't' => Some("\t".to_owned()),
        '%' => Some("%".to_owned()),
        'c' => whole("%a %b %e %H:%M:%S %Y"),
        'D' | 'x' => whole("%m/%d/%y"),
        'F' => whole("%Y-%m-%d"),
        'T' | 'X' => whole("%H:%M:%S"),
        'R' => whole("%H:%M"),
        'r' => whole("%I:%M:%S %p"),
        'v' => whole("%e-%^b-%Y"),
        '+' => whole("%a %b %e %H:%M:%S %Z %Y"),
        _ => None,
    }
}

/// The year and week of ISO 8601.
fn week(c: &crate::value::time::Civil) -> (i64, i64) {
    let monday_based = (c.weekday + 6) % 7;
    let week = (c.yearday - 1 - monday_based + 10) / 7;
    let weeks_in = |year: i64| {
        let last = |year: i64| {
            (year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)).rem_euclid(7)
        };
        if last(year) == 4 || last(year - 1) == 3 {
            53
        } else {
            52
        }
    };
    if week < 1 {
        (c.year - 1, weeks_in(c.year - 1))
    } else if week > weeks_in(c.year) {
        (c.year + 1, 1)
    } else {
        (c.year, week)
    }
}
