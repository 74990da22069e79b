//! The float64 reference vectors: NumPy archives → [`Spec`].

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use dab_core::artifact::writer::{Codes, DecoderSpec, Dense, Head, Spec};
use dab_core::{Activation, CovarianceKind, Task};

/// One reference set: arrays by name, float64, row-major.
pub struct Golden {
    arrays: BTreeMap<String, (Vec<usize>, Vec<f64>)>,
}

/// Rows 0..48 are typical inputs, the rest extreme ones.
pub const TYPICAL: usize = 48;

impl Golden {
    /// Reads an `.npz` file.
    ///
    /// # Panics
    /// When the file is not what the reference's README describes.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let mut archive = zip::ZipArchive::new(File::open(path).expect("a file")).expect("an npz archive");
        let mut arrays = BTreeMap::new();
        for i in 0..archive.len() {
            let file = archive.by_index(i).expect("a readable file");
            let name = file.name().expect("a name").trim_end_matches(".npy").to_owned();
            let array = npyz::NpyFile::new(file).expect("an array");
            assert_eq!(array.order(), npyz::Order::C, "{name}");
            let shape: Vec<usize> = array.shape().iter().map(|&n| n as usize).collect();
            let values = array.into_vec::<f64>().expect("float64");
            arrays.insert(name, (shape, values));
        }
        Self { arrays }
    }

    /// An array's values.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn values(&self, name: &str) -> &[f64] {
        &self.arrays[name].1
    }

    /// Row `i` of a matrix.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn row(&self, name: &str, i: usize) -> &[f64] {
        let (shape, values) = &self.arrays[name];
        let width: usize = shape[1..].iter().product();
        &values[i * width..(i + 1) * width]
    }

    /// Row `i` rounded to f32.
    #[must_use]
    pub fn row_f32(&self, name: &str, i: usize) -> Vec<f32> {
        self.row(name, i).iter().map(|&x| x as f32).collect()
    }

    /// `[in, out]` of NumPy as our `[out, in]`, f32.
    fn transposed(&self, name: &str) -> Vec<f32> {
        let (shape, values) = &self.arrays[name];
        let (rows, columns) = (shape[0], shape[1]);
        (0..rows * columns).map(|k| values[(k % rows) * columns + k / rows] as f32).collect()
    }

    fn has(&self, name: &str) -> bool {
        self.arrays.contains_key(name)
    }

    fn codes(&self) -> Codes {
        let covs = if self.has("centroid_cov") { "centroid_cov" } else { "centroid_var" };
        Codes {
            means: self.values("centroid_means").into(),
            covs: self.values(covs).into(),
            priors: self.values("pi").into(),
            alpha: self.values("alpha")[0] as f32,
        }
    }

    fn dim(&self) -> usize {
        self.arrays["centroid_means"].0[1]
    }

    fn spec(&self, inputs: usize, layers: Vec<Dense>, weight: Vec<f32>) -> Spec {
        let outputs = self.arrays["dec_b"].0[0];
        let covariance =
            if self.has("centroid_cov") { CovarianceKind::Spectral } else { CovarianceKind::Diagonal };
        let head = Head { weight, bias: None, activation: Activation::Identity, covariance, dim: self.dim() };
        Spec {
            layers,
            decoder: Some(DecoderSpec {
                weight: self.transposed("dec_W"),
                bias: Some(self.values("dec_b").iter().map(|&x| x as f32).collect()),
                outputs,
                task: if outputs == 1 { Task::Regression } else { Task::Classification },
            }),
            ..Spec::new(inputs, head, self.codes())
        }
    }

    /// The model whose inputs are the head's outputs: all rows, the extreme ones too.
    #[must_use]
    pub fn head_level(&self) -> Spec {
        let raw = self.arrays["head"].0[1];
        let identity = (0..raw * raw).map(|k| if k / raw == k % raw { 1.0 } else { 0.0 }).collect();
        self.spec(raw, Vec::new(), identity)
    }

    /// The model from the features (or, for the smallest set, from the raw inputs) on, and the name of
    /// its inputs. `None` for a set that has no features.
    #[must_use]
    pub fn whole(&self) -> Option<(Spec, &'static str)> {
        if self.has("W1") {
            let layer = Dense {
                weight: self.transposed("W1"),
                bias: Some(self.values("b1").iter().map(|&x| x as f32).collect()),
                outputs: self.arrays["b1"].0[0],
                activation: Activation::Relu,
                residual: None,
                norm: None,
            };
            return Some((self.spec(self.arrays["W1"].0[0], vec![layer], self.transposed("W")), "x8"));
        }
        self.has("W").then(|| (self.spec(self.arrays["W"].0[0], Vec::new(), self.transposed("W")), "x"))
    }
}
