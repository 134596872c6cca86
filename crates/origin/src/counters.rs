//! Which statistics of the transport are counters.

use std::sync::LazyLock;

use lastbyte_record::connection_log::{
    Snapshot,
    keys::STATISTICS,
    schema::{Field, Unit},
};

/// Whether a statistic of the transport can be summed over connections: a counter, not a state or a maximum.
fn is_sum(field: &Field<Snapshot>) -> bool {
    let is_count = matches!(field.unit, Unit::Count | Unit::Bytes | Unit::Flag);
    let key = field.key.name();
    let is_named = key.starts_with("num-") || key.starts_with("cc.num-");
    is_count && is_named && !key.contains("max-delayed") && !key.contains("largest")
}

/// The statistics of the transport that are summed over connections.
pub fn summed() -> &'static [&'static Field<Snapshot>] {
    static SUMMED: LazyLock<Vec<&Field<Snapshot>>> =
        LazyLock::new(|| STATISTICS.iter().filter(|field| is_sum(field)).collect());
    &SUMMED
}
