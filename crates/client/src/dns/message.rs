//! Encoding of DNS queries and decoding of answers (RFC 1035 §4, RFC 6891, RFC 9460). Pure functions.

use std::net::IpAddr;

use super::service::Service;

/// The largest answer over UDP in bytes, which avoids IP fragmentation on practically all paths.
const UDP_LEN_MAX: u16 = 1232;
/// The longest name in wire format (RFC 1035 §3.1).
const NAME_LEN_MAX: usize = 255;
/// The longest label (RFC 1035 §2.3.4), and the first byte of a pointer (RFC 1035 §4.1.4).
const LABEL_LEN_MAX: usize = 63;
const POINTER: usize = 0xc0;
/// The length of a header.
const HEADER_LEN: usize = 12;
const CNAME: u16 = 5;
const OPT: u16 = 41;
/// The Internet's class.
const IN: u16 = 1;
/// The most CNAME records that are followed in an answer.
const CNAMES_MAX: usize = 8;
/// The most services or addresses that are used.
pub(super) const RECORDS_MAX: usize = 16;

/// The type of the queried record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    Aaaa,
    Https,
}

impl Kind {
    const fn code(self) -> u16 {
        match self {
            Self::A => 1,
            Self::Aaaa => 28,
            Self::Https => 65,
        }
    }
}

/// The answer of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) addresses: Vec<IpAddr>,
    /// The target of an HTTPS record in `AliasMode`.
    pub(super) alias: Option<String>,
    /// HTTPS records in `ServiceMode`, in the order of priority. A record without a target refers to the queried name.
    pub(super) services: Vec<Service>,
}

/// Why a message is not a usable answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerError {
    /// The message does not answer this query, and is to be ignored.
    Unrelated,
    /// The message is truncated.
    Truncated,
    /// The server reports an error, or the answer is invalid.
    Failed(String),
}

/// Encodes a query; `None` if the name is invalid.
pub(super) fn query(id: u16, name: &str, kind: Kind) -> Option<Vec<u8>> {
    let name = encoded(name)?;
    let [id_high, id_low] = id.to_be_bytes();
    // Recursion is desired; one question, and one additional record.
    let mut message = vec![id_high, id_low, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    message.extend_from_slice(&name);
    for number in [kind.code(), IN] {
        message.extend(number.to_be_bytes());
    }
    // Its owner is the root, its class the length of answers, and it has no flags and options.
    message.push(0);
    for number in [OPT, UDP_LEN_MAX, 0, 0, 0] {
        message.extend(number.to_be_bytes());
    }
    Some(message)
}

/// Decodes the answer to a query.
pub(super) fn answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, AnswerError> {
    let name = encoded(name).ok_or(AnswerError::Unrelated)?;
    let header = bytes
        .first_chunk::<HEADER_LEN>()
        .ok_or(AnswerError::Unrelated)?;
    let number = |place| u16::from_be_bytes([header[place], header[place + 1]]);
    let mut reader = Reader {
        message: bytes,
        place: HEADER_LEN,
    };
    let question = (reader.name(), reader.number(), reader.number());
    let is_answer = header[2] & 0x80 != 0
        && number(0) == id
        && number(4) == 1
        && question == (Some(name.clone()), Some(kind.code()), Some(IN));
    if !is_answer {
        return Err(AnswerError::Unrelated);
    }
    if header[2] & 2 != 0 {
        return Err(AnswerError::Truncated);
    }
    let error = match header[3] & 15 {
        // NXDOMAIN is an answer without records.
        0 | 3 => {
            let read = read(&mut reader, number(6), name, kind);
            return read.map_err(|what| {
                AnswerError::Failed(format!("invalid answer from the DNS server: {what}"))
            });
        }
        1 => "FORMERR",
        2 => "SERVFAIL",
        4 => "NOTIMP",
        5 => "REFUSED",
        code => &format!("error {code}"),
    };
    Err(AnswerError::Failed(format!(
        "the DNS server returned {error}"
    )))
}

fn read(reader: &mut Reader<'_>, count: u16, name: Vec<u8>, kind: Kind) -> Result<Answer, String> {
    let records: Option<Vec<_>> = (0..count).map(|_| reader.record()).collect();
    let records = records.ok_or("a record is cut off, or its name is invalid")?;
    // The canonical name (RFC 1034 §3.6.2).
    let mut owner = name;
    for _ in 0..CNAMES_MAX {
        let is_alias = |it: &&Record<'_>| it.kind == CNAME && it.owner == owner;
        let Some(alias) = records.iter().find(is_alias) else {
            break;
        };
        let mut data = alias.data;
        let target = data.name().filter(|_| data.rest().is_empty());
        owner = target.ok_or("invalid CNAME record")?;
    }
    let mut answer = Answer::default();
    for record in records {
        if record.kind != kind.code() || record.owner != owner {
            continue;
        }
        let data = record.data.rest();
        match kind {
            Kind::A => {
                let address: [u8; 4] = data.try_into().map_err(|_| "invalid A record")?;
                answer.addresses.push(address.into());
            }
            Kind::Aaaa => {
                let address: [u8; 16] = data.try_into().map_err(|_| "invalid AAAA record")?;
                answer.addresses.push(address.into());
            }
            Kind::Https => take(&mut answer, record.data)?,
        }
    }
    answer.services.sort_by_key(|service| service.priority);
    answer.addresses.truncate(RECORDS_MAX);
    answer.services.truncate(RECORDS_MAX);
    Ok(answer)
}

fn take(answer: &mut Answer, mut data: Reader<'_>) -> Result<(), String> {
    let invalid = "invalid HTTPS record";
    let priority = data.number().ok_or(invalid)?;
    let name = data.name().ok_or(invalid)?;
    let target = host(&name);
    let mut parameters = Vec::new();
    while !data.rest().is_empty() {
        let key = data.number().ok_or(invalid)?;
        let len = data.number().ok_or(invalid)?;
        parameters.push((key, data.take(len.into()).ok_or(invalid)?));
    }
    if priority == 0 {
        // The root as the target means that there is no service (RFC 9460 §2.5.1).
        answer.alias = answer.alias.take().or(target);
        return Ok(());
    }
    let is_usable = name == ROOT || target.is_some();
    let service = Service::parse(priority, target, parameters)?;
    answer.services.extend(service.filter(|_| is_usable));
    Ok(())
}

/// The root in wire format.
const ROOT: [u8; 1] = [0];

/// A name in wire format and in lower case; `None` if it is invalid.
fn encoded(name: &str) -> Option<Vec<u8>> {
    let mut encoded = Vec::new();
    for label in name.strip_suffix('.').unwrap_or(name).split('.') {
        let is_valid = label.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
        if !is_valid || !(1..=LABEL_LEN_MAX).contains(&label.len()) {
            return None;
        }
        encoded.push(label.len() as u8);
        encoded.extend(label.bytes().map(|it| it.to_ascii_lowercase()));
    }
    encoded.push(0);
    (encoded.len() <= NAME_LEN_MAX).then_some(encoded)
}

/// A name in the form of URLs: without the final dot. `None` for the root, and for labels of other than letters, digits, `-`
/// and `_`, which no URL, certificate or TLS server name can contain.
fn host(mut name: &[u8]) -> Option<String> {
    let mut host = String::new();
    while let Some((len, rest)) = name.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(*len))?;
        if label.is_empty() {
            break;
        }
        if !host.is_empty() {
            host.push('.');
        }
        for byte in label {
            let is_host = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            host.push(is_host.then_some(char::from(*byte))?);
        }
        name = rest;
    }
    (!host.is_empty()).then_some(host)
}

