//! The process, with the names that Prometheus' client libraries use.
//!
//! Read from `/proc`, on a thread that may block: Linux before 6.2 has no count of open files, so that its entries are counted,
//! which takes milliseconds with 10 000 connections.

#![expect(clippy::disallowed_methods, reason = "files of `/proc`")]

use std::fs;

use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

/// Values of the process. One that the system does not provide is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Process {
    /// User and system time, in seconds.
    pub(super) cpu: Option<f64>,
    /// In bytes.
    pub(super) resident: Option<u64>,
    pub(super) open_files: Option<u64>,
    /// The soft limit.
    pub(super) open_files_max: Option<u64>,
    /// In seconds since 1970.
    pub(super) started: Option<f64>,
}

impl Process {
    pub(super) fn read() -> Self {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        Self {
            cpu: Some(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9),
            resident: field("/proc/self/statm", 1).map(|pages| pages * page_size() as u64),
            open_files: open_files(),
            open_files_max: getrlimit(Resource::Nofile).current,
            started: started(),
        }
    }
}

/// A number of a file, by the index of its word.
fn field(path: &str, index: usize) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.split_whitespace().nth(index)?.parse().ok()
}

fn open_files() -> Option<u64> {
    let folder = "/proc/self/fd";
    match fs::metadata(folder).ok()?.len() {
        // The directory that is read is one of them.
        0 => (fs::read_dir(folder).ok()?.count() as u64).checked_sub(1),
        count => Some(count),
    }
}

fn started() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces. Field 22 of proc_pid_stat(5) is the 20th after it.
    let (_, rest) = text.rsplit_once(')')?;
    let ticks: f64 = rest.split_whitespace().nth(19)?.parse().ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "));
    let boot: f64 = boot?.trim().parse().ok()?;
    Some(boot + ticks / clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use lastbyte_driver::Clock;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_has_memory_files_and_a_start() {
        let before = Process::read();
        let folder = fs::read_dir("/proc/self").expect("a folder");
        let with_folder = Process::read();
        assert!(before.cpu <= with_folder.cpu);
        assert!(with_folder.resident.expect("memory") > 1 << 20);
        let most = with_folder.open_files_max.expect("a limit");
        // Other tests open files at the same time.
        assert!((4..most).contains(&with_folder.open_files.expect("files")));
        drop(folder);
        let started = with_folder.started.expect("a start");
        let age = Clock::since_epoch().as_secs_f64() - started;
        assert!((-1.0..86_400.0).contains(&age), "{age} s");
    }
}
