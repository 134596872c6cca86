//! The client against a server over loopback.

mod fetches;
mod server;
