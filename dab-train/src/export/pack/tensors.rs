//! Tensors by name, with their shapes checked and their numbers finite.

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use super::error::PackError;

/// A tensor's shape and numbers, row-major. float64 holds every type that `dab pack` reads, exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    /// Its numbers, all finite.
    pub values: Vec<f64>,
}

impl Tensor {
    /// The numbers rounded to f32.
    pub fn narrow(&self) -> Result<Vec<f32>, PackError> {
        let round = |(i, &value): (usize, &f64)| match value as f32 {
            narrow if narrow.is_finite() => Ok(narrow),
            _ => Err(PackError::NonFinite { name: self.name.clone(), index: unravel(i, &self.shape), value }),
        };
        self.values.iter().enumerate().map(round).collect()
    }

    /// The error that this tensor should have had another shape.
    pub fn misshapen(&self, expected: &str, advice: &str) -> PackError {
        PackError::Shape {
            name: self.name.clone(),
            expected: expected.into(),
            found: self.shape.clone(),
            advice: advice.into(),
        }
    }

    /// The shape as a matrix's.
    pub fn matrix(&self, expected: &str, advice: &str) -> Result<(usize, usize), PackError> {
        match *self.shape {
            [rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns)),
            _ => Err(self.misshapen(expected, advice)),
        }
    }
}

/// All tensors of a file that have not been used yet.
pub struct Tensors<'a> {
    file: SafeTensors<'a>,
}

impl<'a> Tensors<'a> {
    pub const fn new(file: SafeTensors<'a>) -> Self {
        Self { file }
    }

    pub fn get(&self, name: &str) -> Result<Option<Tensor>, PackError> {
        let Ok(view) = self.file.tensor(name) else { return Ok(None) };
        let bytes = view.data();
        let values: Vec<f64> = match view.dtype() {
            Dtype::F64 => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
            Dtype::F32 => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect(),
            Dtype::F16 => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).into()).collect(),
            Dtype::BF16 => bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).into()).collect(),
            other => return Err(PackError::Dtype { name: name.into(), found: format!("{other:?}") }),
        };
        let shape = view.shape().to_vec();
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            let index = unravel(i, &shape);
            return Err(PackError::NonFinite { name: name.into(), index, value: values[i] });
        }
        Ok(Some(Tensor { name: name.into(), shape, values }))
    }

    pub fn require(&self, name: &str, expected: &str, advice: &str) -> Result<Tensor, PackError> {
        self.get(name)?.ok_or_else(|| PackError::absent(name, expected, advice))
    }

    /// The numbers of an optional tensor of exactly that shape, in f32.
    pub fn vector(&self, name: &str, len: usize, advice: &str) -> Result<Option<Vec<f32>>, PackError> {
        match self.get(name)? {
            Some(tensor) if tensor.shape == [len] => tensor.narrow().map(Some),
            Some(tensor) => Err(tensor.misshapen(&format!("[{len}]"), advice)),
            None => Ok(None),
        }
    }

    /// Number of consecutive layers, from 0.
    pub fn layers(&self) -> Result<usize, PackError> {
        let mut names = self.file.names();
        names.sort_unstable();
        let mut layers = 0;
        for name in &names {
            if FIXED.contains(name) {
                continue;
            }
            let number = layer_number(name).filter(|(_, part)| ["weight", "bias"].contains(part));
            let Some((number, _)) = number else {
                return Err(PackError::UnknownTensor { name: (*name).into() });
            };
            layers = layers.max(number + 1);
        }
        for number in 0..layers {
            let name = format!("layers.{number}.weight");
            if !names.contains(&&*name) {
                let advice =
                    format!("layers are numbered from 0 without gaps, the last here is {}", layers - 1);
                return Err(PackError::absent(&name, "[out, in]", &advice));
            }
        }
        Ok(layers)
    }
}

const FIXED: [&str; 11] = [
    "normalize.mean",
    "normalize.std",
    "head.weight",
    "head.bias",
    "codes.mean",
    "codes.cov",
    "codes.prior",
    "decoder.weight",
    "decoder.bias",
    "calibration.scores",
    "self_test.inputs",
];

/// Every tensor name that `dab pack` reads.
pub(super) fn names() -> String {
    let (before, behind) = FIXED.split_at(2);
    [before, &["layers.N.weight", "layers.N.bias"], behind].concat().join(", ")
}

/// `(N, rest)` of `layers.N.rest`, N in plain decimal below 1000.
pub(super) fn layer_number(name: &str) -> Option<(usize, &str)> {
    let (number, rest) = name.strip_prefix("layers.")?.split_once('.')?;
    let parsed: usize = number.parse().ok()?;
    (parsed < 1000 && parsed.to_string() == number).then_some((parsed, rest))
}

/// Position of the `i`-th value in a row-major tensor.
fn unravel(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, &size) in index.iter_mut().zip(shape).rev() {
        *at = i % size.max(1);
        i /= size.max(1);
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_numbers_are_plain() {
        assert_eq!(layer_number("layers.0.weight"), Some((0, "weight")));
        assert_eq!(layer_number("layers.12.bias"), Some((12, "bias")));
        for name in ["layers.01.weight", "layers.+1.weight", "layers.x.weight", "layers.1", "layer.1.weight"]
        {
            assert_eq!(layer_number(name), None, "{name}");
        }
    }

    #[test]
    fn positions_are_row_major() {
        assert_eq!(unravel(7, &[2, 3, 2]), [1, 0, 1]);
        assert_eq!(unravel(0, &[]), [0usize; 0]);
    }
}
