//! What the C ABI costs over dab-core's own call, at shape (a): `cargo bench -p dab-ffi`.
//!
//! Both are timed in turns, a third of a millisecond each; the ratio is the median over all turns, which
//! holds where nanoseconds do not.

use std::hint::black_box;
use std::time::Instant;

use dab::assess::{Assessment, dab_assess};
use dab::isa::Widest;
use dab::model::{DAB_MODEL_BYTES, dab_model_init};
use dab::status::DAB_OK;
use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::{Codes, Head, Spec};
use dab_core::{Activation, CovarianceKind};

const ROUNDS: usize = 401;
/// Long against the clock's resolution, short against a scheduler's slice.
const ROUND_NANOSECONDS: f64 = 3e5;
/// What the authors' TensorFlow layers take for this shape on one core of a machine of this kind, microseconds.
const TENSORFLOW: [(&str, f64); 2] = [("TensorFlow, compiled", 540.0), ("TFLite with TensorFlow ops", 41.0)];

/// 640 inputs, 8 latent dimensions, 10 codes, full covariances.
fn shape_a() -> (AlignedBytes, Vec<f32>) {
    let (inputs, dim, k, covariance) = (640, 8, 10, CovarianceKind::Spectral);
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let weight = (0..covariance.raw_len(dim) * inputs).map(|_| 0.16 * uniform()).collect();
    let means = (0..k * dim).map(|_| f64::from(2.0 * uniform())).collect();
    let input = (0..inputs).map(|_| uniform()).collect();
    let unit = (0..dim * dim).map(|i| if i % (dim + 1) == 0 { 0.7 } else { 0.05 });
    let spec = Spec {
        inputs,
        normalization: None,
        layers: Vec::new(),
        head: Head { weight, bias: None, activation: Activation::Identity, covariance, dim },
        codes: Codes {
            means,
            covs: std::iter::repeat_n(unit, k).flatten().collect(),
            priors: vec![0.1; k],
            alpha: 1.0,
        },
        decoder: None,
        calibration: None,
        self_test: Vec::new(),
        info: Vec::new(),
    };
    (AlignedBytes::from(&*spec.to_bytes().expect("a model")), input)
}

fn nanoseconds(call: &mut dyn FnMut() -> f32, repeats: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(repeats)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (bytes, input) = shape_a();
    let model = bytes.model().expect("a model");
    let mut scratch = vec![0.0f32; model.scratch_len()];
    let mut core =
        || model.assess_on(Widest, black_box(&input), &mut scratch).map_or(f32::NAN, |a| a.uncertainty);

    let mut storage = [0u64; DAB_MODEL_BYTES / 8];
    let mut handle = std::ptr::null_mut();
    let artifact = bytes.as_slice();
    // SAFETY: storage, artifact and handle are live and of the sizes given.
    let status = unsafe {
        dab_model_init(
            storage.as_mut_ptr().cast(),
            DAB_MODEL_BYTES,
            artifact.as_ptr().cast(),
            artifact.len(),
            &mut handle,
        )
    };
    assert_eq!(status, DAB_OK);
    let mut memory = vec![0.0f32; model.scratch_len()];
    let mut out = Assessment {
        size: size_of::<Assessment>() as u32,
        flags: 0,
        uncertainty: 0.0,
        p_value: 0.0,
        verdict: 0,
        nearest: 0,
        nearest_distance: 0.0,
    };
    let mut ffi = || {
        let (input, bytes) = (black_box(&input), memory.len() * size_of::<f32>());
        // SAFETY: all memory is live and of the sizes given.
        unsafe {
            dab_assess(handle, input.as_ptr(), input.len(), memory.as_mut_ptr().cast(), bytes, &mut out)
        };
        out.uncertainty
    };
    assert_eq!(core().to_bits(), ffi().to_bits());
    let repeats = (ROUND_NANOSECONDS / nanoseconds(&mut core, 20)).max(1.0) as u32;
    let rounds: Vec<(f64, f64)> =
        (0..ROUNDS).map(|_| (nanoseconds(&mut core, repeats), nanoseconds(&mut ffi, repeats))).collect();
    let [a, b] = [rounds.iter().map(|r| r.0).collect(), rounds.iter().map(|r| r.1).collect()].map(median);
    let ratio = median(rounds.iter().map(|r| r.1 / r.0).collect());
    println!("shape (a), 640 inputs, d 8, k 10, spectral, batch 1, the same instructions for both");
    println!("dab-core   {:8.2} us", a / 1e3);
    println!("dab_assess {:8.2} us, {ratio:.3} x dab-core (median of {ROUNDS} alternations)", b / 1e3);
    for (name, us) in TENSORFLOW {
        println!("{name}: {us} us on a machine of this kind, {:.1} x dab_assess", us * 1e3 / b);
    }
}
