//! Channels and further views as bytes: what [`writer`](super::writer) appends for format 1.1 (feature `alloc`).

use alloc::format;
use alloc::vec::Vec;

use super::derive::{calibration_table, check_reach, inverse_std, priors};
use super::schema::{AmbiguityMeta, BaseMeta, ChannelsMeta, MAX_EXTRA_VIEWS, ViewDecoderMeta, ViewMeta};
use super::some_views::SomeViews;
use super::spec::{AmbiguitySpec, ChannelsSpec, SpecError, ViewSpec, WeightKind};
use super::writer::{Params, size};
use crate::calibration::Rates;

/// Held-out ambiguities, as errors name them.
const AMBIGUITY: &str = "ambiguity.scores";

impl ChannelsSpec {
    /// The meta section's part.
    pub(super) fn meta(&self) -> Result<ChannelsMeta, SpecError> {
        let found = self.views.len();
        if found > MAX_EXTRA_VIEWS {
            return Err(SpecError::TooMany { part: "views".into(), max: MAX_EXTRA_VIEWS, found });
        }
        let base = &self.base;
        Ok(ChannelsMeta {
            base: BaseMeta { l2: base.l2, form: base.form, decoder_reads: base.decoder_reads },
            views: self.views.iter().map(ViewSpec::meta).collect(),
            ambiguity: self.ambiguity.as_ref().map(AmbiguitySpec::meta).transpose()?,
        })
    }

    /// The parameters, in the file's order.
    pub(super) fn params(&self, inputs: usize, kind: WeightKind) -> Result<Params, SpecError> {
        let mut params = Params::new(kind);
        let base = [(0, &self.base.tails)];
        let others = self.views.iter().enumerate().map(|(i, view)| (i + 1, &view.tails));
        for (i, tails) in base.into_iter().chain(others) {
            let (part, values) = (format!("tails.{i}"), tails.values());
            params.push(&part, &values, values.len())?;
            let scale = |at: &usize| {
                params.floats.len().checked_sub(values.len()).and_then(|n| params.floats.get(n + at))
            };
            if let Some(index) = (1..values.len()).step_by(2).find(|at| scale(at).is_none_or(|&b| b <= 0.0)) {
                let value = values.get(index).copied().unwrap_or(0.0).into();
                return Err(SpecError::OutOfRange { part, index, value });
            }
        }
        for (i, view) in self.views.iter().enumerate() {
            view.push(&format!("views.{i}"), inputs, &mut params)?;
        }
        if let Some(ambiguity) = &self.ambiguity {
            let table = ambiguity.table()?;
            params.floats.extend(table.iter().map(|&(score, _)| score));
            params.floats.extend(table.iter().map(|&(_, p)| p));
        }
        Ok(params)
    }

    /// The blocks of rests and of local precisions; the base has `dim` axes and `codes` codes.
    pub(super) fn some_views(&self, dim: usize, codes: usize) -> Result<Vec<u8>, SpecError> {
        let (mut rests, mut locals) = (Params::new(WeightKind::Float32), Params::new(WeightKind::Float32));
        let (mut with_rest, mut is_local) = (0, 0);
        for rest in &self.rests {
            let part = format!("rest.{}", rest.view);
            let dim = self.mark(&mut with_rest, rest.view, &part, dim, |view| view.dim)?;
            rests.push(&part, &rest.scales, dim.saturating_sub(1))?;
            rests.push(&format!("{part}.gain"), &[rest.gain], 1)?;
        }
        for local in &self.locals {
            let part = format!("local.{}", local.view);
            let codes = self.mark(&mut is_local, local.view, &part, codes, |view| view.priors.len())?;
            locals.push(&part, &local.precisions, codes)?;
        }
        let mut bytes = SomeViews { views: with_rest, values: &rests.floats }.to_bytes();
        bytes.extend(SomeViews { views: is_local, values: &locals.floats }.to_bytes());
        Ok(bytes)
    }

    /// Sets the bit of a view, which must exist and come behind those that are set; gives its size, `base` or that of another view.
    fn mark(
        &self,
        views: &mut u32,
        view: usize,
        part: &str,
        base: usize,
        size_of: impl Fn(&ViewSpec) -> usize,
    ) -> Result<usize, SpecError> {
        let found = view.checked_sub(1).map_or(Some(base), |beside| self.views.get(beside).map(size_of));
        let bit = 1u32.checked_shl(size(view)).filter(|bit| bit > views);
        let (Some(found), Some(bit)) = (found, bit) else {
            return Err(SpecError::OutOfRange { part: part.into(), index: 0, value: view as f64 });
        };
        *views |= bit;
        Ok(found)
    }
}

impl ViewSpec {
    fn meta(&self) -> ViewMeta {
        ViewMeta {
            normalized: self.normalization.is_some(),
            l2: self.l2,
            dim: size(self.dim),
            codes: size(self.priors.len()),
            alpha: (self.alpha + 0.0).to_le_bytes(),
            form: self.form,
            decoder: self
                .decoder
                .as_ref()
                .map(|d| ViewDecoderMeta { outputs: size(d.outputs), bias: d.bias.is_some() }),
        }
    }

    fn push(&self, name: &str, inputs: usize, params: &mut Params) -> Result<(), SpecError> {
        let part = |part: &str| format!("{name}.{part}");
        if let Some(n) = &self.normalization {
            params.push(&part("normalize.mean"), &n.mean, inputs)?;
            let std = part("normalize.std");
            params.push(&std, &inverse_std(&std, &n.std)?, inputs)?;
        }
        params.push_weights(&part("head.weight"), &self.head_weight, self.dim, inputs)?;
        params.push(&part("head.bias"), &self.head_bias, self.dim)?;
        let k = self.priors.len();
        params.push(&part("codes.mean"), &self.means, k * self.dim)?;
        let prior = part("codes.prior");
        params.push(&prior, &priors(&prior, &self.priors)?, k)?;
        if let Some(d) = &self.decoder {
            params.push(&part("decoder.weight"), &d.weight, d.outputs * self.dim)?;
            params.push_optional(&part("decoder.bias"), d.bias.as_ref(), d.outputs)?;
        }
        Ok(())
    }
}

impl AmbiguitySpec {
    fn table(&self) -> Result<Vec<(f32, f32)>, SpecError> {
        calibration_table(AMBIGUITY, &self.scores, f32::MIN)
    }

    fn meta(&self) -> Result<AmbiguityMeta, SpecError> {
        let table = self.table()?;
        Rates::new(self.rate, self.rate).map_err(SpecError::Rates)?;
        check_reach(&table, self.scores.len(), self.rate)?;
        Ok(AmbiguityMeta {
            points: table.len() as u16,
            held_out: size(self.scores.len()),
            rate: self.rate.to_le_bytes(),
        })
    }
}
