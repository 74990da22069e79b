//! Scalars: the domain every number lives in, and the only transcendental calls of the crate.
//!
//! Weights, inputs and activations are kept in **the domain**: zero, or a magnitude in
//! `[2⁻⁵⁰, 2⁵⁰]`. A product of two such numbers is at most 2¹⁰⁰, so a sum of up to 2²⁷ products is
//! finite and no `∞ − ∞` can arise; the smallest product is 2⁻¹⁰⁰ and the smallest difference of two
//! products 2⁻¹²³, so no subnormal arises either, and a process that runs with flush-to-zero (a
//! foreign library may have set it) still gets the same bits.
//!
//! `exp`, `ln`, … come from libm on every target, also where the platform has its own: the host's
//! `expf` differs from libm's in the last bit for about one input in two hundred.

/// The smallest non-zero magnitude of the domain, 2⁻⁵⁰ ≈ 8.9e-16.
pub const SMALLEST: f32 = 1.0 / LARGEST;
/// The largest magnitude of the domain, 2⁵⁰ ≈ 1.1e15.
pub const LARGEST: f32 = (1u64 << 50) as f32;

/// Shift inside every softplus of method.md E1–E3: a raw output of 0 starts at a small spread.
pub const SOFTPLUS_SHIFT: f32 = 5.0;
/// Floor added to every standard deviation of method.md E1–E3.
pub const STD_FLOOR: f32 = 1e-5;

/// `x` brought into the domain: saturated at ±2⁵⁰, flushed to zero below 2⁻⁵⁰.
#[inline(always)]
#[must_use]
pub fn tame(x: f32) -> f32 {
    let x = if x > LARGEST { LARGEST } else { x };
    let x = if x < -LARGEST { -LARGEST } else { x };
    flush(x)
}

/// Zero for a magnitude below the domain's smallest, else `x`.
#[inline(always)]
#[must_use]
pub fn flush(x: f32) -> f32 {
    if x.abs() < SMALLEST { 0.0 } else { x }
}

/// Whether `x` is a number of the domain; false for NaN and infinities.
#[inline(always)]
#[must_use]
pub const fn in_domain(x: f32) -> bool {
    x == 0.0 || (x.abs() >= SMALLEST && x.abs() <= LARGEST)
}

/// `x` limited to `[0, f32::MAX]`: a divergence that rounding made negative or arithmetic infinite.
/// NaN, which no checked model can give, is the largest: never "familiar".
#[inline(always)]
#[must_use]
pub fn saturate(x: f32) -> f32 {
    let x = if x <= 0.0 { 0.0 } else { x };
    if x <= f32::MAX { x } else { f32::MAX }
}

/// eˣ, within 1 ulp.
#[inline(always)]
#[must_use]
pub fn exp(x: f32) -> f32 {
    libm::expf(x)
}

/// Natural logarithm, within 1 ulp.
#[inline(always)]
#[must_use]
pub fn ln(x: f32) -> f32 {
    libm::logf(x)
}

/// 1/√x of a positive normal number, within 1 ulp.
///
/// Newton's iteration from the exponent trick: ten multiplications, no branch, no square-root
/// instruction, so every target computes the same and a compiler can widen it. (libm's own square root is
/// a loop on targets without an intrinsic, and inline assembly on x86, which stalls AVX code.)
#[inline(always)]
#[must_use]
pub fn rsqrt(x: f32) -> f32 {
    /// Halves and negates the exponent; chosen with the two factors below to make the first error
    /// smallest, 6.5e-4 after the first step.
    const MAGIC: u32 = 0x5f1f_fff9;
    let half = 0.5 * x;
    let y = f32::from_bits(MAGIC.wrapping_sub(x.to_bits() >> 1));
    let y = y * (0.703_952_25 * (2.389_244_6 - x * y * y));
    let y = y * (1.5 - half * y * y);
    // The last step adds a small correction instead of multiplying: it rounds once.
    y + y * (0.5 - half * y * y)
}

/// √x of zero or a positive normal number, within 2 ulp: `x · rsqrt(x)`.
#[inline(always)]
#[must_use]
pub fn sqrt(x: f32) -> f32 {
    x * rsqrt(x)
}

