//! Builds plain.c with gcc, loads it, and calls it on the numbers of a shape.

use std::path::PathBuf;
use std::process::Command;

use dab_core::Model;
use libloading::{Library, Symbol};

use crate::models::Shape;

type Kernel =
    unsafe extern "C" fn(*const f32, *const f32, *const f32, *const f32, *const f32, *const f32, f32) -> f32;

/// plain.c as a loaded library.
pub struct Plain(Library);

/// The arguments of one C kernel, in its layout.
pub struct Arguments {
    weight: Vec<f32>,
    means: Vec<f32>,
    precisions: Vec<f32>,
    log_dets: Vec<f32>,
    priors: Vec<f32>,
    alpha: f32,
}

/// `[rows, columns]` → `[columns, rows]`.
fn transpose(values: &[f32], columns: usize) -> Vec<f32> {
    let rows = values.len() / columns;
    (0..values.len()).map(|k| values[(k % rows) * columns + k / rows]).collect()
}

impl Plain {
    /// `Err` says why there is no C to compare with.
    pub fn build() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("dab-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
        let library = folder.join("libplain.so");
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/assess/plain.c");
        let status = Command::new("gcc")
            .args([
                "-std=c11",
                "-O3",
                "-march=native",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-shared",
                "-fPIC",
                "-o",
            ])
            .args([&library, &source])
            .arg("-lm")
            .status()
            .map_err(|e| format!("gcc: {e}"))?;
        if !status.success() {
            return Err(format!("gcc: {status}"));
        }
        // SAFETY: the library is plain.c, which has no constructors.
        let loaded = unsafe { Library::new(&library) }.map_err(|e| e.to_string());
        let _ = std::fs::remove_dir_all(folder);
        loaded.map(Self)
    }

    /// The kernel of that name as a closure over the numbers of `shape`.
    pub fn kernel<'a>(&'a self, name: &str, shape: &'a Shape) -> impl Fn() -> f32 + 'a {
        // SAFETY: plain_a and plain_c have this signature: six arrays of float and a float.
        let kernel: Symbol<'a, Kernel> = unsafe { self.0.get(name) }.expect("plain.c defines it");
        let model = shape.bytes.model().expect("a sound model");
        let arguments = Arguments::new(&model, shape);
        move || {
            let a = &arguments;
            // SAFETY: the arrays have the sizes that the kernel's enums state: they are the shape's, in
            // its layout.
            unsafe {
                kernel(
                    shape.input.as_ptr(),
                    a.weight.as_ptr(),
                    a.means.as_ptr(),
                    a.precisions.as_ptr(),
                    a.log_dets.as_ptr(),
                    a.priors.as_ptr(),
                    a.alpha,
                )
            }
        }
    }
}

impl Arguments {
    fn new(model: &Model<'_>, shape: &Shape) -> Self {
        let codes = model.codebook();
        let dim = codes.dim;
        let full = codes.precisions.len() != codes.means.len();
        let precisions = if full {
            let mut square = Vec::new();
            for triangle in codes.precisions.chunks(dim * (dim + 1) / 2) {
                for i in 0..dim {
                    square.extend_from_slice(&triangle[i * (i + 1) / 2..(i + 1) * (i + 2) / 2]);
                    square.resize(square.len() + dim - 1 - i, 0.0);
                }
            }
            square
        } else {
            transpose(codes.precisions, dim)
        };
        Self {
            weight: transpose(&shape.spec.head.weight, shape.spec.inputs),
            means: if full { codes.means.to_vec() } else { transpose(codes.means, dim) },
            precisions,
            log_dets: codes.log_dets.to_vec(),
            priors: codes.priors.to_vec(),
            alpha: codes.alpha,
        }
    }
}