/// A record of the Internet's class, or of another one, which has the kind 0.
struct Record<'a> {
    /// In wire format and in lower case.
    owner: Vec<u8>,
    kind: u16,
    data: Reader<'a>,
}

/// A place in a message, which ends where the record ends.
#[derive(Clone, Copy)]
struct Reader<'a> {
    message: &'a [u8],
    place: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        self.message.get(self.place..).unwrap_or_default()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.rest().get(..len)?;
        self.place += len;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let number = self.take(2)?.try_into().ok()?;
        Some(u16::from_be_bytes(number))
    }

    /// A name in wire format and in lower case, without compression (RFC 1035 §4.1.4). Labels and pointers are bounded together.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        let mut labels = *self;
        let mut end = None;
        for _ in 0..NAME_LEN_MAX {
            let len = usize::from(*labels.take(1)?.first()?);
            match len {
                0 => {
                    name.push(0);
                    self.place = end.unwrap_or(labels.place);
                    return Some(name);
                }
                // A message has thousands of records, and each may point to the same long name.
                1..=LABEL_LEN_MAX if name.len() + len + 1 < NAME_LEN_MAX => {
                    let label = labels.take(len)?;
                    name.push(len as u8);
                    name.extend(label.iter().map(u8::to_ascii_lowercase));
                }
                POINTER.. => {
                    let low = usize::from(*labels.take(1)?.first()?);
                    end = end.or(Some(labels.place));
                    labels.place = (len - POINTER) << 8 | low;
                }
                _ => return None,
            }
        }
        None
    }

    fn record(&mut self) -> Option<Record<'a>> {
        let owner = self.name()?;
        let kind = self.number()?;
        let class = self.number()?;
        let _time_to_live = self.take(4)?;
        let len = usize::from(self.number()?);
        let place = self.place;
        self.take(len)?;
        Some(Record {
            owner,
            kind: if class == IN { kind } else { 0 },
            data: Reader {
                message: &self.message[..place + len],
                place,
            },
        })
    }
}
