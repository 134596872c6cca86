//! The `preferred_address` transport parameter (RFC 9000 §9.6, §18.2).

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use super::TransportParameterErrorKind;
use crate::{BufferFull, ConnectionId, Encode, Reader, StatelessResetToken, Writer};

/// A server's preferred address (RFC 9000 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// The IPv4 address and port, if any.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address and port, if any. Flow information and scope ID are not sent.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection ID to use with the address. Its sequence number is 1. Not empty.
    pub connection_id: ConnectionId,
    /// The stateless reset token of that connection ID.
    pub reset_token: StatelessResetToken,
}

impl PreferredAddress {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, TransportParameterErrorKind> {
        // An all-zero address and port means that there is none of that family.
        let ipv4 = SocketAddrV4::new(Ipv4Addr::from(reader.array::<4>()?), reader.u16()?);
        let ipv4 = Some(ipv4).filter(|ipv4| !ipv4.ip().is_unspecified() || ipv4.port() != 0);
        let ipv6 = SocketAddrV6::new(Ipv6Addr::from(reader.array::<16>()?), reader.u16()?, 0, 0);
        let ipv6 = Some(ipv6).filter(|ipv6| !ipv6.ip().is_unspecified() || ipv6.port() != 0);
        let len = reader.u8()?.into();
        let connection_id = ConnectionId::new(reader.bytes(len)?)
            .filter(|id| !id.is_empty())
            .ok_or(TransportParameterErrorKind::OutOfRange)?;
        Ok(Self {
            ipv4,
            ipv6,
            connection_id,
            reset_token: StatelessResetToken::new(reader.array()?),
        })
    }
}

impl Encode for PreferredAddress {
    fn encoded_len(&self) -> usize {
        (4 + 2) + (16 + 2) + 1 + self.connection_id.len() + StatelessResetToken::LEN
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        let (ipv4, ipv4_port) = self
            .ipv4
            .map_or((Ipv4Addr::UNSPECIFIED, 0), |ipv4| (*ipv4.ip(), ipv4.port()));
        let (ipv6, ipv6_port) = self
            .ipv6
            .map_or((Ipv6Addr::UNSPECIFIED, 0), |ipv6| (*ipv6.ip(), ipv6.port()));
        writer.atomically(|writer| {
            writer.bytes(&ipv4.octets())?;
            writer.u16(ipv4_port)?;
            writer.bytes(&ipv6.octets())?;
            writer.u16(ipv6_port)?;
            writer.u8(self.connection_id.len() as u8)?;
            writer.bytes(self.connection_id.as_slice())?;
            writer.bytes(self.reset_token.as_bytes())
        })
    }
}
