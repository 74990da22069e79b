//! The codebook step beside its equations, written out in f64 for a handful of examples.

use nalgebra::{DMatrix, DVector};

use super::*;
use crate::{
    config::Calibrated,
    learn::{
        examples::{Inputs, one_hot},
        machines::tests::three,
    },
    model::{codebook::Codebook, encoder::Covariance},
};

/// Tensors are f32, and so are the covariances whose determinants are taken here: a small one loses some digits.
const ROUNDING: f64 = 1e-4;
const KINDS: [Covariance; 3] = [Covariance::Diagonal, Covariance::Spectral, Covariance::Cholesky];
const DIM: usize = 2;
const CODES: usize = 3;
const INPUTS: usize = 2;
const CLASSES: usize = 3;
/// Three mini-batches, the last one short.
const ROWS: usize = 7;
const BATCH: usize = 3;
const ALPHA: f64 = 0.3;

fn experiment(kind: Covariance, codebook: &str) -> Experiment {
    let text = format!(
        r#"
        name = "step"
        data = {{ kind = "regression-clusters" }}
        backbone = {{ layers = [{{ units = 4, activation = "elu" }}] }}
        bottleneck = {{ dim = {DIM}, codes = {CODES} }}
        objective = {{ alpha = {ALPHA}, beta = 0.01 }}
        optimiser = {{ rule = "adam", learning_rate = 0.01 }}
        training = {{ epochs = 4, batch = {BATCH} }}
        codebook = {{ {codebook} }}
        "#
    );
    let mut experiment = Experiment::parse(&text).unwrap();
    experiment.bottleneck.covariance = kind;
    experiment
}

fn tensor(values: Vec<f64>, cols: usize) -> Tensor<2> {
    let rows = values.len() / cols;
    constant(values, [rows, cols], &Device::flex(), DType::F32)
}

fn examples(rows: usize) -> Examples {
    let mut random = Random::new(1, "inputs");
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % 2 * 2).collect();
    let inputs = tensor((0..rows * INPUTS).map(|_| random.normal()).collect(), INPUTS);
    let wanted = one_hot(&labels, CLASSES, &Device::flex());
    Examples { inputs: Inputs::Table { inputs, wanted }, labels: Some(labels), noise: None }
}

/// A model whose codes differ in everything; the last is so far away that f32 has no number for its share.
fn model(experiment: &Experiment, kind: Covariance) -> Rdfc {
    let mut model = Rdfc::new(experiment, INPUTS, Output::Classes(CLASSES), 5, &Device::flex());
    let means = vec![-1.0, 0.5, 2.0, 1.0, 600.0, 400.0];
    model.codebook = Codebook { priors: vec![0.5, 0.3, 0.2], ..Codebook::new(means, DIM, kind) };
    model.codebook.covs = match kind {
        Covariance::Diagonal => vec![1.0, 2.0, 0.5, 3.0, 1.5, 1.0],
        _ => vec![1.0, 0.3, 0.3, 2.0, 0.5, -0.4, -0.4, 3.0, 1.5, 0.0, 0.0, 1.0],
    };
    model.started = true;
    model
}

/// Wide encodings, so that their own covariances count. Of the second mini-batch one example has no share, of the third nobody.
fn encodings<'a>(model: &Rdfc, examples: &'a Examples, kind: Covariance) -> Encodings<'a> {
    let mut random = Random::new(2, "encodings");
    let outputs = kind.outputs(DIM);
    let rows: Vec<Vec<usize>> = (0..ROWS).collect::<Vec<_>>().chunks(BATCH).map(<[usize]>::to_vec).collect();
    let kept = rows.iter().map(|rows| {
        let head = rows.iter().flat_map(|_| (0..outputs).map(|at| if at < DIM { 0.0 } else { 4.5 }));
        let head: Vec<f64> = head.map(|shift| shift + 1.5 * random.normal()).collect();
        let share = rows.iter().map(|&row| f64::from(u8::from(row != 4 && row != 6))).collect();
        (Encoding::new(tensor(head, outputs), DIM, kind), tensor(share, 1))
    });
    let kept = kept.collect();
    Encodings { network: model.network.frozen(), examples, rows, kept, calibrated: false }
}

/// A Gaussian as a vector and a matrix.
#[derive(Clone)]
struct Plain {
    mean: DVector<f64>,
    cov: DMatrix<f64>,
}

