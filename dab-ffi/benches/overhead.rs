//! What the C ABI costs over dab-core's own call, at shapes (a) and (c): `cargo bench -p dab-ffi`.
//!
//! Both are timed in turns, a third of a millisecond each; the ratio is the median over all turns, which
//! holds where nanoseconds do not.
//!
//! `cargo bench -p dab-ffi -- --write FOLDER` writes the models and their numbers instead, for `compare.py`.

#[path = "../../dab-core/benches/assess/models.rs"]
mod models;
#[path = "../../dab-core/benches/assess/timing.rs"]
mod timing;

use std::hint::black_box;
use std::path::Path;

use dab::assess::{Assessment, dab_assess};
use dab::isa::Widest;
use dab::model::{DAB_MODEL_BYTES, dab_model_init};
use dab::status::DAB_OK;
use models::{Shape, shapes};
use timing::{ROUND_NANOSECONDS, median, nanoseconds};

const ROUNDS: usize = 401;
/// What the authors' TensorFlow layers take for a shape on one core of a machine of this kind, microseconds:
/// compiled, and as TFLite with TensorFlow ops.
const TENSORFLOW: [(&str, [f64; 2]); 2] = [("(a)", [540.0, 41.0]), ("(c)", [940.0, 290.0])];

/// The model's file, and the numbers that it was made from, as arrays of floats.
fn write(folder: &Path, shape: &Shape) -> std::io::Result<()> {
    let name = &shape.name[1..2];
    let put = |what: &str, values: &mut dyn Iterator<Item = f32>| {
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        std::fs::write(folder.join(format!("{name}.{what}")), bytes)
    };
    let codes = &shape.spec.codes;
    std::fs::write(folder.join(format!("{name}.dab")), shape.bytes.as_slice())?;
    put("input", &mut shape.input.iter().copied())?;
    put("weight", &mut shape.spec.head.weight.iter().copied())?;
    put("means", &mut codes.means.iter().map(|&x| x as f32))?;
    put("covs", &mut codes.covs.iter().map(|&x| x as f32))
}

/// Times dab-core and dab_assess in turns and prints what it found.
fn race(shape: &Shape) {
    let (bytes, input) = (&shape.bytes, &shape.input);
    let model = bytes.model().expect("a model");
    let mut scratch = vec![0.0f32; model.scratch_len()];
    let mut core =
        || model.assess_on(Widest, black_box(input), &mut scratch).map_or(f32::NAN, |a| a.uncertainty);

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
        score: 0.0,
        unfamiliarity: 0.0,
        ambiguity: 0.0,
        ambiguity_p: 0.0,
        top_class: 0,
        runner_up: 0,
        view: 0,
    };
    let mut ffi = || {
        let (input, bytes) = (black_box(input), memory.len() * size_of::<f32>());
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
    println!("\n{}, batch 1, the same instructions for both", shape.name);
    println!("dab-core   {:8.2} us", a / 1e3);
    println!("dab_assess {:8.2} us, {ratio:.3} x dab-core (median of {ROUNDS} alternations)", b / 1e3);
    for (_, [compiled, lite]) in TENSORFLOW.iter().filter(|(name, _)| shape.name.starts_with(name)) {
        for (name, us) in [("TensorFlow, compiled", compiled), ("TFLite with TensorFlow ops", lite)] {
            println!("{name}: {us} us on a machine of this kind, {:.1} x dab_assess", us * 1e3 / b);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = arguments.iter().position(|a| a == "--write").and_then(|at| arguments.get(at + 1));
    for shape in shapes() {
        if let Some(folder) = folder {
            write(Path::new(folder), &shape).expect("a folder to write to");
        } else if TENSORFLOW.iter().any(|(name, _)| shape.name.starts_with(name)) {
            race(&shape);
        }
    }
}
