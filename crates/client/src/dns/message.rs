//! Encoding of DNS queries and decoding of answers (RFC 1035 §4, RFC 6891, RFC 9460). Pure functions.

use std::net::IpAddr;

use domain::{
    base::{
        Message, MessageBuilder, Name, ParsedName, Rtype,
        iana::{Class, Rcode},
        name::ToName as _,
    },
    rdata::{A, Aaaa, Cname, Https},
};

use super::service::Service;

/// The largest answer over UDP in bytes, which avoids IP fragmentation on practically all paths.
const UDP_LEN_MAX: u16 = 1232;
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
    const fn rtype(self) -> Rtype {
        match self {
            Self::A => Rtype::A,
            Self::Aaaa => Rtype::AAAA,
            Self::Https => Rtype::HTTPS,
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
    /// It does not answer this query, and is to be ignored.
    Unrelated,
    /// It is truncated.
    Truncated,
    /// The server reports an error, or the answer is invalid.
    Failed(String),
}

/// Encodes a query; `None` if the name is invalid.
pub(super) fn query(id: u16, name: &str, kind: Kind) -> Option<Vec<u8>> {
    let name: Name<Vec<u8>> = name.parse().ok()?;
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    builder.header_mut().set_rd(true);
    let mut builder = builder.question();
    builder.push((name, kind.rtype())).ok()?;
    let mut builder = builder.additional();
    let sized = builder.opt(|options| {
        options.set_udp_payload_size(UDP_LEN_MAX);
        Ok(())
    });
    sized.ok()?;
    Some(builder.finish())
}

/// Decodes the answer to a query.
pub(super) fn answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, AnswerError> {
    let name: Name<Vec<u8>> = name.parse().map_err(|_| AnswerError::Unrelated)?;
    let message = Message::from_slice(bytes).map_err(|_| AnswerError::Unrelated)?;
    let header = message.header();
    let question = message
        .sole_question()
        .map_err(|_| AnswerError::Unrelated)?;
    let is_answer = header.qr()
        && header.id() == id
        && question.qname().name_eq(&name)
        && question.qtype() == kind.rtype()
        && question.qclass() == Class::IN;
    if !is_answer {
        return Err(AnswerError::Unrelated);
    }
    if header.tc() {
        return Err(AnswerError::Truncated);
    }
    match header.rcode() {
        Rcode::NOERROR | Rcode::NXDOMAIN => {}
        code => {
            return Err(AnswerError::Failed(format!(
                "the DNS server returned {code}"
            )));
        }
    }
    let read = read(message, &name, kind);
    read.map_err(|what| AnswerError::Failed(format!("invalid answer from the DNS server: {what}")))
}

type Parsed<'a> = ParsedName<&'a [u8]>;

fn read(message: &Message<[u8]>, name: &Name<Vec<u8>>, kind: Kind) -> Result<Answer, String> {
    let invalid = |error: domain::base::wire::ParseError| error.to_string();
    let records = || message.answer().map_err(invalid);
    // The canonical name (RFC 1034 §3.6.2).
    let mut owner = name.to_name::<Vec<u8>>();
    for _ in 0..CNAMES_MAX {
        let mut next = None;
        for record in records()?.limit_to_in::<Cname<Parsed<'_>>>() {
            let record = record.map_err(invalid)?;
            if record.owner().name_eq(&owner) {
                next = Some(record.data().cname().to_name::<Vec<u8>>());
                break;
            }
        }
        let Some(next) = next else { break };
        owner = next;
    }
    let mut answer = Answer::default();
    match kind {
        Kind::A => {
            for record in records()?.limit_to_in::<A>() {
                let record = record.map_err(invalid)?;
                if record.owner().name_eq(&owner) {
                    answer.addresses.push(record.data().addr().into());
                }
            }
        }
        Kind::Aaaa => {
            for record in records()?.limit_to_in::<Aaaa>() {
                let record = record.map_err(invalid)?;
                if record.owner().name_eq(&owner) {
                    answer.addresses.push(record.data().addr().into());
                }
            }
        }
        Kind::Https => {
            for record in records()?.limit_to_in::<Https<&[u8], Parsed<'_>>>() {
                let record = record.map_err(invalid)?;
                if record.owner().name_eq(&owner) {
                    take(&mut answer, record.data())?;
                }
            }
            answer.services.sort_by_key(|service| service.priority);
        }
    }
    answer.addresses.truncate(RECORDS_MAX);
    answer.services.truncate(RECORDS_MAX);
    Ok(answer)
}

fn take(answer: &mut Answer, record: &Https<&[u8], Parsed<'_>>) -> Result<(), String> {
    let is_root = record.target().is_root();
    let target = host(record.target());
    let is_usable = is_root || target.is_some();
    if record.is_alias() {
        // The root as the target means that there is no service (RFC 9460 §2.5.1).
        answer.alias = answer.alias.take().or(target);
        return Ok(());
    }
    let parameters = record.params().iter_raw();
    let parameters = parameters.map(|it| (it.key().to_int(), *it.value()));
    let service = Service::parse(record.priority(), target, parameters)?;
    answer.services.extend(service.filter(|_| is_usable));
    Ok(())
}

/// A name in the form of URLs: in lower case, without the final dot. `None` for the root, and for labels of other than letters,
/// digits, `-` and `_`, which no URL, certificate or TLS server name can contain.
fn host(name: &impl domain::base::name::ToName) -> Option<String> {
    let name = name.to_name::<Vec<u8>>();
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_usable = !name.is_root() && name.iter().all(|label| label.iter().all(is_host));
    is_usable.then(|| name.to_string().to_ascii_lowercase())
}
