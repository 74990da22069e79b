//! Random numbers for data and splits: the same seed gives the same bits on every machine.
//!
//! seed + stream name → `Random` → uniforms, normals, permutations. SplitMix64:
//!
//! ```text
//! s ← s + 0x9E3779B97F4A7C15;  z = mix(s)
//! ```
//!
//! Normals go through `libm`, not the host's `ln` and `cos`, whose last bit differs between systems.

/// Weyl increment of SplitMix64: 2⁶⁴ divided by the golden ratio, odd.
const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;
/// FNV-1a offset basis and prime, which turn a stream's name into a number.
const FNV_BASIS: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01B3;
/// One unit in the last place of a 53-bit fraction.
const FRACTION: f64 = 1.0 / (1u64 << 53) as f64;

/// Standard deviation of a standard normal that is cut at ±2.
const CUT_STD: f64 = 0.879_625_661_034_239_8;

/// A small generator. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream `name` of `seed`. Streams of different names do not follow each other, so that
    /// one more draw in the data never changes the split.
    pub fn new(seed: u64, name: &str) -> Self {
        let hash = name.bytes().fold(FNV_BASIS, |h, b| (h ^ u64::from(b)).wrapping_mul(FNV_PRIME));
        let mut random = Self { state: hash };
        random.state = random.bits() ^ seed.wrapping_mul(INCREMENT);
        random
    }

    /// Sixty-four random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(INCREMENT);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform on [0, 1), 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * FRACTION
    }

    /// Uniform integer in `0..n`; 0 when `n` is 0. The bias is below n / 2⁶⁴.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Standard normal, by Box–Muller (one value per two uniforms).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// A normal cut at two of its standard deviations and widened back to variance 1, as Keras' initialisers have it.
    pub fn cut_normal(&mut self) -> f64 {
        loop {
            let value = self.normal();
            if value.abs() <= 2.0 {
                return value / CUT_STD;
            }
        }
    }

    /// The numbers `0..n` in random order (Fisher–Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five standard errors of the mean of 20 000 standard normals.
    const MEAN_BOUND: f64 = 5.0 / 141.0;

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let mut random = Random::new(7, "test");
        let draws: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < MEAN_BOUND, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn streams_differ_and_repeat() {
        let first = Random::new(1, "a").permutation(50);
        assert_eq!(first, Random::new(1, "a").permutation(50));
        assert_ne!(first, Random::new(1, "b").permutation(50));
        assert_ne!(first, Random::new(2, "a").permutation(50));
        let mut sorted = first;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_stream_is_pinned() {
        // Splits of published runs depend on these bits: they may never change.
        let mut random = Random::new(0, "pin");
        assert_eq!([random.bits(), random.bits()], [0x4B4E_4407_A1DA_D736, 0xC393_FC9A_C17B_CEBE]);
        assert_eq!(Random::new(7, "pin").bits(), 0xCCEB_FD1A_D013_F347);
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert_eq!(random.below(0), 0);
    }
}
