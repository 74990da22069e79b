//! A trained model → `model.dab`.
//!
//! ```text
//! Snapshot → Spec → artifact without a table → scores of held-out inputs → artifact with the table
//! ```
//!
//! The calibration table is made of dab-core's own scores, not of the trainer's: the device ranks an input
//! among numbers that it would have computed itself, bit for bit.

use anyhow::{Context, Result};
use dab_core::artifact::info::{INPUT_MEANS, numbers_text};
use dab_core::artifact::schema::Residual;
use dab_core::artifact::writer::{CalibrationSpec, Codes, DecoderSpec, Dense, Head, Spec};
use dab_core::{CovarianceKind, Rates, Task};

use super::{device, names};
use crate::{
    config::Experiment,
    data::{Description, Scale, Table},
    model::{
        encoder::Covariance,
        network::Output,
        snapshot::{Affine, Snapshot},
    },
};

/// Inputs that travel in the artifact as known answers.
const SELF_TESTS: usize = 4;
/// The artifact of a trained model, calibrated on `held_out`.
pub fn artifact(trained: &Snapshot, held_out: &Table, info: Vec<(String, String)>) -> Result<Vec<u8>> {
    let mut spec = spec(trained, info);
    spec.self_test = held_out.iter().take(SELF_TESTS).map(<[f32]>::to_vec).collect();
    let draft = spec.to_bytes().context("the trained model cannot be stored")?;
    if held_out.rows > 0 {
        let scores = scores(&draft, held_out)?;
        spec.calibration = Some(CalibrationSpec { rates: Rates::for_held_out(scores.len() as u32), scores });
    }
    spec.to_bytes().context("the calibration table cannot be stored")
}

/// What an artifact says about itself: its experiment, its seed, and the names of inputs and outputs.
pub fn info(experiment: &Experiment, data: &Description) -> Result<Vec<(String, String)>> {
    let mut info = vec![
        ("experiment".to_owned(), experiment.name.clone()),
        ("seed".to_owned(), experiment.seed.to_string()),
    ];
    // Inputs that were scaled before the model saw them are no longer the named columns.
    let inputs = if data.input_scale.is_none() { data.input_names.as_slice() } else { &[] };
    for (key, list) in [(names::INPUTS, inputs), (names::OUTPUTS, &data.output_names)] {
        if !list.is_empty() {
            info.push((key.to_owned(), names::join(list)?));
        }
    }
    Ok(info)
}

/// What the inputs are on average in the rows that a model learnt from, for a file whose normalisation does not say it.
pub fn means(train: &Table) -> (String, String) {
    (INPUT_MEANS.to_owned(), numbers_text(&Scale::fit(train).mean))
}

/// u of every row as the device computes it.
pub fn scores(artifact: &[u8], inputs: &Table) -> Result<Vec<f32>> {
    Ok(device::assessments(artifact, inputs)?.iter().map(|said| said.uncertainty).collect())
}

/// What the file of a trained model holds, but for calibration and known answers.
pub(crate) fn spec(trained: &Snapshot, info: Vec<(String, String)>) -> Spec {
    let codebook = &trained.codebook;
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect();
    let scaled = trained.input_scale.mean.iter().any(|&m| m != 0.0)
        || trained.input_scale.std.iter().any(|&s| s != 1.0);
    let layers = trained.layers.iter().map(|layer| Dense {
        weight: transposed(&layer.affine),
        bias: layer.affine.bias.clone(),
        outputs: layer.affine.outputs,
        activation: layer.activation,
        residual: layer.residual.map(|source| Residual { source: source as u8, before_activation: false }),
        norm: None,
    });
    let head = Head {
        weight: transposed(&trained.head),
        bias: trained.head.bias.clone(),
        activation: trained.activation,
        covariance: match trained.covariance {
            Covariance::Diagonal => CovarianceKind::Diagonal,
            Covariance::Spectral => CovarianceKind::Spectral,
            Covariance::Cholesky => CovarianceKind::Cholesky,
        },
        dim: trained.dim,
    };
    let codes = Codes {
        means: wide(&codebook.means),
        covs: wide(&codebook.covs),
        priors: wide(&codebook.priors),
        alpha: trained.alpha,
    };
    Spec {
        normalization: scaled.then(|| trained.input_scale.to_normalization()),
        layers: layers.collect(),
        decoder: Some(decoder(trained)),
        info,
        ..Spec::new(trained.input_scale.mean.len(), head, codes)
    }
}

