//! By which ways an origin can be reached, and in which order: what its addresses, its HTTPS record (RFC 9460 §9) and what it
//! said before (RFC 7838) come to. Pure.

use core::net::SocketAddr;

use crate::dns::Service;

/// What is info of an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginInfo<'a> {
    /// Where its host is, on its own port.
    pub(crate) addresses: &'a [SocketAddr],
    /// What its HTTPS record says, with where that is; nothing where there is none.
    pub(crate) endpoints: &'a [(&'a Service, Vec<SocketAddr>)],
    /// The port on which it said that it speaks HTTP/3.
    pub(crate) alternative: Option<u16>,
    /// Who answered last over QUIC.
    pub(crate) last_remote: Option<SocketAddr>,
}

/// What is tried over each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) quic: Vec<SocketAddr>,
    pub(crate) tcp: Vec<SocketAddr>,
}

impl Candidates {
    pub(crate) fn new(info: &OriginInfo<'_>) -> Self {
        let mut candidates = Self::default();
        for (service, addresses) in info.endpoints {
            if service.has_quic() {
                add(&mut candidates.quic, addresses.iter().copied());
            }
            if service.has_tcp() {
                add(&mut candidates.tcp, addresses.iter().copied());
            }
        }
        // A record that does not speak of HTTP/3 says that it is not spoken: nobody waits for it then (RFC 9460 §7.1.2). An
        // origin that says itself that it is, is to be believed.
        if info.endpoints.is_empty() || info.alternative.is_some() {
            let at = |address: &SocketAddr| {
                SocketAddr::new(address.ip(), info.alternative.unwrap_or(address.port()))
            };
            add(&mut candidates.quic, info.addresses.iter().map(at));
        }
        // Where no endpoint answers, it is as if there was no record (RFC 9460 §3).
        add(&mut candidates.tcp, info.addresses.iter().copied());
        // What answered last is asked first.
        if let Some(place) = candidates
            .quic
            .iter()
            .position(|at| Some(*at) == info.last_remote)
        {
            candidates.quic[..=place].rotate_right(1);
        }
        candidates
    }
}

fn add(all: &mut Vec<SocketAddr>, more: impl Iterator<Item = SocketAddr>) {
    for address in more {
        if !all.contains(&address) {
            all.push(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn service(alpn: &[&str]) -> Service {
        Service {
            alpn: alpn.iter().map(|name| (*name).to_owned()).collect(),
            ..Service::default()
        }
    }

    #[test]
    fn without_a_record_both_are_tried_on_the_port_of_the_address() {
        let addresses = at(&["[::1]:443", "1.0.0.1:443", "1.0.0.2:443"]);
        let mut info = OriginInfo {
            addresses: &addresses,
            endpoints: &[],
            alternative: None,
            last_remote: None,
        };
        let candidates = Candidates::new(&info);
        assert_eq!(
            (&candidates.quic, &candidates.tcp),
            (&addresses, &addresses)
        );
        info.alternative = Some(8443);
        info.last_remote = Some(at(&["1.0.0.1:8443"])[0]);
        let candidates = Candidates::new(&info);
        let expected = at(&["1.0.0.1:8443", "[::1]:8443", "1.0.0.2:8443"]);
        assert_eq!((&candidates.quic, &candidates.tcp), (&expected, &addresses));
    }

    #[test]
    fn rfc9460_3_a_record_leads_and_the_origin_is_what_is_left() {
        let addresses = at(&["1.0.0.1:443"]);
        let (both, quic, tcp) = (
            service(&["h3", "h2"]),
            service(&["h3"]),
            service(&["http/1.1"]),
        );
        let endpoints = [
            (&quic, at(&["3.0.0.1:443"])),
            (&both, at(&["2.0.0.1:8443"])),
            (&tcp, at(&["4.0.0.1:443", "1.0.0.1:443"])),
        ];
        let info = OriginInfo {
            addresses: &addresses,
            endpoints: &endpoints,
            alternative: None,
            last_remote: None,
        };
        let candidates = Candidates::new(&info);
        assert_eq!(candidates.quic, at(&["3.0.0.1:443", "2.0.0.1:8443"]));
        let expected = at(&["2.0.0.1:8443", "4.0.0.1:443", "1.0.0.1:443"]);
        assert_eq!(candidates.tcp, expected);
    }

    #[test]
    fn who_does_not_speak_of_http3_is_not_asked_for_it() {
        let addresses = at(&["1.0.0.1:443"]);
        let tcp = service(&["h2"]);
        let endpoints = [(&tcp, addresses.clone())];
        let mut info = OriginInfo {
            addresses: &addresses,
            endpoints: &endpoints,
            alternative: None,
            last_remote: None,
        };
        assert_eq!(Candidates::new(&info).quic, []);
        info.alternative = Some(444);
        assert_eq!(Candidates::new(&info).quic, at(&["1.0.0.1:444"]));
    }
}
