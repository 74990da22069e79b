//! The four shapes of the bench, with pseudo-random weights.

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::{Codes, Dense, Head, Spec, WeightKind};
use dab_core::{Activation, CovarianceKind};

/// Uniform numbers in (−1, 1).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn vec(&mut self, n: usize, scale: f32) -> Vec<f32> {
        (0..n).map(|_| scale * self.next()).collect()
    }
}

/// One shape: its name, its spec, its file and an input.
pub struct Shape {
    pub name: &'static str,
    pub spec: Spec,
    pub bytes: AlignedBytes,
    pub input: Vec<f32>,
}

fn shape(name: &'static str, widths: &[usize], covariance: CovarianceKind, dim: usize, k: usize) -> Shape {
    let mut random = Random(1);
    let mut layers = Vec::new();
    for pair in widths.windows(2) {
        layers.push(Dense {
            weight: random.vec(pair[0] * pair[1], 1.5 / (pair[0] as f32).sqrt()),
            bias: Some(random.vec(pair[1], 0.1)),
            outputs: pair[1],
            activation: Activation::Relu,
            residual: None,
            norm: None,
        });
    }
    let features = widths[widths.len() - 1];
    let weight = random.vec(covariance.raw_len(dim) * features, 4.0 / (features as f32).sqrt());
    let diagonal = covariance == CovarianceKind::Diagonal;
    let mut covs = Vec::new();
    for _ in 0..k {
        let factor = random.vec(dim * dim, 0.5);
        for i in 0..dim {
            for j in 0..dim {
                let shared: f32 = (0..dim).map(|c| factor[i * dim + c] * factor[j * dim + c]).sum();
                match (i == j, diagonal) {
                    (true, _) => covs.push(f64::from(0.3 + shared)),
                    (false, false) => covs.push(f64::from(shared)),
                    (false, true) => {}
                }
            }
        }
    }
    let spec = Spec {
        inputs: widths[0],
        normalization: None,
        layers,
        head: Head { weight, bias: None, activation: Activation::Identity, covariance, dim },
        codes: Codes {
            means: random.vec(k * dim, 2.0).into_iter().map(f64::from).collect(),
            covs,
            priors: vec![1.0 / k as f64; k],
            alpha: 1.0,
        },
        decoder: None,
        calibration: None,
        self_test: Vec::new(),
        channels: None,
        weights: WeightKind::Float32,
        info: Vec::new(),
    };
    let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a sound model"));
    Shape { name, input: random.vec(widths[0], 1.0), spec, bytes }
}

/// (a) to (d).
pub fn shapes() -> [Shape; 4] {
    [
        shape("(a) 640→8, k 10, spectral", &[640], CovarianceKind::Spectral, 8, 10),
        shape("(b) 640→8, k 10, Cholesky", &[640], CovarianceKind::Cholesky, 8, 10),
        shape("(c) 2048→80, k 1000, diagonal", &[2048], CovarianceKind::Diagonal, 80, 1000),
        shape("(d) 16→32→32→4, k 8, diagonal", &[16, 32, 32], CovarianceKind::Diagonal, 4, 8),
    ]
}
