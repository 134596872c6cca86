//! The client against a server over loopback.

mod dns;
mod fetches;
mod http1;
mod raw;
mod recorder;
mod server;
mod services;
mod tcp;
mod tls;
