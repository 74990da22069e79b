//! A network that starts as a model without gradients: what it learns, it learns from there (`codebook.start = "retrofit"`).
//!
//! ```text
//! x → x + F(x), F = 0 at first → μ = W (x − m), Σ = I → codes: centres of each class → decoder: softmax regression on μ
//! ```
//!
//! W whitens what varies within classes ([`super::retrofit`]). The hidden layers end in a residual that adds the input, so
//! that they begin as the identity: distances are kept until a gradient has a reason to change them.

use anyhow::{Result, ensure};
use burn::tensor::Device;

use super::{
    epoch::Rdfc,
    retrofit::{Affine, Codes, Spread, unit, usual_logits},
};
use crate::{
    config::Experiment,
    data::Table,
    model::{activation::Activation, dense::Dense, encoder::Covariance},
};

/// r of the whitening.
const RIDGE: f64 = 0.1;
/// The raw value of a standard deviation of 1: softplus(r − 5) = 1 (method.md E1).
const UNIT_SPREAD: f32 = 5.541_325;

/// Whether an experiment on `inputs` numbers and `classes` classes can start so.
pub fn check(experiment: &Experiment, inputs: usize, classes: usize) -> Result<()> {
    let bottleneck = &experiment.bottleneck;
    let kept = experiment.backbone.layers.last().is_none_or(|last| {
        last.residual == Some(0) && last.activation == Activation::Identity && last.units == inputs
    });
    ensure!(
        kept && experiment.backbone.images.is_none(),
        "codebook.start = \"retrofit\": the last backbone layer must have {inputs} units, activation = \"identity\" and \
         residual = 0, so that the network starts as its input"
    );
    ensure!(
        bottleneck.covariance == Covariance::Diagonal
            && bottleneck.head_bias
            && bottleneck.activation == Activation::Identity
            && bottleneck.dim <= inputs,
        "codebook.start = \"retrofit\" needs a diagonal covariance, a head with a bias and without an activation, and a dim \
         of at most {inputs}"
    );
    ensure!(
        bottleneck.codes > 0 && bottleneck.codes.is_multiple_of(classes),
        "codebook.start = \"retrofit\" needs as many codes in each of the {classes} classes, not {} in all",
        bottleneck.codes
    );
    Ok(())
}

/// Sets the weights and codes of a fresh `model` from `inputs`, scaled as the network sees them.
pub fn set(model: &mut Rdfc, inputs: &Table, labels: &[u32], classes: usize, device: &Device) -> Result<()> {
    let (dim, cols) = (model.network.dim, inputs.cols);
    let each = model.codebook.priors.len() / classes.max(1);
    let mut head = Spread::fit(inputs, labels, classes)?.rotated(RIDGE, dim);
    let latent = head.apply(inputs);
    let mut codes = Codes::fit(&latent, labels, classes, each, model.seed, "start/codes");
    ensure!(
        codes.means.rows == each * classes && head.outputs() == dim,
        "codebook.start = \"retrofit\": a class has fewer rows than its {each} codes, or the inputs vary along fewer than {dim} \
         axes"
    );
    let scale = unit(&codes.nearest(&latent), latent.cols);
    let tables = [&mut head.weight, &mut head.bias, &mut codes.means.values];
    tables.into_iter().flatten().for_each(|x| *x *= scale);
    let decoder = Affine::from(usual_logits(&head.apply(inputs), labels, classes)?.layer());

    let device = &device.clone().autodiff();
    let layer = |rows: &[f32], bias: Vec<f32>, inputs: usize| {
        let outputs = bias.len();
        let weight = (0..inputs).flat_map(|i| (0..outputs).map(move |o| rows[o * inputs + i])).collect();
        Dense::from_values(weight, Some(bias), [inputs, outputs], device)
    };
    let network = &mut model.network;
    // The rows of the spread are 0: it is the same for every input.
    head.weight.resize(2 * dim * cols, 0.0);
    head.bias.resize(2 * dim, UNIT_SPREAD);
    network.head = layer(&head.weight, head.bias, cols);
    network.decoder = layer(&decoder.weight, decoder.bias, dim);
    if let Some(last) = network.backbone.layers.last_mut() {
        let [inputs, outputs] = last.dense.weight.dims();
        let bias = last.dense.bias.as_ref().map(|_| vec![0.0; outputs]);
        last.dense = Dense::from_values(vec![0.0; inputs * outputs], bias, [inputs, outputs], device);
    }
    network.map(|parameter| parameter.require_grad());
    model.codebook.means = codes.means.values;
    model.codebook.covs.fill(1.0);
    model.codebook.priors = codes.priors.iter().map(|&p| p as f32).collect();
    model.started = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{
            Start,
            defaults::{self, Wishes},
        },
        data::{DataConfig, Split, Targets},
        learn::run::{self, Setting},
        model::dense::LayerConfig,
        support::random::Random,
    };

    /// Three classes in five columns.
    fn rows() -> Split {
        let mut random = Random::new(2, "start");
        let labels: Vec<u32> = (0..300).map(|i| i % 3).collect();
        let row = |&label: &u32| -> Vec<f32> {
            (0..5).map(|j| if j == label as usize { 4.0 } else { 0.0 } + random.normal() as f32).collect()
        };
        let inputs = Table::from_rows(&labels.iter().map(row).collect::<Vec<_>>()).unwrap();
        Split { inputs, targets: Targets::Classes { labels, count: 3 } }
    }

    fn experiment(train: &Split, start: Start) -> Experiment {
        let wishes = Wishes { epochs: Some(2), ..Wishes::default() };
        let mut experiment = defaults::experiment("start", 0, DataConfig::Memory, train, wishes);
        experiment.codebook.start = start;
        experiment.bottleneck.dim = 4;
        experiment.optimiser.learning_rate = 1e-9;
        experiment.backbone.layers[1] =
            LayerConfig { units: 5, activation: Activation::Identity, residual: Some(0) };
        experiment
    }

    #[test]
    fn a_network_that_starts_as_a_retrofit_knows_the_classes_before_it_learns() {
        let train = rows();
        let Targets::Classes { labels, .. } = &train.targets else { unreachable!() };
        let right = [Start::Retrofit, Start::Classes].map(|start| {
            let device = Device::flex();
            let setting =
                Setting { seed: 0, device: device.clone(), checkpoint: None, resume: false, machines: None };
            let learnt = run::train(&experiment(&train, start), &train, &setting, &mut ()).unwrap();
            let outputs = learnt.trained.score(&train.inputs, &device).unwrap().outputs;
            let top = |row: &[f32]| (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u32;
            outputs.iter().zip(labels).filter(|(row, label)| top(row) == **label).count()
        });
        assert!(right[0] > 280 && right[1] < 240, "{right:?} of 300");
    }

    #[test]
    fn what_cannot_start_so_is_told_why() {
        let train = rows();
        let said = |change: &dyn Fn(&mut Experiment)| {
            let mut experiment = experiment(&train, Start::Retrofit);
            change(&mut experiment);
            check(&experiment, 5, 3).map_err(|error| error.to_string())
        };
        assert_eq!(said(&|_| ()), Ok(()));
        assert!(said(&|e| e.backbone.layers[1].units = 6).unwrap_err().contains("must have 5 units"));
        assert!(said(&|e| e.bottleneck.dim = 6).unwrap_err().contains("a dim of at most 5"));
        assert!(said(&|e| e.bottleneck.codes = 4).unwrap_err().contains("each of the 3 classes"));
    }
}
