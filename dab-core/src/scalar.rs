//! Scalars: the domain every number lives in, and the only transcendental calls of the crate.
//!
//! Weights, inputs and activations are kept in **the domain**: zero, or a magnitude in
//! `[2⁻⁵⁰, 2⁵⁰]`. A product of two such numbers is at most 2¹⁰⁰, so a sum of up to 2²⁷ products is
//! finite and no `∞ − ∞` can arise; the smallest product is 2⁻¹⁰⁰ and the smallest difference of two
//! products 2⁻¹²³, so no subnormal arises either, and a process that runs with flush-to-zero (a
//! foreign library may have set it) still gets the same bits.
//!
//! `exp` and `ln` are written here with additions, products, quotients and operations on bits, in one order. So
//! they have the same bits on every target, which the platform's functions do not promise. They have no branch,
//! so a wide machine computes several at a time. All other functions are made of these two, and a device carries
//! the code of no other. Only the square root comes from libm: it is correctly rounded, so that every version of
//! libm gives the same bits.

/// The smallest non-zero magnitude of the domain, 2⁻⁵⁰ ≈ 8.9e-16.
pub const SMALLEST: f32 = 1.0 / LARGEST;
/// The largest magnitude of the domain, 2⁵⁰ ≈ 1.1e15.
pub const LARGEST: f32 = (1u64 << 50) as f32;

/// Shift inside every softplus of method.md E1–E3: a raw output of 0 starts at a small spread.
pub const SOFTPLUS_SHIFT: f32 = 5.0;
/// Floor added to every standard deviation of method.md E1–E3.
pub const STD_FLOOR: f32 = 1e-5;

/// `x` brought into the domain: saturated at ±2⁵⁰, flushed to zero below 2⁻⁵⁰.
#[cfg_attr(target_pointer_width = "64", inline(always))]
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

/// Below this e^x is not a normal number.
const LOWEST: f32 = -87.3;

/// ln 2 in two parts. The first, 355/512, has so few bits that its multiples by an exponent are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// `q` and 2ⁿ of `eˣ = 2ⁿ (1 + q)`, |q| < 0.42, for x limited to where 2ⁿ is a normal number.
///
/// Ours because assignments need one per code: it has no branch, so a wide machine computes eight at a
/// time and every argument costs the same. `x = n ln 2 + r`, |r| ≤ ½ ln 2, and a polynomial in r.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn exp_parts(x: f32) -> (f32, f32) {
    /// Above this 2ⁿ would overflow.
    const HIGHEST: f32 = 88.3;
    /// Adding it rounds to a whole number, which is then in the last bits.
    const ROUND: f32 = 12_582_912.0;
    /// Least-squares polynomial for (e^r − 1 − r) / r².
    const P: [f32; 6] = [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5];
    let limited = if x > HIGHEST { HIGHEST } else { x };
    let limited = if limited < LOWEST { LOWEST } else { limited };
    let shifted = limited * core::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = (limited - whole * LN_2[0]) - whole * LN_2[1];
    let p = ((((P[0] * r + P[1]) * r + P[2]) * r + P[3]) * r + P[4]) * r + P[5];
    (p * (r * r) + r, f32::from_bits(shifted.to_bits().wrapping_add(127) << 23))
}

/// eˣ within 2 ulp; 0 where it would be below the normal numbers, at most 2¹²⁷ · 1.7 above.
#[inline(always)]
#[must_use]
pub fn exp(x: f32) -> f32 {
    let (q, power) = exp_parts(x);
    if x < LOWEST { 0.0 } else { (q + 1.0) * power }
}

/// eˣ − 1 for x ≤ 0, also where eˣ is close to 1.
#[inline(always)]
fn exp_minus_one(x: f32) -> f32 {
    let (q, power) = exp_parts(x);
    q * power + (power - 1.0)
}

