//! The program `lastbyte`: all commands, with the congestion controls that are built in.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use lastbyte_congestion::Registry;

fn main() -> ExitCode {
    lastbyte::run(std::env::args_os(), &Registry::builtin())
}
