//! Rows in memory → [`Run`]: what `dab fit` does, without files.

pub(crate) mod network;

use std::time::{Duration, Instant};

use anyhow::ensure;
use burn::tensor::Device;

use crate::{
    choose::{Wish, beside::beside, least_bytes, numbers},
    config::{
        Experiment,
        defaults::{self, Wishes},
        retrofit::Retrofit,
    },
    data::{
        DataConfig, Loaded, Split, Table, Targets,
        files::Labels,
        sources::features::{Answers, FileRows, Shares, cut_rows},
    },
    error::Error,
    experiment::{self, Found, Options},
    run::Run,
    support::text::counted,
};

/// Why a model learns where nothing was tried.
const ASKED: &str = "hidden layers and codes learn by gradients because that was asked for (--learn, --codes, --dim or --epochs)";
/// Why none learns where it was asked for.
const COMPUTED: &str = "learning finds no more strangers and does not predict better, so the model is computed; a setting of learning \
                        (--epochs, --codes, --dim) makes it learn all the same";
/// How errors call the labels.
const LABELS: &str = "the labels";

/// A classifier of `features`, one row per example, and `labels`, one class per row; its views are chosen on training rows.
/// [`Fit`] has more to choose.
///
/// A fifth of each class is tested, a tenth of the rest calibrates. The same rows give the same bytes.
///
/// # Errors
/// When the rows cannot be used, or learning fails.
pub fn fit<R: AsRef<[f32]>>(features: &[R], labels: &[u32]) -> Result<Run, Error> {
    Fit::classes(features, labels)?.run()
}

/// What is asked of a fit.
pub(crate) struct Wanted {
    /// Whether to learn by gradients, if it pays.
    pub learn: bool,
    /// Whether a setting of learning was changed: then it learns, whatever pays.
    pub told: bool,
    /// Settings of learning: one of them asks for it.
    pub wishes: Wishes,
    /// Settings of a model that is computed.
    pub retrofit: Retrofit,
}

impl Wanted {
    /// The experiment that fits training rows, and why this. Whether a regression learns is found out on its training rows.
    ///
    /// # Errors
    /// When learning fails.
    pub(crate) fn experiment(
        self,
        name: &str,
        seed: u64,
        data: DataConfig,
        train: &Split,
        device: &Device,
        changed: &dyn Fn(Experiment) -> anyhow::Result<Experiment>,
    ) -> Result<(Experiment, Found), Error> {
        let Self { learn, told, mut wishes, retrofit } = self;
        let asked = learn || wishes.any();
        let told = told || wishes.any();
        // What is no time, or too long for the clock, limits nothing here; an experiment refuses the former.
        let time = retrofit.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let (mut learns, mut reasons, mut spent) = (asked, Vec::new(), Duration::ZERO);
        if asked {
            reasons.push(ASKED.to_owned());
        }
        if !learns && !retrofit.fast && matches!(train.targets, Targets::Regression(_)) {
            let begun = Instant::now();
            let predictor = numbers::predictor(train, seed, retrofit.flash, time, device)
                .map_err(Error::of(Error::Learning))?;
            spent = begun.elapsed();
            (wishes.epochs, learns, reasons) =
                (predictor.epochs, predictor.epochs.is_some(), predictor.reasons);
        }
        if !learns {
            let experiment = Experiment::without_gradients(name, seed, data, retrofit);
            return Ok((experiment, Found { reasons, spent }));
        }
        let experiment = defaults::experiment(name, seed, data.clone(), train, wishes);
        // Who judges is found out with the network that will be in the file.
        let mut experiment = changed(experiment).map_err(Error::of(Error::Experiment))?;
        if !retrofit.fast {
            let time = time.map(|time| time.saturating_sub(spent));
            // A network that was asked for may fill the flash: its views have half as much all the same.
            let beside_it = |flash: u64| flash / 2 + least_bytes(&experiment, train.inputs.cols);
            let flash = retrofit.flash.map(|flash| if asked { flash.max(beside_it(flash)) } else { flash });
            let wish = Wish { flash, time, own_head: false, seed };
            let found = beside(&experiment, train, &wish, device).map_err(Error::of(Error::Learning))?;
            reasons.extend(found.reasons);
            if !(found.learning_pays || told) {
                reasons[0] = COMPUTED.to_owned();
                let experiment = Experiment::without_gradients(name, seed, data, retrofit);
                return Ok((experiment, Found { reasons, spent }));
            }
            (experiment.beside, experiment.weights) = (found.beside, found.weights);
        }
        Ok((experiment, Found { reasons, spent }))
    }
}

/// A model to be made of rows in memory.
///
/// ```no_run
/// # fn main() -> Result<(), dab_train::Error> {
/// # let (features, strength, elsewhere) = (vec![[0.0_f32; 8]; 100], vec![0.0_f32; 100], vec![[9.0_f32; 8]; 10]);
/// use dab_train::Fit;
///
/// let run = Fit::regression(&features, &strength)?.ood("elsewhere", &elsewhere)?.seed(7).epochs(50).run()?;
/// # Ok(()) }
/// ```
pub struct Fit {
    rows: FileRows,
    ood: Vec<(String, Table)>,
    name: String,
    wishes: Wishes,
    retrofit: Retrofit,
    learn: bool,
    calibration: Option<Table>,
    options: Options,
}

