//! The memory limit of a query: its default, the memory in use, and the files for what exceeds it.

use lastbyte_query::{Memory, Spill, TemporaryFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(test)]
mod tests;

/// The limit of `--max-memory`; by default three quarters of what the system or its control group has, if that is known.
pub(super) fn limit(given: Option<u64>) -> Option<Memory> {
    let bytes_max = given.or_else(|| Some(available()? / 4 * 3))?;
    Some(Memory {
        bytes_max,
        used: memory_used,
    })
}

/// What the program and the input that is being read take beside rows, in bytes: measured as 37 MB on two threads.
const FIXED: u64 = 40 << 20;
/// Rows of `sort` in memory, at least, in bytes.
const ROWS_MIN: u64 = 1 << 20;

/// Rows of `sort` in memory are at most a third of what the limit leaves for them: sorting them takes about as much again twice.
/// Groups are at most half.
pub(super) fn spill(limit: Memory) -> Spill {
    Spill {
        bytes_max: (limit.bytes_max.saturating_sub(FIXED) / 3).max(ROWS_MIN),
        directory: directory().display().to_string(),
        create,
    }
}

/// Parses a size; `300M` is 300 MiB, as in `sort -S` and `ulimit`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let parse = crate::commands::values::size::<u64>(1 << 20..=1 << 50);
    let is_short = text.ends_with(['K', 'M', 'G', 'T', 'k', 'm', 'g', 't'])
        && text
            .bytes()
            .rev()
            .nth(1)
            .is_some_and(|byte| byte.is_ascii_digit());
    if !is_short {
        return parse(text);
    }
    let (number, unit) = text.split_at(text.len() - 1);
    parse(&format!("{number}{}iB", unit.to_ascii_uppercase()))
}

/// The memory of the system, or of the control group if it has a limit.
fn available() -> Option<u64> {
    let meminfo = super::read(Path::new("/proc/meminfo")).ok()?;
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    let group = super::read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let path = group
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap_or_default();
    let limits = Path::new("/sys/fs/cgroup").join(path);
    let limits = limits
        .ancestors()
        .take_while(|path| path.starts_with("/sys/fs/cgroup"));
    let limits = limits.filter_map(|path| {
        super::read(&path.join("memory.max"))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    });
    limits.chain([kilobytes * 1024]).min()
}

/// The resident memory of this process, if `/proc` provides it.
fn memory_used() -> Option<u64> {
    let statm = super::read(Path::new("/proc/self/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn directory() -> PathBuf {
    std::env::temp_dir()
}

/// A file in the directory for temporary files. It has no name from the start, so that nothing is left however the process ends.
fn create() -> io::Result<Box<dyn TemporaryFile>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = directory().join(format!(".lastbyte-query-{}-{number}", std::process::id()));
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(Box::new(file))
}
