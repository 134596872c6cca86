//! Content codings (RFC 9110 §8.4.1, §12.5.3).
//!
//! Parses `accept-encoding` and selects one of the available codings. Nothing is compressed here.

use lastbyte_http3::Fields;

/// A coding for which compressed files are kept beside the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// Its name in fields.
    pub name: &'static str,
    /// Another name that means the same.
    pub alias: Option<&'static str>,
    /// The suffix of its files.
    pub suffix: &'static str,
}

/// The supported codings: RFC 7932, RFC 8878, RFC 1952.
pub const CODINGS: [Coding; 3] = [
    Coding {
        name: "br",
        alias: None,
        suffix: ".br",
    },
    Coding {
        name: "zstd",
        alias: None,
        suffix: ".zst",
    },
    Coding {
        name: "gzip",
        alias: Some("x-gzip"),
        suffix: ".gz",
    },
];

/// A client's preferences for codings, in thousandths: 0 is not acceptable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    named: Vec<(String, u16)>,
    others: Option<u16>,
}

/// Maximum number of codings that are parsed.
const NAMED_MAX: usize = 32;

impl Accepted {
    /// Parses the fields of a request. Without `accept-encoding` any coding is permitted, but such clients usually
    /// cannot decode any: then none is accepted.
    #[must_use]
    pub fn of(fields: &Fields) -> Self {
        let mut text = Vec::new();
        fields.join("accept-encoding", ",", &mut text);
        let mut accepted = Self::default();
        for element in String::from_utf8_lossy(&text).split(',').take(NAMED_MAX) {
            let mut parameters = element.split(';').map(str::trim);
            let name = parameters.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parameters
                .find_map(|parameter| {
                    let (key, value) = parameter.split_once('=')?;
                    key.trim()
                        .eq_ignore_ascii_case("q")
                        .then(|| weight(value.trim()))
                })
                // An invalid weight counts as 0.
                .map_or(1000, |weight| weight.unwrap_or(0));
            match name.as_str() {
                "" => {}
                "*" => accepted.others = Some(weight),
                _ => accepted.named.push((name, weight)),
            }
        }
        accepted
    }

    fn named(&self, name: &str) -> Option<u16> {
        let found = self.named.iter().find(|(known, _)| known == name);
        found.map(|(_, weight)| *weight)
    }

    /// The weight of a coding.
    pub fn weight(&self, coding: Coding) -> u16 {
        self.named(coding.name)
            .or_else(|| self.named(coding.alias?))
            .or(self.others)
            .unwrap_or(0)
    }

    /// The weight of no coding: the minimum if it is not listed, since it is acceptable all the same.
    pub fn identity(&self) -> u16 {
        self.named("identity").or(self.others).unwrap_or(1)
    }

    /// The best of these codings, given with their lengths in bytes: the one with the highest weight, and of those the
    /// shortest. `None` for no coding; also when nothing is acceptable, since a response that the client may not be
    /// able to decode is better than 406.
    pub fn best<T: Copy>(&self, candidates: &[(Coding, u64, T)]) -> Option<T> {
        candidates
            .iter()
            .filter(|(coding, ..)| {
                let weight = self.weight(*coding);
                weight > 0 && weight >= self.identity()
            })
            .min_by_key(|(coding, len, _)| (std::cmp::Reverse(self.weight(*coding)), *len))
            .map(|(_, _, found)| *found)
    }
}

/// A weight (§12.4.2) in thousandths.
fn weight(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_right = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths = format!("{fraction:0<3}").parse::<u16>().ok();
    match (whole, thousandths.filter(|_| is_right)?) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(1000),
        _ => None,
    }
}