impl Fit {
    /// A classifier: one class per row, any whole numbers.
    ///
    /// # Errors
    /// Rows of different lengths, and more or fewer labels than rows.
    pub fn classes<R: AsRef<[f32]>>(features: &[R], labels: &[u32]) -> Result<Self, Error> {
        Self::new(
            features,
            labels.len(),
            Answers::Labels(Labels::Numbers(labels.iter().map(|&l| l.into()).collect())),
        )
    }

    /// A regression: one number to predict per row.
    ///
    /// # Errors
    /// Rows of different lengths, and more or fewer targets than rows.
    pub fn regression<R: AsRef<[f32]>>(features: &[R], targets: &[f32]) -> Result<Self, Error> {
        let column = Table::new(targets.len(), 1, targets.to_vec())?;
        Self::new(features, targets.len(), Answers::Numbers(column, Vec::new()))
    }

    fn new<R: AsRef<[f32]>>(features: &[R], found: usize, answers: Answers) -> Result<Self, Error> {
        let read = || -> anyhow::Result<Table> {
            let inputs = Table::from_rows(features)?;
            ensure!(
                found == inputs.rows,
                "{} but {found} labels or targets: every row needs its own",
                counted(inputs.rows, "row")
            );
            inputs.check_finite("features")?;
            Ok(inputs)
        };
        let rows = FileRows { inputs: read().map_err(Error::of(Error::Data))?, names: Vec::new(), answers };
        Ok(Self {
            rows,
            ood: Vec::new(),
            name: "features".to_owned(),
            wishes: Wishes::default(),
            retrofit: Retrofit { flash: Some(defaults::FLASH), ..Retrofit::default() },
            learn: false,
            calibration: None,
            options: Options::new(0),
        })
    }

    /// Rows from elsewhere, to see how well they are found; may be given several times.
    ///
    /// # Errors
    /// Rows of different lengths.
    pub fn ood<R: AsRef<[f32]>>(mut self, name: &str, features: &[R]) -> Result<Self, Error> {
        self.ood.push((name.to_owned(), Table::from_rows(features)?));
        Ok(self)
    }

    /// Rows that your network has not seen: they calibrate in place of held-out ones.
    ///
    /// # Errors
    /// Rows of different lengths.
    pub fn calibration<R: AsRef<[f32]>>(mut self, features: &[R]) -> Result<Self, Error> {
        self.calibration = Some(Table::from_rows(features)?);
        Ok(self)
    }

    /// Bytes that the model may have; no limit for `None`, 128 KiB unless given.
    #[must_use]
    pub fn flash(mut self, bytes: Option<u64>) -> Self {
        self.retrofit.flash = bytes;
        self
    }

    /// Takes fixed views: nothing is tried.
    #[must_use]
    pub fn fast(mut self) -> Self {
        self.retrofit.fast = true;
        self
    }

    /// Learns hidden layers and codes by gradients; so do [`Fit::codes`], [`Fit::dim`] and [`Fit::epochs`]. A regression learns
    /// where that predicts clearly better than ridge regression.
    #[must_use]
    pub fn learn(mut self) -> Self {
        self.learn = true;
        self
    }

    /// How the model is called in its file.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Seed of the cut, the weights, the order and the noise; 0 unless given.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seeds = seed..seed + 1;
        self
    }

    /// Passes over the training rows.
    #[must_use]
    pub fn epochs(mut self, epochs: usize) -> Self {
        self.wishes.epochs = Some(epochs);
        self
    }

    /// Codes in the codebook.
    #[must_use]
    pub fn codes(mut self, codes: usize) -> Self {
        self.wishes.codes = Some(codes);
        self
    }

    /// Dimensions of the latent space.
    #[must_use]
    pub fn dim(mut self, dim: usize) -> Self {
        self.wishes.dim = Some(dim);
        self
    }

    /// Where tensors live; the CPU unless given.
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.options.device = device;
        self
    }

    /// Leaves the baselines out.
    #[must_use]
    pub fn without_baselines(mut self) -> Self {
        self.options.baselines = false;
        self
    }

    /// Cuts the rows, chooses and fits or learns, exports and measures.
    ///
    /// # Errors
    /// When nothing can be learnt from the rows, a choice is out of range, or learning fails.
    pub fn run(self) -> Result<Run, Error> {
        let seed = self.options.seeds.start;
        let (mut task, mut description) =
            cut_rows(&self.name, self.rows, None, (LABELS, None), Shares::default(), seed)
                .map_err(Error::of(Error::Data))?;
        task.ood = self.ood;
        task.check().map_err(Error::of(Error::Data))?;
        if let Some(rows) = self.calibration {
            description.calibrate(rows, &task).map_err(Error::of(Error::Data))?;
        }
        let wanted = Wanted { learn: self.learn, told: false, wishes: self.wishes, retrofit: self.retrofit };
        let (experiment, found) = wanted.experiment(
            &self.name,
            seed,
            DataConfig::Memory,
            &task.train,
            &self.options.device,
            &Ok,
        )?;
        experiment.check()?;
        let loaded = Loaded::Rows(Box::new(task), description);
        let options = Options { found, ..self.options };
        let mut runs = experiment::run(&experiment, Some(loaded), &options, &mut ())?;
        Ok(runs.swap_remove(0))
    }
}
