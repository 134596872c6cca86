//! Probabilities of the normal and the chi-squared distribution.

/// The probability that a standard normal variate is farther from zero than `z`.
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() / core::f64::consts::SQRT_2)
}

/// The probability that a chi-squared variate with this many degrees of freedom is above `x`.
pub(crate) fn chi_squared_above(x: f64, degrees: usize) -> f64 {
    if degrees == 0 || x <= 0.0 {
        return 1.0;
    }
    upper_gamma(degrees as f64 / 2.0, x / 2.0)
}

/// The regularized upper incomplete gamma function: a power series below the mean (DLMF 8.7.1), a continued fraction
/// above it (DLMF 8.9.2, by Lentz's method).
fn upper_gamma(a: f64, x: f64) -> f64 {
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    front * fraction(a, x)
}

/// The continued fraction of the upper incomplete gamma function, without its front.
fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let held = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut denominator = x + 1.0 - a;
    let (mut upper, mut lower) = (1.0 / TINY, 1.0 / denominator);
    let mut value = lower;
    for step in 1..10_000 {
        let step = f64::from(step);
        let numerator = -step * (step - a);
        denominator += 2.0;
        lower = 1.0 / held(numerator * lower + denominator);
        upper = held(denominator + numerator / upper);
        value *= lower * upper;
        if (lower * upper - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}
