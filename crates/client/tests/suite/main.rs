//! Tests of the client against servers on the loopback interface.

mod dns;
mod early;
mod fetches;
mod http1;
mod http1_connections;
mod raw;
mod recorder;
mod server;
mod services;
mod tcp;
mod tls;
