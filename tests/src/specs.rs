//! Models for the tests: three real ones, and random ones of every kind and shape.
//!
//! Everything is seeded: the same call gives the same bytes.

use dab_core::artifact::schema::{CovarianceKind, DecoderReads, Form, Residual, Task};
use dab_core::artifact::writer::{
    AmbiguitySpec, BaseSpec, CalibrationSpec, ChannelsSpec, Codes, DecoderSpec, Dense, Head, LocalSpec,
    Normalization, RestSpec, Spec, ViewDecoder, ViewSpec, WeightKind,
};
use dab_core::channels::{Tail, Tails};
use dab_core::gaussian::{Full, Gaussian, spectral_work_len};
use dab_core::monitor::{Config, Drift};
use dab_core::{Activation, Rates};

/// A seeded generator (SplitMix64): good enough to choose test cases, small enough to read.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One of `values`.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Uniform in (−1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// `n` values, uniform in (−scale, scale).
    pub fn floats(&mut self, n: usize, scale: f64) -> Vec<f32> {
        (0..n).map(|_| (scale * self.unit()) as f32).collect()
    }
}

/// A random covariance `[dim, dim]`, well conditioned: B Bᵀ/dim + 0.1 I.
pub fn covariance(random: &mut Random, dim: usize) -> Vec<f64> {
    let b: Vec<f64> = (0..dim * dim).map(|_| random.unit()).collect();
    let entry = |i: usize, j: usize| {
        let dot: f64 = (0..dim).map(|l| b[i * dim + l] * b[j * dim + l]).sum();
        dot / dim as f64 + if i == j { 0.1 } else { 0.0 }
    };
    (0..dim * dim).map(|at| entry(at / dim, at % dim)).collect()
}

/// A random codebook that fits `kind`.
pub fn codes(random: &mut Random, kind: CovarianceKind, dim: usize, k: usize, alpha: f32) -> Codes {
    let means = (0..k * dim).map(|_| random.unit()).collect();
    let covs = (0..k).flat_map(|_| match kind {
        CovarianceKind::Diagonal => (0..dim).map(|_| 0.5 + 0.45 * random.unit()).collect::<Vec<_>>(),
        CovarianceKind::Spectral | CovarianceKind::Cholesky => covariance(random, dim),
        CovarianceKind::Constant => Vec::new(),
    });
    let covs = covs.collect();
    let weights: Vec<f64> = (0..k).map(|_| 1.05 + random.unit()).collect();
    let sum: f64 = weights.iter().sum();
    Codes { means, covs, priors: weights.iter().map(|w| w / sum).collect(), alpha }
}

/// A model without layers whose raw outputs are its inputs: the head is the identity.
pub fn bare(random: &mut Random, kind: CovarianceKind, dim: usize, k: usize, alpha: f32) -> Spec {
    let raw = kind.raw_len(dim);
    let weight = (0..raw * raw).map(|at| if at / raw == at % raw { 1.0 } else { 0.0 }).collect();
    let head = Head { weight, bias: None, activation: Activation::Identity, covariance: kind, dim };
    let mut spec = Spec::new(raw, head, codes(random, kind, dim, k, alpha));
    spec.channels = (kind == CovarianceKind::Constant).then(ChannelsSpec::default);
    spec
}

/// A dense layer with random weights of about unit gain.
fn dense(random: &mut Random, inputs: usize, outputs: usize, activation: Activation, scale: f64) -> Dense {
    let gain = scale * (3.0 / inputs as f64).sqrt();
    let weight = random.floats(inputs * outputs, gain);
    Dense {
        weight,
        bias: Some(random.floats(outputs, 0.1 * scale)),
        outputs,
        activation,
        residual: None,
        norm: None,
    }
}

