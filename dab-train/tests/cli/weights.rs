//! Safetensors files to order.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::{dab, text};

/// A tensor in the making.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Tensor {
    fn bytes(&self) -> Vec<u8> {
        let values = self.values.iter();
        match self.dtype {
            Dtype::F64 => values.flat_map(|x| x.to_le_bytes()).collect(),
            Dtype::F32 => values.flat_map(|&x| (x as f32).to_le_bytes()).collect(),
            Dtype::F16 => values.flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
            Dtype::BF16 => values.flat_map(|&x| bf16::from_f64(x).to_le_bytes()).collect(),
            Dtype::I64 => values.flat_map(|&x| (x as i64).to_le_bytes()).collect(),
            other => panic!("{other:?}"),
        }
    }
}

/// Tensors and metadata.
#[derive(Clone, Default)]
pub struct Weights {
    pub tensors: BTreeMap<String, Tensor>,
    pub metadata: HashMap<String, String>,
}

impl Weights {
    /// Two inputs, one hidden layer of three, d = 2, two codes, one output, four held-out scores.
    pub fn tiny() -> Self {
        Self::default()
            .set("normalize.mean", &[2], &[0.5, -0.5])
            .set("normalize.std", &[2], &[2.0, 0.5])
            .set("layers.0.weight", &[3, 2], &[0.5, -1.0, 0.25, 0.75, -0.5, 1.0])
            .set("layers.0.bias", &[3], &[0.125, 0.0, -0.25])
            .set("head.weight", &[4, 3], &[1.0, 0.5, 0.0, 0.0, 1.0, -0.5, 0.25, 0.0, 0.5, 0.0, 0.25, 0.0])
            .set("head.bias", &[4], &[0.0, 0.0, 4.0, 4.0])
            .set("codes.mean", &[2, 2], &[0.0, 0.0, 1.0, 1.0])
            .set("codes.cov", &[2, 2], &[0.5, 0.5, 0.25, 1.0])
            .set("codes.prior", &[2], &[0.75, 0.25])
            .set("decoder.weight", &[1, 2], &[1.0, -1.0])
            .set("decoder.bias", &[1], &[0.5])
            .set("calibration.scores", &[4], &[0.5, 1.0, 1.5, 2.0])
            .meta("covariance", "diagonal")
            .meta("alpha", "1")
            .meta("task", "regression")
            .meta("layers.0.activation", "relu")
            .meta("rates.doubtful", "0.5")
            .meta("rates.unfamiliar", "0.25")
            .meta("seed", "7")
            .meta("author", "nobody")
    }

    /// Adds or replaces a tensor, in F64.
    pub fn set(mut self, name: &str, shape: &[usize], values: &[f64]) -> Self {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
        let tensor = Tensor { dtype: Dtype::F64, shape: shape.into(), values: values.into() };
        self.tensors.insert(name.into(), tensor);
        self
    }

    /// Adds or replaces a tensor of some shape, full of one value.
    pub fn fill(self, name: &str, shape: &[usize], value: f64) -> Self {
        let count = shape.iter().product();
        self.set(name, shape, &vec![value; count])
    }

    /// Changes one value of a tensor.
    pub fn poke(mut self, name: &str, index: usize, value: f64) -> Self {
        self.tensors.get_mut(name).unwrap().values[index] = value;
        self
    }

    /// Stores a tensor in another type.
    pub fn cast(mut self, name: &str, dtype: Dtype) -> Self {
        self.tensors.get_mut(name).unwrap().dtype = dtype;
        self
    }

    pub fn remove(mut self, name: &str) -> Self {
        self.tensors.remove(name).unwrap();
        self
    }

    pub fn meta(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    pub fn remove_meta(mut self, key: &str) -> Self {
        self.metadata.remove(key).unwrap();
        self
    }

    pub fn save(&self, path: &Path) {
        let bytes: Vec<Vec<u8>> = self.tensors.values().map(Tensor::bytes).collect();
        let views = self.tensors.iter().zip(&bytes).map(|((name, tensor), bytes)| {
            (name.clone(), TensorView::new(tensor.dtype, tensor.shape.clone(), bytes).unwrap())
        });
        std::fs::write(path, safetensors::serialize(views, Some(self.metadata.clone())).unwrap()).unwrap();
    }

    /// Packs into `model.dab` of a folder and returns its bytes.
    pub fn pack(&self, folder: &Path) -> Vec<u8> {
        self.save(&folder.join("weights.safetensors"));
        text(dab(folder, &["pack", "weights.safetensors", "-o", "model.dab"]));
        std::fs::read(folder.join("model.dab")).unwrap()
    }
}
