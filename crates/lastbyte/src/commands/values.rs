//! Values of flags: what all commands read alike, with errors that say what is expected. The grammar is that of
//! [`lastbyte_sim::units`].

use core::{num::NonZeroUsize, ops::RangeInclusive};

use lastbyte_sim::units;

/// A size in bytes within these bounds.
pub(crate) fn size<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let bytes = units::bytes(text).map_err(|error| error.to_string())?;
        let inside = Some(bytes).filter(|bytes| range.contains(bytes));
        inside
            .and_then(|bytes| T::try_from(bytes).ok())
            .ok_or_else(|| format!("expected {} to {} bytes", range.start(), range.end()))
    }
}

/// A count within these bounds.
pub(crate) fn count<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = units::count(text).ok();
        let inside = number.filter(|number| range.contains(number));
        inside
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                format!(
                    "expected a whole number from {} to {}",
                    range.start(),
                    range.end()
                )
            })
    }
}

/// A count of one or more, at most this.
pub(crate) fn positive(max: u64) -> impl Fn(&str) -> Result<NonZeroUsize, String> + Clone {
    move |text| {
        let number = count::<usize>(1..=max)(text)?;
        NonZeroUsize::new(number).ok_or_else(|| "expected 1 or more".to_owned())
    }
}

/// More threads than this are a mistake.
pub(crate) const THREADS_MAX: u64 = 4096;
