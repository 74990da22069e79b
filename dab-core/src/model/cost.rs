//! What one call costs, from the shape alone.

use super::Model;
use crate::artifact::schema::{ChannelsMeta, CovarianceKind, ViewMeta};
use crate::artifact::some_views::SomeViews;
use crate::linalg::jacobi;

impl Model<'_> {
    /// Multiply-adds per assessment, decoder included: what the shape costs, whatever the input.
    #[must_use]
    pub fn multiply_adds(&self) -> u64 {
        let dim = self.codebook.dim as u64;
        let mut width = u64::from(self.meta.inputs);
        let mut total = 0;
        for (i, layer) in self.meta.layers.iter().enumerate() {
            total += u64::from(layer.outputs) * if self.meta.is_norm(i) { 4 } else { width };
            width = layer.outputs.into();
        }
        let triangle = dim * (dim + 1) / 2;
        let (encoder, code) = match self.meta.head.covariance {
            CovarianceKind::Diagonal => (dim, 2 * dim),
            CovarianceKind::Constant => (0, dim),
            CovarianceKind::Cholesky => (0, dim * (dim + 1) * (dim + 2) / 6 + triangle + dim),
            CovarianceKind::Spectral => {
                let sweeps = jacobi::sweeps(self.codebook.dim) as u64;
                (
                    sweeps * (dim * dim.saturating_sub(1) / 2) * 12 * dim + dim * dim,
                    dim * triangle + triangle + dim,
                )
            }
        };
        total += width * self.meta.head.covariance.raw_len(self.codebook.dim) as u64;
        total += encoder + self.codebook.len() as u64 * code;
        total += self.decoder.map_or(0, |d| d.inputs as u64 * d.outputs as u64);
        total += self.taught.map_or(0, |t| t.len() as u64 * 2 * dim);
        total += self.channels().map_or(0, |c| self.channel_multiply_adds(&c.meta));
        // The length of what enters a head, and of its part along the axes.
        let rests = self.channels().map_or(SomeViews::default(), |c| c.rests);
        let locals = self.channels().map_or(0, |c| c.locals.values.len() as u64);
        let (base, views) = (rests.views & 1, (rests.views >> 1).count_ones());
        total
            + u64::from(base) * width
            + u64::from(views) * u64::from(self.meta.inputs)
            + 2 * rests.values.len() as u64
            + locals
    }

    /// What norms and further views cost.
    fn channel_multiply_adds(&self, channels: &ChannelsMeta) -> u64 {
        let inputs = u64::from(self.meta.inputs);
        let norm = |l2: bool| if l2 { 2 * inputs } else { 0 };
        let view = |v: &ViewMeta| {
            let outputs = v.decoder.map_or(0, |d| d.outputs);
            norm(v.l2) + u64::from(v.dim) * (inputs + u64::from(v.codes) + u64::from(outputs))
        };
        norm(channels.base.l2) + channels.views.iter().map(view).sum::<u64>()
    }
}