/// The decoder in the targets' own units; of a learned variance, the means alone.
fn decoder(trained: &Snapshot) -> DecoderSpec {
    let affine = &trained.decoder;
    let (outputs, task) = match trained.output {
        Output::Regression(count, _) => (count, Task::Regression),
        Output::Classes(count) => (count, Task::Classification),
    };
    let mut weight = transposed(affine);
    weight.truncate(outputs * affine.inputs);
    let mut bias = affine.bias.clone().unwrap_or_else(|| vec![0.0; outputs]);
    bias.truncate(outputs);
    if let Some(scale) = &trained.target_scale {
        for ((row, bias), (mean, std)) in
            weight.chunks_mut(affine.inputs).zip(&mut bias).zip(scale.mean.iter().zip(&scale.std))
        {
            row.iter_mut().for_each(|w| *w *= std);
            *bias = *bias * std + mean;
        }
    }
    DecoderSpec { weight, bias: Some(bias), outputs, task }
}

fn transposed(affine: &Affine) -> Vec<f32> {
    let (inputs, outputs) = (affine.inputs, affine.outputs);
    (0..inputs * outputs).map(|k| affine.weight[(k % inputs) * outputs + k / inputs]).collect()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use dab_core::artifact::AlignedBytes;

    use super::*;
    use crate::{learn::epoch::Rdfc, model::network::OutputVariance, support::random::Random};

    /// The device computes in another order: a few ulp of the largest term.
    const SAME: f32 = 1e-4;

    fn experiment(covariance: &str) -> Experiment {
        Experiment::parse(&format!(
            r#"
            name = "stored"
            seed = 7
            data = {{ kind = "regression-clusters" }}
            backbone = {{ layers = [{{ units = 5, activation = "elu" }}] }}
            bottleneck = {{ dim = 2, codes = 3, covariance = "{covariance}" }}
            objective = {{ alpha = 1.0, beta = 0.01 }}
            optimiser = {{ rule = "adam", learning_rate = 0.01 }}
            training = {{ epochs = 2 }}
            "#
        ))
        .unwrap()
    }

    /// A model that learnt nothing: every number in it is another.
    fn snapshot(covariance: &str, output: Output) -> Snapshot {
        let experiment = experiment(covariance);
        let mut random = Random::new(1, "snapshot");
        let mut model = Rdfc::new(&experiment, 4, output, 3, &Device::flex());
        model.codebook.means.iter_mut().for_each(|mean| *mean = random.normal() as f32);
        model.codebook.priors = vec![0.5, 0.3, 0.2];
        let mut trained = Snapshot::new(&model.network.frozen(), &model.codebook, 0.7);
        let biases = [&mut trained.layers[0].affine, &mut trained.head, &mut trained.decoder];
        biases
            .into_iter()
            .flat_map(|affine| &mut affine.bias)
            .flatten()
            .for_each(|b| *b = random.normal() as f32);
        trained
    }

    fn rows(count: usize) -> Table {
        let mut random = Random::new(2, "rows");
        Table::new(count, 4, (0..4 * count).map(|_| random.normal() as f32).collect()).unwrap()
    }

    /// What the file's decoder gives for every row.
    fn outputs(bytes: &[u8], rows: &Table) -> Vec<Vec<f32>> {
        let file = AlignedBytes::from(bytes);
        let model = file.model().unwrap();
        let outputs = |_, row: &[f32], scratch: &mut [f32]| {
            let mut outputs = vec![0.0; model.shape().outputs];
            model.predict_into(row, &mut outputs, scratch)?;
            Ok(outputs)
        };
        device::each_row(&model, rows, outputs).unwrap()
    }

    #[track_caller]
    fn close(found: &[f32], expected: &[f32]) {
        assert_eq!(found.len(), expected.len());
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= SAME * b.abs().max(1.0), "{found:?} instead of {expected:?}");
        }
    }

    #[test]
    fn a_file_says_what_the_trainer_says() {
        let mut regression = snapshot("cholesky", Output::Regression(2, OutputVariance::Unit));
        regression.target_scale = Some(Scale { mean: vec![100.0, -3.0], std: vec![5.0, 0.25] });
        let mut centred = snapshot("spectral", Output::Classes(3));
        centred.input_scale.mean = vec![0.0, 0.5, 0.0, -0.5];
        let mut scaled = snapshot("diagonal", Output::Classes(3));
        scaled.input_scale.std = vec![1.0, 2.0, 0.5, 1.0];
        for trained in [snapshot("diagonal", Output::Classes(3)), regression, centred, scaled] {
            let rows = rows(20);
            let bytes = artifact(&trained, &rows, Vec::new()).unwrap();
            let expected = trained.score(&rows, &Device::flex()).unwrap();
            close(&scores(&bytes, &rows).unwrap(), &expected.uncertainty);
            close(&outputs(&bytes, &rows).concat(), &expected.outputs.values);
            let encoded = device::encoded(&bytes, &rows).unwrap();
            let latent: Vec<f32> = encoded.iter().flat_map(|one| one.mean.clone()).collect();
            close(&latent, &expected.latent.values);
            let (file, row) = (AlignedBytes::from(&*bytes), rows.row(0));
            let model = file.model().unwrap();
            let mut scratch = vec![0.0; model.scratch_len()];
            let log_det = model.encode(row, &mut scratch).unwrap().log_det;
            let cov = &encoded[0].cov;
            let determinant =
                if cov.len() == 2 { cov[0] * cov[1] } else { cov[0] * cov[3] - cov[1] * cov[2] };
            assert!((determinant.ln() as f32 - log_det).abs() <= SAME * log_det.abs().max(1.0));
            let plain = trained.input_scale.mean == [0.0; 4] && trained.input_scale.std == [1.0; 4];
            assert_eq!(spec(&trained, Vec::new()).normalization.is_none(), plain);
        }
    }

    #[test]
    fn of_a_learned_variance_the_means_are_stored() {
        let mut trained = snapshot("diagonal", Output::Regression(2, OutputVariance::Learned));
        trained.target_scale = Some(Scale { mean: vec![10.0, -3.0], std: vec![5.0, 0.25] });
        let rows = rows(3);
        let bytes = artifact(&trained, &rows, Vec::new()).unwrap();
        let (found, expected) =
            (outputs(&bytes, &rows), trained.score(&rows, &Device::flex()).unwrap().outputs);
        assert_eq!((found[0].len(), expected.cols), (2, 4));
        for (row, found) in found.iter().enumerate() {
            close(found, &expected.row(row)[..2]);
        }
    }

    #[test]
    fn the_table_ranks_scores_of_held_out_rows_and_without_rows_there_is_none() {
        let (trained, held_out) = (snapshot("diagonal", Output::Classes(3)), rows(40));
        let info = vec![("a".to_owned(), "b".to_owned())];
        let bytes = artifact(&trained, &held_out, info).unwrap();
        let said = device::assessments(&bytes, &held_out).unwrap();
        let file = AlignedBytes::from(&*bytes);
        let model = file.model().unwrap();
        assert_eq!(model.calibration().unwrap().held_out, 40);
        assert_eq!(model.rates(), Rates::for_held_out(40));
        assert!(model.self_test(&mut vec![0.0; model.scratch_len()]).is_ok());
        for one in &said {
            let above = said.iter().filter(|other| other.uncertainty >= one.uncertainty).count();
            // Between two scores of the compressed table, the p-value is that of the lower one.
            assert!(one.p_value.unwrap() >= (1 + above) as f32 / 41.0 - 1e-6, "{one:?}");
        }
        let largest = said.iter().max_by(|a, b| a.uncertainty.total_cmp(&b.uncertainty)).unwrap();
        assert!((largest.p_value.unwrap() - 2.0 / 41.0).abs() < 1e-6, "{largest:?}");
        let none = Table { rows: 0, cols: 4, values: Vec::new() };
        let bytes = artifact(&trained, &none, Vec::new()).unwrap();
        assert!(AlignedBytes::from(&*bytes).model().unwrap().calibration().is_none());
    }

    #[test]
    fn a_file_names_its_experiment_and_the_columns_that_it_reads() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let mut data = Description { output_names: list(&["left", "right"]), ..Description::default() };
        let keys = |data: &Description| info(&experiment("diagonal"), data).unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let [name, seed] = [pair("experiment", "stored"), pair("seed", "7")];
        let outputs = pair(names::OUTPUTS, "left, right");
        assert_eq!(keys(&data), [name.clone(), seed.clone(), outputs.clone()]);
        data.input_names = list(&["x", "y"]);
        assert_eq!(keys(&data), [name.clone(), seed.clone(), pair(names::INPUTS, "x, y"), outputs.clone()]);
        data.input_scale = Some(Scale { mean: vec![0.0; 2], std: vec![1.0; 2] });
        assert_eq!(keys(&data), [name, seed, outputs], "scaled columns are no longer those");
        let rows = Table::from_rows(&[[1.0, 5.0], [3.0, 5.0]]).unwrap();
        assert_eq!(means(&rows), (INPUT_MEANS.to_owned(), numbers_text(&[2.0, 5.0])));
    }
}
