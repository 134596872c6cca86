use super::*;

fn resolved(host: &str, family: Family) -> Result<String, String> {
    let found = resolve(host, family, Duration::from_secs(10));
    found
        .map(|ip| ip.to_string())
        .map_err(|error| error.to_string())
}

/// RFC 6761 §6.3: whatever the system's resolver and its `hosts` file know.
#[test]
fn rfc6761_6_3_localhost_is_the_loopback_address() {
    for host in ["localhost", "a.b.localhost"] {
        let found = [Family::Any, Family::Ipv4, Family::Ipv6].map(|family| resolved(host, family));
        let expected = ["127.0.0.1", "127.0.0.1", "::1"].map(|ip| Ok(ip.to_owned()));
        assert_eq!(found, expected, "{host}");
    }
}

#[test]
fn an_address_of_another_family_is_an_error() {
    assert_eq!(resolved("::1", Family::Any), Ok("::1".to_owned()));
    let error = "could not resolve host `127.0.0.1`: no IPv6 address";
    assert_eq!(resolved("127.0.0.1", Family::Ipv6), Err(error.to_owned()));
}
