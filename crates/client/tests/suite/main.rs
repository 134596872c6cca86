//! The client against a server over loopback.

mod fetches;
mod http1;
mod kept;
mod raw;
mod server;
mod tcp;
mod tls;
