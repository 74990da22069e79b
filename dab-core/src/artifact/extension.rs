//! Reads and checks what a file with channels has more: the second half of [`reader`](super::reader).

use heapless::Vec;

use super::channels::{AmbiguityMeta, BaseMeta, ChannelsMeta, TAIL_VALUES, ViewDecoderMeta, ViewMeta};
use super::checks::{Allowed, check_calibration, limit};
use super::error::{ArtifactError, Part};
use super::reader::{Fields, Parameters};
use super::schema::{DecoderReads, MAX_CALIBRATION, MAX_CODES, MAX_DIM_DIAGONAL, MAX_WIDTH, Meta, Task};
use super::some_views::SomeViews;
use crate::calibration::{Calibration, Rates};
use crate::channels::Tails;
use crate::codebook::{CodebookView, PrecisionLayout};
use crate::linalg::dot::take;
use crate::linalg::int8::Weights;
use crate::model::Decoder;

/// The extension of a checked model.
#[derive(Clone, Debug)]
pub(crate) struct Channels<'a> {
    pub(crate) meta: ChannelsMeta,
    /// Six values of each view, the base first.
    tails: &'a [f32],
    /// The parameters of the other views, one after another.
    views: &'a [f32],
    /// Weights of their heads, where they are bytes.
    pub(crate) weights: &'a [i8],
    /// The table of A and the rate of ambiguous.
    pub(crate) ambiguity: Option<(Calibration<'a>, f32)>,
    /// The last axes of views that leave axes out.
    pub(crate) rests: SomeViews<'a>,
    /// What distances from the codes of some views are multiplied by.
    pub(crate) locals: SomeViews<'a>,
}

/// One view beside the base.
pub(crate) struct View<'a> {
    pub(crate) meta: ViewMeta,
    pub(crate) normalize_mean: &'a [f32],
    pub(crate) normalize_inverse_std: &'a [f32],
    pub(crate) head_weight: Weights<'a>,
    pub(crate) head_bias: &'a [f32],
    pub(crate) codebook: CodebookView<'a>,
    pub(crate) decoder: Option<Decoder<'a>>,
    pub(crate) tails: Tails,
    /// Scales and gain of its last axis, if that is a rest; else empty.
    pub(crate) rest: &'a [f32],
}

impl<'a> Channels<'a> {
    /// The tails of the base view.
    pub(crate) fn base_tails(&self) -> Tails {
        Tails::from_values(self.tails)
    }

    /// Scales and gain of the base's last axis, if that is a rest of `dim` values; else empty.
    pub(crate) fn base_rest(&self, dim: u32) -> &'a [f32] {
        let mut rests = self.rests;
        rests.next(dim)
    }

    /// The local precisions of the base's `codes` codes, if it has any; else empty.
    pub(crate) fn base_local(&self, codes: u32) -> &'a [f32] {
        let mut locals = self.locals;
        locals.next(codes)
    }

    /// The views beside the base, in their order; `base` is the model's meta section.
    #[inline(always)]
    pub(crate) fn views(&self, base: &Meta) -> impl Iterator<Item = View<'a>> + use<'a, '_> {
        let (inputs, bytes) = (base.inputs, base.has_bytes());
        let (mut rest, mut tails, mut weights) = (self.views, self.tails, self.weights);
        let (mut rests, mut locals) = (self.rests, self.locals);
        rests.next(base.dim);
        locals.next(base.codes);
        self.meta.views.iter().map(move |meta| {
            let (own, local) = (rests.next(meta.dim), locals.next(meta.codes));
            (_, tails) = take(tails, TAIL_VALUES);
            let values;
            (values, weights) = take(weights, if bytes { (meta.dim * inputs) as usize } else { 0 });
            view(meta, inputs, bytes.then_some(values), &mut rest, (Tails::from_values(tails), own, local))
        })
    }
}

/// The next view of `rest`.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn view<'a>(
    meta: &ViewMeta,
    inputs: u32,
    bytes: Option<&'a [i8]>,
    rest: &mut &'a [f32],
    (tails, own, local): (Tails, &'a [f32], &'a [f32]),
) -> View<'a> {
    // The reader found that the counts fit the file, so that none of them overflowed.
    let counts = meta.param_counts(inputs, bytes.is_some()).unwrap_or_default();
    let mut next = |n| {
        let (taken, after) = take(rest, n);
        *rest = after;
        taken
    };
    View {
        meta: *meta,
        normalize_mean: next(counts.normalize),
        normalize_inverse_std: next(counts.normalize),
        head_weight: Weights::new(next(counts.head_weight), bytes),
        head_bias: next(counts.head_bias),
        codebook: CodebookView {
            dim: meta.dim as usize,
            alpha: f32::from_le_bytes(meta.alpha),
            means: next(counts.code_means),
            precisions: local,
            layout: if local.is_empty() { PrecisionLayout::Identity } else { PrecisionLayout::Local },
            log_dets: &[],
            priors: next(counts.codes),
        },
        decoder: meta.decoder.map(|d| Decoder {
            task: Task::Classification,
            inputs: meta.dim as usize,
            outputs: d.outputs as usize,
            weight: next(counts.decoder_weight),
            bias: next(counts.decoder_bias),
        }),
        tails,
        rest: own,
    }
}

