//! The addresses of a path.

use core::net::SocketAddr;

/// The two addresses of a path (RFC 9000 §9): a 4-tuple without the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkPath {
    /// The local address. Its IP address is unspecified if the socket does not report it; such an address equals any
    /// other with the same port.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl NetworkPath {
    /// Whether both are the same path, as far as known.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_vague = || self.local.ip().is_unspecified() || other.local.ip().is_unspecified();
        self.remote == other.remote
            && (self.local == other.local
                || (self.local.port() == other.local.port() && is_vague()))
    }

    /// Whether at most the peer's port differs, as after a NAT rebinding (RFC 9000 §9.4).
    pub fn is_same_but_for_port(&self, other: &Self) -> bool {
        self.remote.ip() == other.remote.ip()
    }
}

#[cfg(test)]
mod tests {
    use super::NetworkPath;

    fn path(local: &str, remote: &str) -> NetworkPath {
        NetworkPath {
            local: local.parse().expect("an address"),
            remote: remote.parse().expect("an address"),
        }
    }

    #[test]
    fn an_unspecified_local_address_equals_any_with_its_port() {
        let known = path("10.0.0.1:443", "10.0.0.2:1000");
        assert!(known.is_same(&path("0.0.0.0:443", "10.0.0.2:1000")));
        assert!(!known.is_same(&path("0.0.0.0:444", "10.0.0.2:1000")));
        assert!(!known.is_same(&path("10.0.0.3:443", "10.0.0.2:1000")));
        assert!(!known.is_same(&path("10.0.0.1:443", "10.0.0.2:1001")));
    }

    #[test]
    fn rfc9000_9_4_another_port_is_a_nat_another_host_is_not() {
        let known = path("10.0.0.1:443", "10.0.0.2:1000");
        assert!(known.is_same_but_for_port(&path("10.0.0.1:443", "10.0.0.2:1001")));
        assert!(!known.is_same_but_for_port(&path("10.0.0.1:443", "10.0.0.3:1000")));
    }
}
