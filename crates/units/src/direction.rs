//! The two directions of a path.

/// A direction of the path between a server and its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the server.
    Up,
    /// From the server to a client.
    #[default]
    Down,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// The name of its link.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "downlink",
            Self::Up => "uplink",
        }
    }
}