/// A random model of any shape: 0 to 3 layers with every activation, residuals, optional parts, weights
/// of about `scale`.
pub fn any(random: &mut Random, kind: CovarianceKind, scale: f64) -> Spec {
    let (inputs, width) = (1 + random.below(9), 1 + random.below(12));
    let mut layers = Vec::new();
    let mut features = inputs;
    for i in 0..random.below(4) {
        let activation = random.pick(&Activation::ALL);
        let mut layer = dense(random, features, width, activation, scale);
        // One slot of memory holds one earlier activation: the input where it fits, else the first layer's.
        let source = u8::from(inputs != width);
        if usize::from(source) <= i && random.below(2) == 0 {
            layer.residual = Some(Residual { source, before_activation: random.below(2) == 0 });
        }
        if random.below(3) == 0 {
            layer.bias = None;
        }
        layers.push(layer);
        features = width;
    }
    let (dim, k) = (random.pick(&[1, 2, 3, 5, 8, 9]), random.pick(&[1, 2, 3, 8, 11]));
    let raw = kind.raw_len(dim);
    let head = Head {
        weight: random.floats(raw * features, scale * (3.0 / features as f64).sqrt()),
        bias: (random.below(2) == 0).then(|| random.floats(raw, 5.0)),
        activation: random.pick(&Activation::ALL),
        covariance: kind,
        dim,
    };
    let outputs = random.below(4);
    let mut spec = Spec {
        inputs,
        normalization: (random.below(2) == 0).then(|| Normalization {
            mean: random.floats(inputs, scale),
            std: random.floats(inputs, 1.0).iter().map(|x| 1.1 + x).collect(),
        }),
        layers,
        head,
        codes: {
            let alpha = random.pick(&[0.0, 1e-10, 0.5, 1.0, 5.0, 1e10]);
            codes(random, kind, dim, k, alpha)
        },
        decoder: (outputs > 0).then(|| DecoderSpec {
            weight: random.floats(outputs * dim, scale),
            bias: Some(random.floats(outputs, scale)),
            outputs,
            task: random.pick(&[Task::Regression, Task::Classification]),
        }),
        calibration: (random.below(2) == 0).then(|| CalibrationSpec {
            scores: random.floats(40, 3.0).iter().map(|s| s.abs()).collect(),
            rates: Rates::for_held_out(40),
        }),
        self_test: vec![],
        channels: None,
        weights: WeightKind::Float32,
        info: vec![],
    };
    if kind == CovarianceKind::Constant {
        spec.channels = Some(channels(random, &mut spec, scale));
    }
    spec
}

/// Random channels for a random model, whose decoder may be made to read the input.
fn channels(random: &mut Random, spec: &mut Spec, scale: f64) -> ChannelsSpec {
    let classes = spec.decoder.as_ref().filter(|d| d.task == Task::Classification).map_or(0, |d| d.outputs);
    let mut decoder_reads = DecoderReads::Latent;
    if let Some(decoder) = spec.decoder.as_mut()
        && random.below(2) == 0
    {
        decoder_reads = DecoderReads::Input;
        decoder.weight = random.floats(decoder.outputs * spec.inputs, scale);
    }
    let form = |random: &mut Random, classes: usize| {
        if classes > 0 { random.pick(&Form::ALL) } else { Form::Distance }
    };
    let base = BaseSpec {
        l2: random.below(2) == 0,
        form: form(random, classes),
        decoder_reads,
        tails: tails(random),
    };
    let views = (0..random.below(4)).map(|_| {
        let classes = random.below(4);
        let form = form(random, classes);
        view(random, spec.inputs, classes, form, scale)
    });
    let views = views.collect();
    let ambiguity = (classes >= 2 && random.below(2) == 0)
        .then(|| AmbiguitySpec { scores: random.floats(50, 4.0), rate: 0.05 });
    ChannelsSpec { base, views, ambiguity, ..ChannelsSpec::default() }
}

/// Rests for some views of a random model with channels, at least one.
///
/// # Panics
/// Without channels.
pub fn add_rests(random: &mut Random, spec: &mut Spec) {
    let channels = spec.channels.as_mut().expect("channels");
    let dims: Vec<usize> = [spec.head.dim].into_iter().chain(channels.views.iter().map(|v| v.dim)).collect();
    let sure = random.below(dims.len());
    for (view, dim) in dims.into_iter().enumerate() {
        if view == sure || random.below(2) == 0 {
            let scales = random.floats(dim - 1, 2.0).iter().map(|x| x.abs()).collect();
            channels.rests.push(RestSpec { view, scales, gain: random.pick(&[1e-6, 0.5, 3.0, 1e6]) });
        }
    }
}