impl Plain {
    fn new(mean: &[f64], cov: &[f64]) -> Self {
        let cov = match cov.len() {
            DIM => DMatrix::from_diagonal(&DVector::from_column_slice(cov)),
            _ => DMatrix::from_row_slice(DIM, DIM, cov),
        };
        Self { mean: DVector::from_column_slice(mean), cov }
    }

    /// E4.
    fn distance(&self, code: &Self) -> f64 {
        let precision = code.cov.clone().try_inverse().unwrap();
        let offset = &self.mean - &code.mean;
        let square = (offset.transpose() * &precision * &offset)[0];
        let logs = code.cov.determinant().ln() - self.cov.determinant().ln();
        0.5 * ((&precision * &self.cov).trace() + square - DIM as f64 + logs)
    }

    /// Σ + (μ − m)(μ − m)ᵀ, as the codebook keeps it.
    fn about(&self, mean: &DVector<f64>, kind: Covariance) -> Vec<f64> {
        let offset = &self.mean - mean;
        let whole = &self.cov + &offset * offset.transpose();
        match kind {
            Covariance::Diagonal => whole.diagonal().as_slice().to_vec(),
            _ => whole.as_slice().to_vec(),
        }
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn codes(book: &Codebook) -> Vec<Plain> {
    let entries = book.kind.entries(DIM);
    let pairs = book.means.chunks(DIM).zip(book.covs.chunks(entries));
    pairs.map(|(mean, cov)| Plain::new(&wide(mean), &wide(cov))).collect()
}

/// An example of a mini-batch: its Gaussian, its share, π_x (E5) and u (E6).
struct Example {
    gaussian: Plain,
    share: f64,
    assignment: Vec<f64>,
    u: f64,
}

fn batches(model: &Rdfc, encodings: &Encodings, alpha: f64) -> Vec<Vec<Example>> {
    let (codes, priors) = (codes(&model.codebook), wide(&model.codebook.priors));
    let entries = model.codebook.kind.entries(DIM);
    let one = |(mean, (cov, &share)): (&[f64], (&[f64], &f64))| {
        let gaussian = Plain::new(mean, cov);
        let distances: Vec<f64> = codes.iter().map(|code| gaussian.distance(code)).collect();
        let likely: Vec<f64> = distances.iter().zip(&priors).map(|(d, p)| p * (-alpha * d).exp()).collect();
        let total: f64 = likely.iter().sum();
        let assignment: Vec<f64> = likely.iter().map(|l| l / total).collect();
        let u = assignment.iter().zip(&distances).map(|(p, d)| p * d).sum();
        Example { gaussian, share, assignment, u }
    };
    let batch = |(encoding, share): (Encoding, Tensor<2>)| {
        let (means, covs, shares) = (numbers(encoding.mean.clone()), numbers(encoding.cov()), numbers(share));
        means.chunks(DIM).zip(covs.chunks(entries).zip(&shares)).map(one).collect()
    };
    encodings.iter().map(batch).collect()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= ROUNDING * b.abs().max(1.0), "{found:?} instead of {expected:?}");
    }
}

/// Σw, Σw[…] and Σπ of a mini-batch.
fn sums(book: &Codebook, batch: &[Example], pseudo_count: f64) -> [Vec<f64>; 3] {
    let (codes, entries) = (codes(book), book.kind.entries(DIM));
    let mut sums = [vec![0.0; CODES], vec![0.0; CODES * entries], vec![0.0; CODES]];
    for example in batch {
        for (code, plain) in codes.iter().enumerate() {
            let prior = example.assignment[code] * example.share;
            let weight = prior + pseudo_count * example.share;
            sums[0][code] += weight;
            let about = example.gaussian.about(&plain.mean, book.kind);
            add(&mut sums[1][code * entries..(code + 1) * entries], &about, weight);
            sums[2][code] += prior;
        }
    }
    sums
}

