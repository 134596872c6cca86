//! The states of the two parts of a stream (RFC 9000 §3.1, §3.2), as tables.
//!
//! Owns the transitions, and nothing of the data. `None` in the table is an impossible transition; the parts never
//! request one. The whole table is tested.

#[cfg(test)]
mod tests;

/// The state of a sending part (RFC 9000 §3.1, figure 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendState {
    /// Open; nothing was sent.
    Ready,
    /// Data is being sent.
    Send,
    /// All data and the end of the stream were sent once.
    DataSent,
    /// The stream was reset; `RESET_STREAM` is sent or about to be.
    ResetSent,
    /// Terminal: all data was acknowledged.
    DataRecvd,
    /// Terminal: `RESET_STREAM` was acknowledged.
    ResetRecvd,
}

/// An event of a sending part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SendInput {
    /// STREAM without FIN, or `STREAM_DATA_BLOCKED`, is sent.
    Data,
    /// STREAM with FIN is sent.
    Fin,
    /// `RESET_STREAM` is sent.
    Reset,
    /// The last of the data and the FIN are acknowledged.
    AllAcked,
    /// `RESET_STREAM` is acknowledged.
    ResetAcked,
}

impl SendState {
    pub(super) const fn after(self, input: SendInput) -> Option<Self> {
        use SendInput as I;
        Some(match (self, input) {
            (Self::Ready | Self::Send, I::Data) => Self::Send,
            (Self::Ready | Self::Send, I::Fin) | (Self::DataSent, I::Data | I::Fin) => {
                Self::DataSent
            }
            (Self::Ready | Self::Send | Self::DataSent, I::Reset) => Self::ResetSent,
            (Self::DataSent, I::AllAcked) => Self::DataRecvd,
            (Self::ResetSent, I::ResetAcked) => Self::ResetRecvd,
            _ => return None,
        })
    }

    /// Whether nothing more will be sent or acknowledged.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::DataRecvd | Self::ResetRecvd)
    }

    /// Whether data may be sent, for the first time or again.
    pub const fn sends_data(self) -> bool {
        matches!(self, Self::Ready | Self::Send | Self::DataSent)
    }
}

/// The state of a receiving part (RFC 9000 §3.2, figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiveState {
    /// Data is expected.
    Recv,
    /// The end of the stream is known; data is missing.
    SizeKnown,
    /// All data has arrived; the application has not read all of it.
    DataRecvd,
    /// The peer reset the stream; the application has not been notified.
    ResetRecvd,
    /// Terminal: the application read all data.
    DataRead,
    /// Terminal: the application knows that the peer reset the stream.
    ResetRead,
}

/// An event of a receiving part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReceiveInput {
    /// The end of the stream becomes known by a FIN.
    Fin,
    /// The last missing data arrived.
    AllData,
    /// `RESET_STREAM` is received.
    Reset,
    /// The application has read all data.
    Read,
    /// The application was notified of the reset.
    ResetReported,
}

impl ReceiveState {
    pub(super) const fn after(self, input: ReceiveInput) -> Option<Self> {
        use ReceiveInput as I;
        Some(match (self, input) {
            (Self::Recv | Self::SizeKnown, I::Fin) => Self::SizeKnown,
            // Both optional transitions of figure 3 are not used: once all data has arrived a reset changes nothing,
            // and after a reset data is discarded.
            (Self::SizeKnown, I::AllData) | (Self::DataRecvd, I::Fin | I::Reset) => Self::DataRecvd,
            (Self::Recv | Self::SizeKnown, I::Reset) | (Self::ResetRecvd, I::Fin | I::Reset) => {
                Self::ResetRecvd
            }
            (Self::DataRecvd, I::Read) | (Self::DataRead, I::Fin | I::Reset) => Self::DataRead,
            (Self::ResetRecvd, I::ResetReported) | (Self::ResetRead, I::Fin | I::Reset) => {
                Self::ResetRead
            }
            _ => return None,
        })
    }

    /// Whether nothing more will be delivered to the application.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::DataRead | Self::ResetRead)
    }

    /// Whether data is missing: only then are data, `STOP_SENDING` and `MAX_STREAM_DATA` useful (§3.5).
    pub const fn lacks_data(self) -> bool {
        matches!(self, Self::Recv | Self::SizeKnown)
    }
}
