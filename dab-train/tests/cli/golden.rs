//! Models packed from the float64 reference sets score as the reference does.

use std::path::Path;

use crate::npy::npy;
use crate::stored::shared;
use crate::weights::Weights;
use crate::{column, dab, folder, table, text};

/// f32 against float64, typical rows.
const TYPICAL: f64 = 1e-4;
/// The same on rows made to be hard.
const EXTREME: f64 = 1e-3;
/// Rows before the hard ones.
const TYPICAL_ROWS: usize = 48;

/// Shape and values of an array.
fn array(path: &Path, name: &str) -> (Vec<usize>, Vec<f64>) {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let array = npyz::NpyFile::new(archive.by_name(&format!("{name}.npy")).unwrap()).unwrap();
    let shape = array.shape().iter().map(|&n| n as usize).collect();
    (shape, array.into_vec().unwrap())
}

/// `[in, out]` as `[out, in]`.
fn transposed((shape, values): (Vec<usize>, Vec<f64>)) -> (Vec<usize>, Vec<f64>) {
    let (rows, columns) = (shape[0], shape[1]);
    let at = |i: usize| values[(i % rows) * columns + i / rows];
    (vec![columns, rows], (0..values.len()).map(at).collect())
}

impl Weights {
    fn with(self, name: &str, (shape, values): (Vec<usize>, Vec<f64>)) -> Self {
        self.set(name, &shape, &values)
    }

    /// A head that hands its inputs through: for rows that are given as head outputs.
    fn identity_head(self, raw: usize) -> Self {
        let eye: Vec<f64> = (0..raw * raw).map(|i| f64::from(i.is_multiple_of(raw + 1))).collect();
        self.set("head.weight", &[raw, raw], &eye)
    }
}

/// Codes and decoder of a set.
fn codes(path: &Path, cov: &str, kind: &str) -> Weights {
    let alpha = array(path, "alpha").1[0];
    Weights::default()
        .with("codes.mean", array(path, "centroid_means"))
        .with("codes.cov", array(path, cov))
        .with("codes.prior", array(path, "pi"))
        .with("decoder.weight", transposed(array(path, "dec_W")))
        .with("decoder.bias", array(path, "dec_b"))
        .meta("covariance", kind)
        .meta("alpha", &alpha.to_string())
        .meta("task", "regression")
}

/// Packs, scores `inputs` of the set from a float64 array, and compares uncertainties and outputs.
fn compare(test: &str, path: &Path, weights: &Weights, inputs: &str) {
    let folder = folder(test);
    weights.pack(&folder);
    let (shape, values) = array(path, inputs);
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(folder.join("in.npy"), npy("<f8", false, &shape, &bytes)).unwrap();
    let scored = text(dab(&folder, &["score", "model.dab", "in.npy"]));
    let found = column(&scored, "uncertainty");
    assert_eq!(found.len(), shape[0]);
    let mut worst = [0.0f64; 2];
    for (i, (found, expected)) in found.iter().zip(array(path, "uncertainty").1).enumerate() {
        let extreme = i >= TYPICAL_ROWS;
        let error = (found - expected).abs() / expected.abs();
        assert!(error <= if extreme { EXTREME } else { TYPICAL }, "{test} row {i}: {found} for {expected}");
        worst[usize::from(extreme)] = worst[usize::from(extreme)].max(error);
    }
    println!("{test}: worst relative error {:.1e} typical, {:.1e} extreme", worst[0], worst[1]);

    let (outputs, expected) = array(path, "dec_out");
    let first_output = 4;
    for (i, row) in table(&scored).iter().skip(1).take(TYPICAL_ROWS).enumerate() {
        for (found, expected) in row[first_output..].iter().zip(&expected[i * outputs[1]..]) {
            let error = (found.parse::<f64>().unwrap() - expected).abs();
            assert!(error <= TYPICAL * expected.abs().max(1.0), "{test} row {i}: {found} for {expected}");
        }
    }
    text(dab(&folder, &["self-test", "model.dab"]));
}

#[test]
fn full_640_to_8() {
    let Some(path) = shared("full_640_to_8", "golden/a_full_d8_k10_in640.npz") else { return };
    let codes = codes(&path, "centroid_cov", "spectral");
    compare("golden-a", &path, &codes.clone().with("head.weight", transposed(array(&path, "W"))), "x");
    compare("golden-a-head", &path, &codes.identity_head(44), "head");
}

#[test]
fn full_50_to_4_with_a_layer() {
    let Some(path) = shared("full_50_to_4_with_a_layer", "golden/c_full_d4_k2_in50.npz") else { return };
    let codes = codes(&path, "centroid_cov", "spectral");
    let network = codes
        .clone()
        .with("head.weight", transposed(array(&path, "W")))
        .with("layers.0.weight", transposed(array(&path, "W1")))
        .with("layers.0.bias", array(&path, "b1"))
        .meta("layers.0.activation", "relu");
    compare("golden-c", &path, &network, "x8");
    compare("golden-c-head", &path, &codes.identity_head(14), "head");
}

#[test]
fn diagonal_80_of_1000_codes() {
    let Some(path) = shared("diagonal_80_of_1000_codes", "golden/b_diag_d80_k1000.npz") else { return };
    compare("golden-b", &path, &codes(&path, "centroid_var", "diagonal").identity_head(160), "head");
}