#[test]
fn sums_over_a_pass_are_those_of_e11_and_e12() {
    for kind in KINDS {
        let (experiment, examples) = (experiment(kind, ""), examples(ROWS));
        let mut model = model(&experiment, kind);
        let encodings = encodings(&model, &examples, kind);
        let batches = batches(&model, &encodings, ALPHA);
        let all: Vec<&Example> = batches.iter().flatten().collect();
        let used = |code: usize| all.iter().map(|example| example.assignment[code]).sum::<f64>();
        assert!(used(0) > 0.5 && used(1) > 0.5 && used(2) < 1e-60);
        for pseudo_count in [0.0, 0.7] {
            let found = model.exact_sums(&encodings, ALPHA, pseudo_count);
            let mut expected = [vec![0.0; CODES], vec![0.0; found.covs.len()], vec![0.0; CODES]];
            for batch in &batches {
                let own = sums(&model.codebook, batch, pseudo_count);
                expected.iter_mut().zip(own).for_each(|(sum, own)| add(sum, &own, 1.0));
            }
            close(&found.weights, &expected[0]);
            close(&found.covs, &expected[1]);
            close(&found.priors, &expected[2]);
            close(&found.uncertainty, &all.iter().map(|example| example.u).collect::<Vec<_>>());
            let entropy =
                |e: &&Example| e.share * e.assignment.iter().map(|p| p * p.max(1e-99).ln()).sum::<f64>();
            close(&[found.negative_entropy], &[all.iter().map(entropy).sum()]);
        }
    }
}

#[test]
fn moving_averages_are_those_of_e13() {
    const MOMENTUM: f64 = 0.8;
    for kind in KINDS {
        let (experiment, examples) = (experiment(kind, ""), examples(ROWS));
        let mut model = model(&experiment, kind);
        let encodings = encodings(&model, &examples, kind);
        let batches = batches(&model, &encodings, ALPHA);
        let entries = kind.entries(DIM);
        for pseudo_count in [0.0, 5.0] {
            let (mut covs, mut priors) = (vec![0.0; CODES * entries], vec![1.0 / CODES as f64; CODES]);
            // The third mini-batch has nobody with a share.
            for batch in &batches[..2] {
                let [weights, sums, shares] = sums(&model.codebook, batch, pseudo_count);
                // Without a pseudo-count, the far code has no weight and keeps what it has.
                for code in (0..CODES).filter(|&code| weights[code] > 1e-30) {
                    for at in code * entries..(code + 1) * entries {
                        covs[at] = MOMENTUM * covs[at] + (1.0 - MOMENTUM) * sums[at] / weights[code];
                    }
                }
                let total: f64 = shares.iter().sum();
                for (prior, share) in priors.iter_mut().zip(shares) {
                    *prior = MOMENTUM * *prior + (1.0 - MOMENTUM) * share / total;
                }
            }
            let found = model.moving_averages(&encodings, ALPHA, pseudo_count, MOMENTUM);
            close(&found.covs, &covs);
            assert_eq!(found.weights, [1.0; CODES]);
            close(&found.priors, &priors.iter().map(|prior| prior * ROWS as f64).collect::<Vec<_>>());
            assert_eq!(found.uncertainty.len(), ROWS);
        }
    }
}

#[test]
fn means_go_to_their_examples_at_once_or_by_a_step() {
    for kind in KINDS {
        let (experiment, examples) = (experiment(kind, ""), examples(ROWS));
        let before = model(&experiment, kind);
        let mut encodings = encodings(&before, &examples, kind);
        let batches = batches(&before, &encodings, ALPHA);
        let (mut weights, mut sums) = (vec![0.0; CODES], vec![0.0; CODES * DIM]);
        for example in batches.iter().flatten() {
            for code in 0..CODES {
                let weight = example.share * example.assignment[code];
                weights[code] += weight;
                add(&mut sums[code * DIM..(code + 1) * DIM], example.gaussian.mean.as_slice(), weight);
            }
        }
        let mut centred = before.clone();
        centred.centre_means(&encodings, ALPHA);
        let found = wide(&centred.codebook.means);
        close(&found[..4], &(0..4).map(|at| sums[at] / weights[at / DIM]).collect::<Vec<_>>());
        assert_eq!(found[4..], [600.0, 400.0], "nobody has a share in it");

        // Adam's first step has one length, whatever the gradient: −rate · sign.
        const RATE: f64 = 0.01;
        let mut stepped = before.clone();
        encodings.rows.truncate(2);
        encodings.rows.remove(0);
        encodings.kept.remove(0);
        stepped.means_by_gradient(&encodings, ALPHA, RATE);
        let codes = codes(&before.codebook);
        for (code, plain) in codes.iter().enumerate().take(2) {
            let precision = plain.cov.clone().try_inverse().unwrap();
            let gradient = batches[1].iter().fold(DVector::zeros(DIM), |sum: DVector<f64>, example| {
                let pull = &precision * (&plain.mean - &example.gaussian.mean);
                sum + pull * (example.share * example.assignment[code])
            });
            for at in 0..DIM {
                let expected = plain.mean[at] - RATE * gradient[at].signum();
                close(&[f64::from(stepped.codebook.means[code * DIM + at])], &[expected]);
            }
        }
        assert_eq!(stepped.codebook.means[4..], [600.0, 400.0]);
    }
}

