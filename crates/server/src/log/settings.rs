//! The settings of a log.

use lastbyte_record::packed::Packing;

/// Rotation and compression of a log file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// Size in bytes at which the file is rotated to `NAME.1`, the previous `NAME.1` to `NAME.2`, and so on, and a new
    /// one is created. Default: never.
    pub rotate_at: Option<u64>,
    /// Number of rotated files to keep. Default: 0, which means 1.
    pub keep: u32,
    /// Compression of rotated files; their names then end with `.gz` or `.zst`. Default: none.
    pub packing: Packing,
}