/// Local precisions for some views of a random model with channels, at least one: about 1, or near an end of what a file takes.
///
/// # Panics
/// Without channels, and without a view of constant covariance.
pub fn add_locals(random: &mut Random, spec: &mut Spec) {
    let channels = spec.channels.as_mut().expect("channels");
    let base = (spec.head.covariance == CovarianceKind::Constant).then_some((0, spec.codes.priors.len()));
    let others = channels.views.iter().enumerate().map(|(i, view)| (i + 1, view.priors.len()));
    let views: Vec<_> = base.into_iter().chain(others).collect();
    let sure = random.below(views.len());
    for (at, (view, codes)) in views.into_iter().enumerate() {
        if at == sure || random.below(2) == 0 {
            let unit = random.pick(&[1e-12, 1.0, 1.0, 1.0, 1e12]);
            let precisions = (0..codes).map(|_| (unit * (3.0 * random.unit()).exp2()) as f32).collect();
            channels.locals.push(LocalSpec { view, precisions });
        }
    }
}

/// Random tails.
pub fn tails(random: &mut Random) -> Tails {
    let mut tail = || Tail { a: (4.0 * random.unit()) as f32, b: (1.1 + random.unit()) as f32 };
    Tails { u: tail(), energy: tail(), view: tail() }
}

/// A random view beside the base, with weights of about `scale`.
pub fn view(random: &mut Random, inputs: usize, classes: usize, form: Form, scale: f64) -> ViewSpec {
    let (dim, k) = (random.pick(&[1, 3, 8, 9]), random.pick(&[1, 2, 8, 11]));
    let codes = codes(random, CovarianceKind::Constant, dim, k, 1.0);
    ViewSpec {
        normalization: (random.below(2) == 0).then(|| Normalization {
            mean: random.floats(inputs, scale),
            std: random.floats(inputs, 1.0).iter().map(|x| 1.1 + x).collect(),
        }),
        l2: random.below(2) == 0,
        head_weight: random.floats(dim * inputs, scale * (3.0 / inputs as f64).sqrt()),
        head_bias: random.floats(dim, scale),
        dim,
        alpha: random.pick(&[0.0, 1e-10, 0.5, 1.0, 5.0, 1e10]),
        means: codes.means.iter().map(|&m| m as f32).collect(),
        priors: codes.priors,
        decoder: (classes > 0).then(|| ViewDecoder {
            outputs: classes,
            weight: random.floats(classes * dim, scale),
            bias: (random.below(2) == 0).then(|| random.floats(classes, scale)),
        }),
        form,
        tails: tails(random),
    }
}

