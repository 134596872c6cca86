//! The client against a server over loopback.

mod dns;
mod fetches;
mod http1;
mod kept;
mod raw;
mod server;
mod services;
mod tcp;
mod tls;
