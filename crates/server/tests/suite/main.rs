//! A server in this process, over loopback, by the bytes that clients send and get.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests are clients with sockets and files of their own"
)]

mod checks;
mod counting;
mod expect;
mod floods;
mod heads;
mod http1;
mod http2;
mod http3;
mod interim;
mod limits;
mod nginx;
mod observing;
mod operations;
mod proxy;
mod repeats;
mod replay;
mod routes;
mod servers;
mod serving;
mod threads;
mod timing;
mod tunnels;
mod upstream;
mod windows;
