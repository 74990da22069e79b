//! What contradicts what in an experiment. What an artifact cannot hold is refused before the training that would be lost.

use anyhow::{bail, ensure};
use dab_core::artifact::schema::{MAX_CODES, MAX_DIM_DIAGONAL, MAX_DIM_FULL, MAX_LAYERS, MAX_WIDTH};

use super::{ConvPrecision, Experiment};
use crate::{data::DataConfig, error::Error, model::encoder::Covariance};

impl Experiment {
    /// Whether the numbers make sense together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Error> {
        self.check_numbers().map_err(Error::of(Error::Experiment))
    }

    fn check_numbers(&self) -> anyhow::Result<()> {
        if let Some(retrofit) = &self.retrofit {
            let computed =
                Self::without_gradients(&self.name, self.seed, self.data.clone(), retrofit.clone());
            ensure!(
                *self == Self { weights: self.weights, ..computed },
                "[retrofit] learns nothing by gradients: backbone, bottleneck, objective, codebook, optimiser and training \
                 belong to an experiment without it (`dab fit --learn`)"
            );
            return retrofit.check();
        }
        self.beside.check()?;
        ensure!(
            self.beside.is_empty() || self.backbone.images.is_none(),
            "beside.views are of rows; an image network has images"
        );
        let (bottleneck, objective, codebook) = (&self.bottleneck, &self.objective, &self.codebook);
        let dims = match bottleneck.covariance {
            Covariance::Diagonal => MAX_DIM_DIAGONAL,
            Covariance::Spectral | Covariance::Cholesky => MAX_DIM_FULL,
        };
        // What an artifact can hold is known before the training that would be lost.
        for (name, value, most) in
            [("dim", bottleneck.dim, dims as usize), ("codes", bottleneck.codes, MAX_CODES as usize)]
        {
            ensure!((1..=most).contains(&value), "bottleneck.{name} is {value}, allowed are 1 to {most}");
        }
        ensure!(self.backbone.layers.len() <= MAX_LAYERS, "at most {MAX_LAYERS} backbone layers");
        ensure!(objective.alpha > 0.0 && objective.alpha.is_finite(), "objective.alpha must be positive");
        ensure!(objective.beta >= 0.0 && objective.beta.is_finite(), "objective.beta must not be negative");
        ensure!((0.0..1.0).contains(&codebook.momentum), "codebook.momentum lies in [0, 1)");
        ensure!((0.0..=1.0).contains(&codebook.prior_floor), "codebook.prior_floor lies in [0, 1]");
        ensure!((0.0..=1.0).contains(&codebook.reseed_below), "codebook.reseed_below lies in [0, 1]");
        ensure!((0.0..=1.0).contains(&codebook.pooled), "codebook.pooled lies in [0, 1]");
        ensure!(codebook.ridge >= 0.0, "codebook.ridge must not be negative");
        ensure!(codebook.pseudo_count >= 0.0, "codebook.pseudo_count must not be negative");
        ensure!(self.optimiser.learning_rate > 0.0, "optimiser.learning_rate must be positive");
        ensure!(
            self.training.accumulate > 0 && self.training.replicas > 0,
            "training.accumulate and training.replicas start at 1"
        );
        let images_learn = self.backbone.images.as_ref().is_some_and(|images| !images.frozen);
        ensure!(
            images_learn || self.training.precision == ConvPrecision::F32,
            "training.precision is that of the convolutions of an image network that learns: leave it out"
        );
        if self.training.synchronised_norms {
            ensure!(images_learn, "training.synchronised_norms is for an image network that learns");
            ensure!(
                self.training.accumulate == 1,
                "training.synchronised_norms needs all of a mini-batch at once: training.accumulate must be 1"
            );
        }
        ensure!(self.training.epochs > codebook.warmup, "training.epochs must exceed codebook.warmup");
        for (index, layer) in self.backbone.layers.iter().enumerate() {
            ensure!(
                (1..=MAX_WIDTH as usize).contains(&layer.units),
                "backbone layer {} has {} units, allowed are 1 to {MAX_WIDTH}",
                index + 1,
                layer.units
            );
            let Some(earlier) = layer.residual else { continue };
            ensure!(
                earlier <= index && (earlier == 0 || self.backbone.layers[earlier - 1].units == layer.units),
                "backbone layer {} cannot add the output of layer {earlier}",
                index + 1
            );
        }
        let on_images = matches!(self.data, DataConfig::Images(_));
        ensure!(
            on_images == self.backbone.images.is_some(),
            "data.kind = \"images\" and [backbone.images] belong together"
        );
        if let DataConfig::Images(data) = &self.data {
            data.check()?;
        }
        if let Some(images) = &self.backbone.images {
            if let Some(fault) = images.network.fault() {
                bail!("backbone.images: {fault}");
            }
            ensure!(
                !images.frozen || images.weights.is_some(),
                "a frozen backbone needs backbone.images.weights"
            );
            ensure!(
                images.rate_share > 0.0,
                "backbone.images.rate_share must be positive; 0 is `frozen = true`"
            );
        }
        if let Some(stopping) = self.training.early_stopping {
            ensure!(stopping.share > 0.0 && stopping.share < 1.0, "early_stopping.share lies in (0, 1)");
            ensure!(stopping.patience > 0, "early_stopping.patience starts at 1");
        }
        Ok(())
    }
}
