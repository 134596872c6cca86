//! Probabilities of the normal and the chi-squared distribution, and quantiles of the normal and of Student's.

/// The probability that a standard normal variate is farther from zero than `z`.
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() / core::f64::consts::SQRT_2)
}

/// The value that a standard normal variate is above with this probability, below one half.
pub(crate) fn normal_quantile(tail: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 40.0f64);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if normal_two_sided(middle) > 2.0 * tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The value that a variate of Student's distribution is above with this probability, by its expansion around the normal one
/// (Abramowitz and Stegun, 26.7.5): `scipy.stats.t.isf`, to 0.1 % from 10 degrees of freedom on; below 3 it is too small.
pub(crate) fn student_quantile(tail: f64, degrees: f64) -> f64 {
    student_of(normal_quantile(tail), degrees)
}

/// The value that a variate of Student's distribution is above with the probability with which a standard normal one is above `z`.
pub(crate) fn student_of(z: f64, degrees: f64) -> f64 {
    let square = z * z;
    // The coefficients of the powers of z², from the highest, and their divisor.
    let terms: [(&[f64], f64); 4] = [
        (&[1.0, 1.0], 4.0),
        (&[5.0, 16.0, 3.0], 96.0),
        (&[3.0, 19.0, 17.0, -15.0], 384.0),
        (&[79.0, 776.0, 1482.0, -1920.0, -945.0], 92_160.0),
    ];
    let mut value = z;
    for (power, (coefficients, divisor)) in (1..).zip(terms) {
        let sum = coefficients.iter().fold(0.0, |sum, one| sum * square + one);
        value += z * sum / divisor / degrees.powi(power);
    }
    value
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