#[test]
fn misclassified_examples_have_no_share_under_e9() {
    let kind = Covariance::Cholesky;
    let (mut experiment, examples) = (experiment(kind, ""), examples(ROWS));
    let mut model = model(&experiment, kind);
    // One class wins everywhere: that of every second example.
    let bias = model.network.decoder.bias.clone().unwrap();
    model.network.decoder.bias = Some(bias.add(tensor(vec![100.0, 0.0, 0.0], CLASSES).autodiff()));
    let shares = |experiment: &Experiment, model: &Rdfc| -> Vec<f64> {
        let encodings = Encodings::new(model, experiment, &examples);
        assert_eq!(encodings.kept.len(), 3, "they are kept");
        let held: usize = (encodings.kept.iter())
            .map(|(encoding, share)| {
                let parts = encoding.clone().into_list().into_iter().chain([share.clone()]);
                parts.map(|part| numbers(part).len() * size_of::<f32>()).sum::<usize>()
            })
            .sum();
        assert_eq!(encodings.bytes(), held);
        encodings.iter().flat_map(|(_, share)| numbers(share)).collect()
    };
    assert_eq!(shares(&experiment, &model), [1.0; ROWS]);
    experiment.objective.calibrated = Some(Calibrated { least: 50.0, weight: 1.0 });
    assert_eq!(shares(&experiment, &model), [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    // Of numbers, none is misclassified.
    model.network.output = Output::Regression(CLASSES, Default::default());
    assert_eq!(shares(&experiment, &model), [1.0; ROWS]);
}

#[test]
fn replicas_and_machines_give_the_encodings_of_one() {
    let kind = Covariance::Spectral;
    let (experiment, examples) = (experiment(kind, ""), examples(15 * BATCH + 1));
    let model = model(&experiment, kind);
    let listed = |made: Vec<(Encoding, Tensor<2>)>| -> Vec<Vec<f64>> {
        let parts = |(encoding, share): (Encoding, Tensor<2>)| {
            encoding.into_list().into_iter().chain([share]).flat_map(numbers).collect()
        };
        made.into_iter().map(parts).collect()
    };
    let encodings = Encodings::new(&model, &experiment, &examples);
    let alone = listed((0..16).map(|batch| encodings.make(batch)).collect());
    for replicas in 1..=3 {
        let replicas = vec![Device::flex(); replicas];
        assert_eq!(listed(encodings.make_all(&replicas, None)), alone);
        for made in three(|machines| listed(encodings.make_all(&replicas, Some(machines)))) {
            assert_eq!(made, alone, "{} replicas on three machines", replicas.len());
        }
    }
}

#[test]
fn codes_wait_for_the_network_then_start_then_follow_it() {
    let examples = examples(ROWS);
    let step = |codebook: &str, epoch: usize, started: bool| {
        let experiment = experiment(Covariance::Cholesky, codebook);
        let mut model = model(&experiment, Covariance::Cholesky);
        (model.epoch, model.started) = (epoch, started);
        let (before, mut report) = (model.codebook.clone(), Epoch { rate: -1.0, ..Epoch::default() });
        model.codebook_step(&experiment, &examples, &mut report);
        (model.codebook != before, report.rate != -1.0, model.started)
    };
    let (nothing, start, follow) = ((false, false, false), (true, false, true), (true, true, true));
    for (epoch, expected) in [nothing, nothing, start, start].into_iter().enumerate() {
        assert_eq!(step("warmup = 3", epoch, false), expected, "epoch {epoch}");
        assert_eq!(step("warmup = 3, start = \"classes\"", epoch, false), expected, "epoch {epoch}");
        assert_eq!(step("warmup = 3", epoch, true), follow, "epoch {epoch}");
        assert_eq!(step("warmup = 3, start = \"normal\"", epoch, false), follow, "epoch {epoch}");
    }
}

#[test]
fn a_step_updates_means_then_covariances_and_priors() {
    for (mode, momentum) in [("exact", None), ("reference", Some(0.8))] {
        for rate in [0.0, 0.01] {
            let kind = Covariance::Cholesky;
            let settings = format!(
                "mode = \"{mode}\", momentum = 0.8, mean_learning_rate = {rate}, pseudo_count = 0.5, pooled = 0.2,
                ridge = 0.1, prior_floor = 0.3, reseed_below = 0.0"
            );
            let (experiment, examples) = (experiment(kind, &settings.replace('\n', "")), examples(ROWS));
            let mut found = model(&experiment, kind);
            let mut expected = found.clone();
            let mut report = Epoch::default();
            found.codebook_step(&experiment, &examples, &mut report);
            let encodings = Encodings::new(&expected, &experiment, &examples);
            if rate > 0.0 {
                expected.means_by_gradient(&encodings, ALPHA, rate);
            } else if momentum.is_none() {
                expected.centre_means(&encodings, ALPHA);
            }
            let batches = batches(&expected, &encodings, ALPHA);
            let sums = match momentum {
                Some(momentum) => expected.moving_averages(&encodings, ALPHA, 0.5, momentum),
                None => expected.exact_sums(&encodings, ALPHA, 0.5),
            };
            expected.codebook.set_covs(&sums.covs, &sums.weights, experiment.codebook.shrinkage());
            expected.codebook.set_priors(&sums.priors, 0.3);
            assert_eq!(found.codebook, expected.codebook, "{mode} {rate}");
            // mean_x KL(π_x ‖ π); the far code, which nobody has a share in, adds nothing.
            let priors: Vec<f64> = sums.priors.iter().map(|prior| prior / ROWS as f64).collect();
            let divergence = |e: &Example| {
                let used = e.assignment.iter().zip(&priors).filter(|(p, _)| **p > 1e-30);
                used.map(|(p, prior)| p * (p / prior).ln()).sum::<f64>()
            };
            let rate = batches.iter().flatten().map(divergence).sum::<f64>() / ROWS as f64;
            if momentum.is_none() {
                assert_eq!(sums.priors[2], 0.0);
                assert!(rate > 0.01, "{rate}");
                close(&[report.rate], &[rate]);
            }
        }
    }
}

#[test]
fn a_code_of_each_class_starts_as_its_examples_are() {
    for kind in KINDS {
        let (experiment, examples) =
            (experiment(kind, "start = \"classes\", ridge = 0.0, prior_floor = 0.0"), examples(ROWS));
        let mut found = model(&experiment, kind);
        let before = found.codebook.clone();
        let encodings = encodings(&found, &examples, kind);
        let all: Vec<Example> = batches(&found, &encodings, ALPHA).into_iter().flatten().collect();
        found.start(&experiment, &encodings);
        let (book, entries) = (&found.codebook, kind.entries(DIM));
        // Classes 0 and 2 have four examples and three; class 1 has none.
        for (code, first, count) in [(0, 0, 4.0), (2, 1, 3.0)] {
            let own = || all.iter().skip(first).step_by(2).map(|example| &example.gaussian);
            let mean = own().fold(DVector::zeros(DIM), |sum: DVector<f64>, one| sum + &one.mean) / count;
            close(&wide(&book.means[code * DIM..(code + 1) * DIM]), mean.as_slice());
            let mut cov = vec![0.0; entries];
            own().for_each(|one| add(&mut cov, &one.about(&mean, kind), 1.0 / count));
            close(&wide(&book.covs[code * entries..(code + 1) * entries]), &cov);
        }
        assert_eq!(book.means[DIM..2 * DIM], before.means[DIM..2 * DIM]);
        close(&wide(&book.covs[entries..2 * entries]), &wide(&before.covs[entries..2 * entries]));
        close(&wide(&book.priors), &[0.5, 0.125, 0.375]);
        assert!(found.started);
    }
}

#[test]
fn codes_that_start_by_clusters_sit_in_them() {
    let kind = Covariance::Diagonal;
    let (experiment, examples) = (experiment(kind, "start = \"kmeans\""), examples(ROWS));
    let mut found = model(&experiment, kind);
    let mut encodings = encodings(&found, &examples, kind);
    // Rows in turn near one of three places.
    for (rows, (encoding, _)) in encodings.rows.iter().zip(&mut encodings.kept) {
        let places = rows.iter().flat_map(|&row| [100.0 * (row % 3) as f64, row as f64]);
        encoding.mean = tensor(places.collect(), DIM);
    }
    found.start(&experiment, &encodings);
    let mut places: Vec<[f32; 3]> = (0..CODES)
        .map(|code| {
            [
                found.codebook.means[code * DIM],
                found.codebook.means[code * DIM + 1],
                found.codebook.priors[code],
            ]
        })
        .collect();
    places.sort_by(|a, b| a[0].total_cmp(&b[0]));
    close(&wide(places.as_flattened()), &[0.0, 3.0, 3.0 / 7.0, 100.0, 2.5, 2.0 / 7.0, 200.0, 3.5, 2.0 / 7.0]);
}

#[test]
fn dead_codes_start_again_at_far_examples() {
    for kind in [Covariance::Diagonal, Covariance::Cholesky] {
        let (experiment, examples) = (experiment(kind, ""), examples(ROWS));
        let mut found = model(&experiment, kind);
        let encodings = encodings(&found, &examples, kind);
        let entries = kind.entries(DIM);
        // Five codes, of which the first and the third are dead: their priors are below a tenth of a fifth.
        let book = &mut found.codebook;
        book.means.extend([7.0, 8.0, -7.0, 3.0]);
        book.covs.extend_from_within(..2 * entries);
        book.covs[3 * entries] = 5.0;
        book.priors = vec![0.015, 0.5, 0.01, 0.3, 0.175];
        let before = book.clone();
        // Only rows 4 and 6 are far away. They are in the second and third mini-batch.
        let u = vec![-1.0, 0.0, -2.0, 0.0, 3.0, -5.0, 4.0];
        assert_eq!(found.clone().reseed(0.01, &encodings, u.clone()), 0, "nobody is so rare");
        let mut all = found.clone();
        assert_eq!(all.reseed(9.0, &encodings, u.clone()), 0, "there is no code to learn from");
        assert_eq!(all.codebook, before);
        assert_eq!(found.reseed(0.1, &encodings, u), 2);
        let book = &found.codebook;
        let point = |batch: usize, at: usize| {
            let mean: Vec<f32> = encodings.kept[batch].0.mean.to_data().iter::<f32>().collect();
            mean[at * DIM..(at + 1) * DIM].to_vec()
        };
        let mut places = [book.means[..DIM].to_vec(), book.means[2 * DIM..3 * DIM].to_vec()];
        let mut far = [point(1, 1), point(2, 0)];
        places.sort_by(|a, b| a[0].total_cmp(&b[0]));
        far.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(places, far);
        let alive = [1, 3, 4];
        let third = |at: usize| {
            alive.map(|code| f64::from(before.covs[code * entries + at])).iter().sum::<f64>() / 3.0
        };
        let average: Vec<f64> = (0..entries).map(third).collect();
        for code in 0..5 {
            let covs = code * entries..(code + 1) * entries;
            let (own, kept) = (wide(&book.covs[covs.clone()]), wide(&before.covs[covs]));
            close(&own, if alive.contains(&code) { &kept } else { &average });
        }
        for code in alive {
            assert_eq!(book.means[code * DIM..(code + 1) * DIM], before.means[code * DIM..(code + 1) * DIM]);
        }
        let total = 0.2 + 0.5 + 0.2 + 0.3 + 0.175;
        close(&wide(&book.priors), &[0.2, 0.5, 0.2, 0.3, 0.175].map(|prior| prior / total));
    }
}

#[test]
fn codes_start_again_in_the_first_part_of_training_alone() {
    let reseeded = |epoch: usize| {
        let settings = "reseed_below = 0.1, reseed_until = 0.5, prior_floor = 0.0, start = \"normal\"";
        let (experiment, examples) = (experiment(Covariance::Diagonal, settings), examples(ROWS));
        let mut model = model(&experiment, Covariance::Diagonal);
        model.epoch = epoch;
        let mut report = Epoch::default();
        model.codebook_step(&experiment, &examples, &mut report);
        report.reseeded
    };
    // Half of four epochs.
    assert_eq!([0, 1, 2, 3].map(reseeded), [1, 1, 0, 0]);
}