/// Four real artifacts: a whole network with every optional part, a spectral head, a Cholesky head, and three views of an
/// input in two channels.
pub fn real() -> [(&'static str, Spec); 4] {
    let mut random = Random(1);
    let mut mlp = bare(&mut random, CovarianceKind::Diagonal, 3, 5, 1.0);
    mlp.inputs = 4;
    mlp.normalization = Some(Normalization { mean: random.floats(4, 2.0), std: vec![0.5, 2.0, 1.0, 30.0] });
    mlp.layers = vec![
        dense(&mut random, 4, 6, Activation::Relu, 1.0),
        dense(&mut random, 6, 6, Activation::Gelu, 1.0),
        dense(&mut random, 6, 6, Activation::Silu, 1.0),
    ];
    mlp.layers[2].residual = Some(Residual { source: 1, before_activation: true });
    mlp.head.weight = random.floats(6 * 6, 1.0);
    mlp.head.bias = Some(random.floats(6, 1.0));
    mlp.head.activation = Activation::Relu;
    mlp.decoder = Some(DecoderSpec {
        weight: random.floats(2 * 3, 1.0),
        bias: Some(vec![0.25, -0.5]),
        outputs: 2,
        task: Task::Classification,
    });
    mlp.calibration = Some(CalibrationSpec {
        scores: random.floats(30, 4.0).iter().map(|s| s.abs()).collect(),
        rates: Rates::for_held_out(30),
    });
    let names = r#"["speed, \"m/s\"", "load", "[x]", "é"]"#;
    mlp.info = vec![("licence".into(), "CC0".into()), ("input_names".into(), names.into())];

    let mut spectral = bare(&mut random, CovarianceKind::Spectral, 4, 3, 2.0);
    spectral.inputs = 8;
    spectral.head.weight = random.floats(14 * 8, 1.0);
    spectral.decoder =
        Some(DecoderSpec { weight: random.floats(4, 1.0), bias: None, outputs: 1, task: Task::Regression });

    let mut cholesky = bare(&mut random, CovarianceKind::Cholesky, 3, 4, 0.5);
    cholesky.inputs = 5;
    cholesky.head.weight = random.floats(9 * 5, 1.0);
    cholesky.head.bias = Some(random.floats(9, 3.0));
    cholesky.calibration =
        Some(CalibrationSpec { scores: vec![0.5, 1.5, 1.5, 7.0], rates: Rates::for_held_out(4) });
    [("mlp", mlp), ("spectral", spectral), ("cholesky", cholesky), ("views", views())]
}

/// Three views of five inputs: length 1 and energy, normalised and joined, plain and distance; classes from the input.
pub fn views() -> Spec {
    let mut random = Random(3);
    let mut spec = bare(&mut random, CovarianceKind::Constant, 3, 7, 1.0);
    spec.inputs = 5;
    spec.head.weight = random.floats(3 * 5, 2.0);
    spec.head.bias = Some(random.floats(3, 1.0));
    spec.decoder = Some(DecoderSpec {
        weight: random.floats(3 * 5, 1.0),
        bias: Some(random.floats(3, 1.0)),
        outputs: 3,
        task: Task::Classification,
    });
    let base = BaseSpec {
        l2: true,
        form: Form::Energy,
        decoder_reads: DecoderReads::Input,
        tails: tails(&mut random),
    };
    let mut normalized = view(&mut random, 5, 4, Form::Joined, 1.0);
    normalized.normalization =
        Some(Normalization { mean: random.floats(5, 1.0), std: vec![0.5, 2.0, 1.0, 3.0, 1.5] });
    normalized.decoder.as_mut().expect("a decoder").bias = Some(random.floats(4, 1.0));
    normalized.alpha = 0.5;
    let mut plain = view(&mut random, 5, 0, Form::Distance, 1.0);
    plain.alpha = 1.0;
    let ambiguity = AmbiguitySpec { scores: random.floats(60, 4.0), rate: 0.1 };
    spec.channels = Some(ChannelsSpec {
        base,
        views: vec![normalized, plain],
        ambiguity: Some(ambiguity),
        ..ChannelsSpec::default()
    });
    spec.calibration = Some(CalibrationSpec {
        scores: random.floats(120, 4.0).iter().map(|s| s.abs()).collect(),
        rates: Rates::DEFAULT,
    });
    spec
}

/// The models of the rows of channels in the table of costs: one view and three views of 64 inputs, 10 classes.
pub fn cost() -> [(&'static str, Spec); 3] {
    let mut random = Random(64);
    let (inputs, dim, k, classes) = (64, 16, 40, 10);
    let mut spec = bare(&mut random, CovarianceKind::Constant, dim, k, 1.0);
    spec.inputs = inputs;
    spec.head.weight = random.floats(dim * inputs, 0.4);
    spec.head.bias = Some(random.floats(dim, 0.1));
    spec.decoder = Some(DecoderSpec {
        weight: random.floats(classes * dim, 1.0),
        bias: Some(random.floats(classes, 1.0)),
        outputs: classes,
        task: Task::Classification,
    });
    let base = BaseSpec { l2: true, form: Form::Joined, ..BaseSpec::default() };
    spec.channels = Some(ChannelsSpec { base, ..ChannelsSpec::default() });
    let mut three = spec.clone();
    let other = ViewSpec {
        normalization: None,
        l2: true,
        head_weight: spec.head.weight.clone(),
        head_bias: random.floats(dim, 0.1),
        dim,
        alpha: 1.0,
        means: spec.codes.means.iter().map(|&m| m as f32).collect(),
        priors: spec.codes.priors.clone(),
        decoder: spec.decoder.as_ref().map(|d| ViewDecoder {
            outputs: classes,
            weight: d.weight.clone(),
            bias: d.bias.clone(),
        }),
        form: Form::Joined,
        tails: Tails::UNIT,
    };
    three.channels.as_mut().expect("channels").views = vec![other.clone(), other];
    let mut norm_spec = bare(&mut random, CovarianceKind::Diagonal, 4, 4, 1.0);
    norm_spec.inputs = inputs;
    norm_spec.layers = vec![
        norm(&mut random, inputs, Activation::Identity),
        dense(&mut random, inputs, inputs, Activation::Gelu, 1.0),
    ];
    norm_spec.layers[1].residual = Some(Residual { source: 0, before_activation: false });
    norm_spec.head.weight = random.floats(8 * inputs, 0.4);
    [("one-view", spec), ("three-views", three), ("norm", norm_spec)]
}

/// The models of `dab-same-bits`: one of each kind, every activation among them, small enough that a processor
/// without an FPU runs them 100 000 times in a minute.
pub fn same_bits() -> [(&'static str, Spec); 5] {
    let [(_, diagonal), _, (_, mut cholesky), (_, views)] = real();
    let mut random = Random(2);
    cholesky.layers = vec![dense(&mut random, 5, 5, Activation::Elu, 1.0)];
    let mut spectral = bare(&mut random, CovarianceKind::Spectral, 3, 4, 2.0);
    spectral.inputs = 4;
    spectral.layers = vec![dense(&mut random, 4, 4, Activation::Tanh, 1.0)];
    spectral.head.weight = random.floats(9 * 4, 4.0);
    spectral.decoder =
        Some(DecoderSpec { weight: random.floats(3, 1.0), bias: None, outputs: 1, task: Task::Regression });
    [
        ("diagonal", diagonal),
        ("spectral", spectral),
        ("cholesky", cholesky),
        ("views", views),
        ("bytes", bytes()),
    ]
}

/// A model of format 1.2: weights of one byte, a norm before the first layer and one behind it, a residual around both, and
/// further views.
pub fn bytes() -> Spec {
    let mut random = Random(12);
    let [_, _, _, (_, mut spec)] = real();
    spec.layers = vec![
        norm(&mut random, 5, Activation::Identity),
        dense(&mut random, 5, 5, Activation::Gelu, 1.0),
        norm(&mut random, 5, Activation::Relu),
    ];
    spec.layers[2].residual = Some(Residual { source: 0, before_activation: true });
    spec.layers[2].bias = None;
    spec.weights = WeightKind::Int8;
    spec
}

/// Monitors for the file of a model: one that is an `if`, and one with every channel.
///
/// # Panics
/// Without blocks.
#[must_use]
pub fn monitors() -> [(&'static str, Config); 2] {
    let blocks: Vec<f32> = (0..500).map(|i| 1.0 + 0.002 * i as f32).collect();
    let whole = Config {
        enter: 5.25,
        exit: 3.5,
        enter_votes: 12,
        exit_votes: 8,
        window: 16,
        reject_votes: 3,
        min_dwell: 1 << 31,
        timeout: 10,
        drift: Drift { restart: false, ..Drift::from_blocks(1000, 7.25, &blocks).expect("blocks") },
    };
    [("monitor-plain", Config::plain(4.0)), ("monitor-whole", whole)]
}

/// A LayerNorm with random weights.
pub fn norm(random: &mut Random, width: usize, activation: Activation) -> Dense {
    Dense {
        norm: Some(1e-5),
        weight: random.floats(width, 1.5),
        bias: Some(random.floats(width, 0.5)),
        outputs: width,
        activation,
        residual: None,
    }
}

/// A Gaussian from raw spectral outputs, with work memory of its own.
///
/// # Panics
/// When `raw` has the wrong length.
#[must_use]
pub fn spectral<const D: usize>(raw: &[f32]) -> Gaussian<D, Full> {
    // The kernel ignores what it finds there.
    let mut work = vec![f32::NAN; spectral_work_len(D)];
    Gaussian::from_spectral_raw(raw, &mut work).expect("raw outputs")
}
