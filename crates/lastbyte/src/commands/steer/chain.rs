//! The sums of the decisions: each line has one, of its text and of the sum of the line before it, so that the lines are a chain.
//!
//! A line that was edited, inserted, removed or moved does not have the sum that follows from the line before it. There is no key:
//! lines whose sums were all computed again are a chain, too, but not the one whose sum is in the experiment file.

use core::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use lastbyte_steer::ramp::Look;

/// In place of a sum, without a decision: as long as one.
pub(super) const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A look with the sum of its line after the one with the sum `before`, and that line.
pub(super) fn added(before: &str, mut look: Look) -> serde_json::Result<(Look, String)> {
    look.sum.clear();
    look.sum = sum(before, &serde_json::to_string(&look)?);
    let line = serde_json::to_string(&look)?;
    Ok((look, line))
}

/// Whether a line, which is this look, is as it was written after the one with the sum `before`.
pub(super) fn follows(before: &str, line: &str, look: &Look) -> bool {
    let end = format!(",\"sum\":\"{}\"}}", look.sum);
    let text = line.strip_suffix(&end);
    text.is_some_and(|text| sum(before, &format!("{text}}}")) == look.sum)
}

/// The SHA-256 digest of the sum before and the text of a look without a sum.
fn sum(before: &str, text: &str) -> String {
    let digest = digest(&SHA256, format!("{before}{text}").as_bytes());
    let mut sum = String::new();
    for byte in digest.as_ref() {
        // Writing to a `String` cannot fail.
        let _ = write!(sum, "{byte:02x}");
    }
    sum
}