/// Natural logarithm of a positive normal number, within 0.91 ulp, and monotone. ln 1 is exactly 0. Zero, negative
/// and subnormal numbers, infinities and NaN give a number without a meaning; no caller has them.
///
/// ```text
/// x = 2ⁿ (1 + f),   √½ ≤ 1 + f < √2,   s = f / (2 + f)
/// ln x = n ln 2 + 2 atanh s = n ln 2 + f − ½ f² + s (½ f² + R(s²))
/// ```
///
/// The two large terms, n ln 2 and f, are added without an error: what their sum loses is kept.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[must_use]
pub fn ln(x: f32) -> f32 {
    /// The bits of √½: numbers from here up to √2 have n = 0.
    const SQRT_HALF: u32 = 0x3f35_04f3;
    /// Minimax polynomial for (2 atanh s − 2 s) / s³ in s². Its error is below 0.02 ulp of the result.
    const P: [f32; 3] = [0.298_717_3, 0.399_775_42, 0.666_667_76];
    let n = x.to_bits().wrapping_sub(SQRT_HALF).cast_signed() >> 23;
    let f = f32::from_bits(x.to_bits().wrapping_sub(n.cast_unsigned() << 23)) - 1.0;
    let n = n as f32;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = ((P[0] * z + P[1]) * z + P[2]) * z;
    let half_square = 0.5 * f * f;
    let small = n * LN_2[1] + (s * (half_square + r) - half_square);
    let large = n * LN_2[0];
    let sum = large + f;
    let lost = f - (sum - large);
    sum + (lost + small)
}

/// Square root, correctly rounded.
#[inline(always)]
#[must_use]
pub fn sqrt(x: f32) -> f32 {
    libm::sqrtf(x)
}

/// ln(1 + eˣ) without overflow: `max(x, 0) + ln(1 + e^−|x|)`.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[must_use]
pub fn softplus(x: f32) -> f32 {
    let positive = if x > 0.0 { x } else { 0.0 };
    let small = exp(-x.abs());
    // ln(1 + e): what is lost in rounding 1 + e is added again.
    let one = 1.0 + small;
    positive + (ln(one) + (small - (one - 1.0)) / one)
}

/// Standard deviation from a raw encoder output: `softplus(raw − 5) + 1e-5` (method.md E1–E3).
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[must_use]
pub fn std_from_raw(raw: f32) -> f32 {
    softplus(raw - SOFTPLUS_SHIFT) + STD_FLOOR
}

/// Exponential linear unit with unit slope: x for x > 0, eˣ − 1 below.
#[inline(always)]
#[must_use]
pub fn elu(x: f32) -> f32 {
    if x > 0.0 { x } else { exp_minus_one(x) }
}

/// Gaussian error linear unit, `x Φ(x)`, within 4e-7 |x|.
///
/// `Φ(−√2 z) = ½ erfc(z) = ½ t e^(P(t) − z²)` for z ≥ 0, with `t = 1 / (1 + z/2)`.
#[inline(always)]
#[must_use]
pub fn gelu(x: f32) -> f32 {
    /// Polynomial through `ln(erfc(z) / t) + z²` at Chebyshev's points, until e^−z² is no normal number.
    const P: [f32; 9] = [
        8.263_247e-2,
        -0.574_622_2,
        1.515_111_4,
        -1.827_272_9,
        0.883_294_7,
        -0.248_952_54,
        0.442_421_94,
        0.992_556_1,
        -1.265_169_1,
    ];
    let z = x.abs() * core::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let mut p = 0.0;
    for c in P {
        p = p * t + c;
    }
    let tail = 0.5 * t * exp(p - z * z);
    x * if x > 0.0 { 1.0 - tail } else { tail }
}

/// Sigmoid linear unit: `x / (1 + e^−x)`.
#[inline(always)]
#[must_use]
pub fn silu(x: f32) -> f32 {
    // For very negative x the exponential saturates and the quotient is far below the domain: zero.
    x / (1.0 + exp(-x))
}

