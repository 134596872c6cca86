//! Drift-free transmission times.
//!
//! Work is measured in nanobits, of which a bit has 10⁹: a link of *r* bit/s transmits exactly *r* nanobits per
//! nanosecond, so all arithmetic is on integers. The end of a packet is rounded up to a nanosecond; the unused capacity
//! in that nanosecond is credited to a packet that follows immediately. A train of packets therefore takes its total
//! number of bits divided by the rate, however many packets it has.

use lastbyte_units::Rate;

pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The work of transmitting `bytes`, in nanobits.
pub(crate) const fn work_of(bytes: u32) -> u128 {
    bytes as u128 * 8 * NANOS_PER_SECOND as u128
}

/// The number of nanoseconds that `work` takes at `rate`, rounded up, and the unused work in the last nanosecond. Most
/// work fits in 64 bits, where division is several times faster.
///
/// Returns `None` if the rate is zero.
pub(crate) fn nanos_for(work: u128, rate: Rate) -> Option<(u64, u64)> {
    if work == 0 {
        return Some((0, 0));
    }
    if rate.bits_per_second() == 0 {
        return None;
    }
    if let Ok(work) = u64::try_from(work) {
        let nanos = work.div_ceil(rate.bits_per_second());
        // The unused work is less than the rate. The product may overflow 64 bits, but the subtraction wraps back.
        return Some((
            nanos,
            nanos
                .wrapping_mul(rate.bits_per_second())
                .wrapping_sub(work),
        ));
    }
    let nanos = work.div_ceil(u128::from(rate.bits_per_second()));
    let rest = nanos * u128::from(rate.bits_per_second()) - work;
    Some((saturate(nanos), saturate(rest)))
}

pub(crate) fn saturate(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_divides_by_zero() {
        assert_eq!(nanos_for(1, Rate::ZERO), None);
        assert_eq!(nanos_for(0, Rate::ZERO), Some((0, 0)));
    }

    proptest! {
        #[test]
        fn any_work_equals_its_time_less_the_unused_work(bytes: u32, rate in 1u64..) {
            let work = work_of(bytes);
            let (nanos, rest) =
                nanos_for(work, Rate::from_bits_per_second(rate)).expect("a rate");
            prop_assert!(rest < rate);
            prop_assert_eq!(u128::from(nanos) * u128::from(rate), work + u128::from(rest));
        }
    }
}