impl Fields<'_> {
    /// The fields of the extension.
    #[inline(never)]
    pub(super) fn channels(&mut self) -> Option<ChannelsMeta> {
        let base = BaseMeta { l2: self.next()?, form: self.next()?, decoder_reads: self.next()? };
        let mut views = Vec::new();
        for _ in 0..self.next::<u32>()? {
            let view = ViewMeta {
                normalized: self.next()?,
                l2: self.next()?,
                dim: self.next()?,
                codes: self.next()?,
                alpha: self.bytes()?,
                form: self.next()?,
                decoder: self.option(|f| Some(ViewDecoderMeta { outputs: f.next()?, bias: f.next()? }))?,
            };
            views.push(view).ok()?;
        }
        let ambiguity = self
            .option(|f| Some(AmbiguityMeta { points: f.next()?, held_out: f.next()?, rate: f.bytes()? }))?;
        Some(ChannelsMeta { base, views, ambiguity })
    }
}

/// Sizes within the limits of the format.
pub(super) fn check_limits(channels: &ChannelsMeta) -> Result<(), ArtifactError> {
    for view in &channels.views {
        limit("views.dim", view.dim, MAX_DIM_DIAGONAL)?;
        limit("views.codes", view.codes, MAX_CODES)?;
        if let Some(decoder) = view.decoder {
            limit("views.decoder.outputs", decoder.outputs, MAX_WIDTH)?;
        }
    }
    if let Some(table) = channels.ambiguity {
        limit("ambiguity.points", table.points.into(), MAX_CALIBRATION.into())?;
        limit("ambiguity.held_out", table.held_out, u32::MAX)?;
    }
    Ok(())
}

/// An energy needs a decoder of classes, an ambiguity one of at least two, and only a decoder can read the input.
pub(super) fn check_decoders(channels: &ChannelsMeta, meta: &Meta) -> Result<(), ArtifactError> {
    let classes = meta.decoder.filter(|d| d.task == Task::Classification).map_or(0, |d| d.outputs);
    let missing = |field| Err(ArtifactError::Channels { field });
    if channels.base.form.uses_energy() && classes == 0 {
        return missing("base.form");
    }
    if channels.base.decoder_reads == DecoderReads::Input && meta.decoder.is_none() {
        return missing("base.decoder_reads");
    }
    if channels.views.iter().any(|v| v.form.uses_energy() && v.decoder.is_none()) {
        return missing("views.form");
    }
    if channels.ambiguity.is_some() && classes < 2 {
        return missing("ambiguity");
    }
    Ok(())
}

/// The values of the extension, checked one by one, in the order of the file.
pub(super) fn values<'a>(
    meta: ChannelsMeta,
    inputs: u32,
    bytes: bool,
    params: &mut Parameters<'a>,
) -> Result<Channels<'a>, ArtifactError> {
    // Every second one is a scale.
    let rules = [&Allowed::DOMAIN, &Allowed::POSITIVE];
    let tails = params.next_pairs(TAIL_VALUES * meta.view_count(), Part::Tails, rules)?;
    let views = params.rest();
    let mut used = 0;
    for view in &meta.views {
        let counts = view.param_counts(inputs, bytes).unwrap_or_default();
        let head = if bytes { &Allowed::ALPHA } else { &Allowed::DOMAIN };
        for (n, part, allowed) in [
            (counts.normalize, Part::ViewNormalizeMean, &Allowed::DOMAIN),
            (counts.normalize, Part::ViewNormalizeInverseStd, &Allowed::POSITIVE),
            (counts.head_weight, Part::ViewHeadWeight, head),
            (counts.head_bias, Part::ViewHeadBias, &Allowed::DOMAIN),
            (counts.code_means, Part::ViewCodeMeans, &Allowed::DOMAIN),
            (counts.codes, Part::ViewCodePriors, &Allowed::PRIOR),
            (counts.decoder_weight, Part::ViewDecoderWeight, &Allowed::DOMAIN),
            (counts.decoder_bias, Part::ViewDecoderBias, &Allowed::DOMAIN),
        ] {
            used += params.next(n, part, allowed)?.len();
        }
    }
    let (views, _) = take(views, used);
    let points = meta.ambiguity.map_or(0, |a| usize::from(a.points));
    let scores = params.next(points, Part::AmbiguityScores, &Allowed::FINITE)?;
    let p_values = params.next(points, Part::AmbiguityPValues, &Allowed::PROBABILITY)?;
    let ambiguity = meta
        .ambiguity
        .map(|a| (Calibration { scores, p_values, held_out: a.held_out }, f32::from_le_bytes(a.rate)));
    Ok(Channels {
        meta,
        tails,
        views,
        weights: &[],
        ambiguity,
        rests: SomeViews::default(),
        locals: SomeViews::default(),
    })
}

/// The calibration table of the ambiguity, and its rate.
pub(super) fn check_ambiguity(channels: &Channels<'_>) -> Result<(), ArtifactError> {
    let Some((table, rate)) = &channels.ambiguity else { return Ok(()) };
    check_calibration(table)?;
    Rates::new(*rate, *rate).map(|_| ()).map_err(|_| ArtifactError::Rates)
}