/// Hyperbolic tangent: `−m / (m + 2)` with `m = e^−2|x| − 1`.
#[inline(always)]
#[must_use]
pub fn tanh(x: f32) -> f32 {
    let m = exp_minus_one(-2.0 * x.abs());
    let size = -m / (m + 2.0);
    if x < 0.0 { -size } else { size }
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
    fn exact_where_it_shows() {
        assert_eq!(sqrt(0.0), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(ln(1.0).to_bits(), 0, "+0, not −0");
    }

    #[test]
    fn exp_is_a_normal_number_down_to_its_lowest_argument_and_0_below() {
        let least = f64::from(exp(LOWEST));
        assert!((least / libm::exp(f64::from(LOWEST)) - 1.0).abs() <= RELATIVE, "{least}");
        assert_eq!(exp(LOWEST.next_down()), 0.0);
    }

    /// Error of `ln(x)` in units of the last place of the exact value.
    fn ulps_of_ln(x: f32) -> f64 {
        let exact = libm::log(f64::from(x));
        let exponent = ((exact.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        (f64::from(ln(x)) - exact).abs() / libm::exp2(f64::from(exponent - 23))
    }

    /// Walks through positive numbers, `step` of their bits at a time.
    fn check_ln(bits: core::ops::Range<u32>, step: usize) {
        /// The largest error is 0.9038 ulp, at 0.70665926: this function says so of all positive normal numbers,
        /// with a step of 1, in some minutes.
        const ULPS: f64 = 0.904;
        let mut last = f32::NEG_INFINITY;
        for x in bits.step_by(step).map(f32::from_bits).filter(|&x| x != 1.0) {
            assert!(ulps_of_ln(x) <= ULPS, "ln {x:e} is off by {} ulp", ulps_of_ln(x));
            assert!(ln(x) >= last, "ln falls at {x:e}");
            last = ln(x);
        }
    }

    #[test]
    fn ln_agrees_with_float64_on_every_number_around_1() {
        check_ln(0.5f32.to_bits()..2f32.to_bits(), 1);
        assert!(ulps_of_ln(0.706_659_26) > 0.9, "the worst argument is among them");
    }

    #[test]
    fn ln_agrees_with_float64_at_all_exponents() {
        // 2051 is odd, so that all low bits of the mantissa occur.
        check_ln(f32::MIN_POSITIVE.to_bits()..f32::INFINITY.to_bits(), 2051);
        check_ln((f32::MAX.to_bits() - 1000)..f32::INFINITY.to_bits(), 1);
        check_ln(f32::MIN_POSITIVE.to_bits()..f32::MIN_POSITIVE.to_bits() + 1000, 1);
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
        fn exp_agrees_with_float64(x in -87.3f32..88.3) {
            prop_assert!((f64::from(exp(x)) / libm::exp(f64::from(x)) - 1.0).abs() <= 2.0 * f64::from(f32::EPSILON));
        }

        #[test]
        fn exp_is_total_and_monotone_at_its_ends(x in proptest::num::f32::NORMAL | proptest::num::f32::ZERO) {
            prop_assert!(exp(x).is_finite() && exp(x) >= 0.0);
            prop_assert!(x > -87.4 || exp(x) == 0.0);
            prop_assert!(x < 88.3 || exp(x) == exp(89.0));
        }

        #[test]
        fn softplus_agrees_with_float64(x in -80.0f32..1000.0) {
            let x64 = f64::from(x);
            let expected = x64.max(0.0) + libm::log1p(libm::exp(-x64.abs()));
            prop_assert!((f64::from(softplus(x)) - expected).abs() <= RELATIVE * expected);
        }

        #[test]
        fn activations_agree_with_float64(x in prop_oneof![-20f32..20.0, -1e-3f32..1e-3]) {
            let x64 = f64::from(x);
            let expected_elu = if x > 0.0 { x64 } else { libm::expm1(x64) };
            let expected_gelu = 0.5 * x64 * libm::erfc(-x64 * core::f64::consts::FRAC_1_SQRT_2);
            let close = |found: f32, expected: f64, size: f64| (f64::from(found) - expected).abs() <= RELATIVE * size.abs();
            prop_assert!(close(elu(x), expected_elu, expected_elu));
            prop_assert!(close(tanh(x), libm::tanh(x64), libm::tanh(x64)));
            prop_assert!(close(gelu(x), expected_gelu, x64));
            prop_assert!(close(silu(x), x64 / (1.0 + libm::exp(-x64)), x64));
        }

        #[test]
        fn activations_are_finite_on_the_domain(x in -LARGEST..LARGEST) {
            for y in [elu(x), gelu(x), silu(x), tanh(x), softplus(x)] {
                prop_assert!(y.is_finite());
            }
        }
    }
}
