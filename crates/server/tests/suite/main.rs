//! A server in this process, over loopback, by the bytes that clients send and get.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests are clients with sockets and files of their own"
)]

#[path = "../corpus/application.rs"]
#[expect(dead_code, reason = "what the corpus uses of it")]
mod application;
mod chaos;
mod counting;
mod ends;
mod expect;
mod floods;
mod heads;
mod http1;
mod http2;
mod http3;
mod interim;
mod limits;
mod nginx;
mod operations;
mod proxy;
mod repeats;
mod replay;
mod routes;
mod serving;
mod threads;
mod upstream;
mod windows;
mod world;
