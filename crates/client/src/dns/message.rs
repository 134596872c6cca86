//! Questions to DNS servers and their answers (RFC 1035 §4, RFC 6891, RFC 9460), as bytes. Never: opens a socket.

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

/// How large an answer over UDP may be: what passes everywhere without fragments.
const UDP_LEN_MAX: u16 = 1232;
/// How many names one leads to the next by, in an answer.
const CNAMES_MAX: usize = 8;
/// How many services or addresses are looked at.
pub(super) const RECORDS_MAX: usize = 16;

/// What is asked for.
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

/// What a server answered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) addresses: Vec<IpAddr>,
    /// Where an HTTPS record in `AliasMode` leads.
    pub(super) alias: Option<String>,
    /// Those in `ServiceMode`, the first to be tried first; without a target where it is the name that was asked for.
    pub(super) services: Vec<Service>,
}

/// Why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerError {
    /// It answers something else: whoever sent it, it is as if it was not there.
    Unrelated,
    /// It is not all of it.
    Truncated,
    /// There is none.
    Failed(String),
}

/// A question; `None` if that is no name.
pub(super) fn question(id: u16, name: &str, kind: Kind) -> Option<Vec<u8>> {
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

/// What a message says to a question.
pub(super) fn answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, AnswerError> {
    let name: Name<Vec<u8>> = name.parse().map_err(|_| AnswerError::Unrelated)?;
    let message = Message::from_slice(bytes).map_err(|_| AnswerError::Unrelated)?;
    let header = message.header();
    let asked = message
        .sole_question()
        .map_err(|_| AnswerError::Unrelated)?;
    let is_answer = header.qr()
        && header.id() == id
        && asked.qname().name_eq(&name)
        && asked.qtype() == kind.rtype()
        && asked.qclass() == Class::IN;
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
                "the DNS server answers {code}"
            )));
        }
    }
    let read = read(message, &name, kind);
    read.map_err(|what| AnswerError::Failed(format!("the DNS server's answer is none: {what}")))
}

type Parsed<'a> = ParsedName<&'a [u8]>;

fn read(message: &Message<[u8]>, name: &Name<Vec<u8>>, kind: Kind) -> Result<Answer, String> {
    let wrong = |error: domain::base::wire::ParseError| error.to_string();
    let records = || message.answer().map_err(wrong);
    // Where the name leads (RFC 1034 §3.6.2).
    let mut owner = name.to_name::<Vec<u8>>();
    for _ in 0..CNAMES_MAX {
        let mut next = None;
        for record in records()?.limit_to_in::<Cname<Parsed<'_>>>() {
            let record = record.map_err(wrong)?;
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
                let record = record.map_err(wrong)?;
                if record.owner().name_eq(&owner) {
                    answer.addresses.push(record.data().addr().into());
                }
            }
        }
        Kind::Aaaa => {
            for record in records()?.limit_to_in::<Aaaa>() {
                let record = record.map_err(wrong)?;
                if record.owner().name_eq(&owner) {
                    answer.addresses.push(record.data().addr().into());
                }
            }
        }
        Kind::Https => {
            for record in records()?.limit_to_in::<Https<&[u8], Parsed<'_>>>() {
                let record = record.map_err(wrong)?;
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
    if record.is_alias() {
        // To the root: there is no such service (RFC 9460 §2.5.1).
        if !is_root && answer.alias.is_none() {
            answer.alias = Some(text(record.target()));
        }
        return Ok(());
    }
    let target = (!is_root).then(|| text(record.target()));
    let parameters = record.params().iter_raw();
    let parameters = parameters.map(|it| (it.key().to_int(), *it.value()));
    let service = Service::parse(record.priority(), target, parameters)?;
    answer.services.extend(service);
    Ok(())
}

/// A name as addresses have it: in lower case, without the dot at its end.
fn text(name: &impl domain::base::name::ToName) -> String {
    let name = name.to_name::<Vec<u8>>();
    name.to_string().to_ascii_lowercase()
}