/// ln(1 + eˣ) without overflow: `max(x, 0) + ln(1 + e^−|x|)`.
#[inline(always)]
#[must_use]
pub fn softplus(x: f32) -> f32 {
    let positive = if x > 0.0 { x } else { 0.0 };
    positive + libm::log1pf(libm::expf(-x.abs()))
}

/// Standard deviation from a raw encoder output: `softplus(raw − 5) + 1e-5` (method.md E1–E3).
#[inline(always)]
#[must_use]
pub fn std_from_raw(raw: f32) -> f32 {
    softplus(raw - SOFTPLUS_SHIFT) + STD_FLOOR
}

/// Exponential linear unit with unit slope: x for x > 0, eˣ − 1 below.
#[inline(always)]
#[must_use]
pub fn elu(x: f32) -> f32 {
    if x > 0.0 { x } else { libm::expm1f(x) }
}

/// Gaussian error linear unit, exact form: `x Φ(x)`.
#[inline(always)]
#[must_use]
pub fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * core::f32::consts::FRAC_1_SQRT_2))
}

/// Sigmoid linear unit: `x / (1 + e^−x)`.
#[inline(always)]
#[must_use]
pub fn silu(x: f32) -> f32 {
    // For very negative x the exponential overflows to ∞ and the quotient is −0, the right limit.
    x / (1.0 + libm::expf(-x))
}

/// Hyperbolic tangent.
#[inline(always)]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    libm::tanhf(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Relative error of the composed functions: a few ulp of f32.
    const RELATIVE: f64 = 4e-7;

    #[test]
    fn the_domain_has_the_bounds_that_its_name_says() {
        assert_eq!(LARGEST, libm::powf(2.0, 50.0));
        assert_eq!(SMALLEST, libm::powf(2.0, -50.0));
        assert_eq!(tame(f32::MAX), LARGEST);
        assert_eq!(tame(f32::MIN), -LARGEST);
        assert_eq!(tame(SMALLEST), SMALLEST);
        assert_eq!(tame(SMALLEST * 0.99), 0.0);
        assert_eq!(tame(f32::from_bits(1)), 0.0);
        assert!(!in_domain(f32::NAN) && !in_domain(f32::INFINITY) && !in_domain(f32::from_bits(1)));
    }

    #[test]
    fn the_smallest_difference_of_products_is_a_normal_number() {
        let a = SMALLEST * SMALLEST;
        let b = SMALLEST * (SMALLEST * (1.0 + f32::EPSILON));
        assert!((b - a) != 0.0 && (b - a).is_normal());
    }

    #[test]
    fn the_root_of_nothing_is_nothing() {
        assert_eq!(sqrt(0.0), 0.0);
    }

    #[test]
    fn saturate_is_total() {
        assert_eq!(saturate(f32::INFINITY), f32::MAX);
        assert_eq!(saturate(f32::NEG_INFINITY), 0.0);
        assert_eq!(saturate(f32::NAN), f32::MAX);
        assert_eq!(saturate(-1e-7), 0.0);
        assert_eq!(saturate(3.0), 3.0);
    }

    proptest! {
        #[test]
        fn roots_agree_with_float64(x in 1e-37f32..1e38, fraction in 1f32..4.0) {
            for x in [x, fraction] {
                let exact = libm::sqrt(f64::from(x));
                prop_assert!((f64::from(rsqrt(x)) * exact - 1.0).abs() <= f64::from(f32::EPSILON));
                prop_assert!((f64::from(sqrt(x)) / exact - 1.0).abs() <= 2.0 * f64::from(f32::EPSILON));
            }
        }

        #[test]
        fn softplus_agrees_with_float64(x in -80.0f32..1000.0) {
            let x64 = f64::from(x);
            let expected = x64.max(0.0) + libm::log1p(libm::exp(-x64.abs()));
            prop_assert!((f64::from(softplus(x)) - expected).abs() <= RELATIVE * expected);
        }

        #[test]
        fn activations_are_finite_on_the_domain(x in -LARGEST..LARGEST) {
            for y in [elu(x), gelu(x), silu(x), tanh(x), softplus(x)] {
                prop_assert!(y.is_finite());
            }
        }
    }
}
