//! The addresses to try for an origin, and their order: derived from its resolved addresses, its HTTPS record
//! (RFC 9460 §9) and its alternative services (RFC 7838). Pure functions.

use core::net::SocketAddr;

use crate::dns::Service;

/// Everything that is known about how to reach an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginInfo<'a> {
    /// The addresses of its host, with the port of the origin.
    pub(crate) addresses: &'a [SocketAddr],
    /// The services of its HTTPS record with their addresses; empty if there is no record.
    pub(crate) endpoints: &'a [(&'a Service, Vec<SocketAddr>)],
    /// The port of its alternative service for HTTP/3.
    pub(crate) alternative: Option<u16>,
    /// The address that was last connected to over QUIC.
    pub(crate) last_remote: Option<SocketAddr>,
}

/// The addresses to try over each transport.
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
        // An HTTPS record without `h3` means that HTTP/3 is not supported (RFC 9460 §7.1.2), unless the origin itself has
        // announced it as an alternative service.
        if info.endpoints.is_empty() || info.alternative.is_some() {
            let at = |address: &SocketAddr| {
                SocketAddr::new(address.ip(), info.alternative.unwrap_or(address.port()))
            };
            add(&mut candidates.quic, info.addresses.iter().map(at));
        }
        // If no endpoint of the record is reachable, the origin is used as if there were no record (RFC 9460 §3).
        add(&mut candidates.tcp, info.addresses.iter().copied());
        // The last successful address is tried first.
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
    fn without_a_record_both_transports_use_the_port_of_the_origin() {
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
    fn rfc9460_3_record_endpoints_come_first_and_the_origin_last() {
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
    fn quic_is_not_tried_if_the_record_lacks_h3() {
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
