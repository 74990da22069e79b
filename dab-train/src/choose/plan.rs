//! How many axes and codes a view may have in its share of the flash.
//!
//! ```text
//! bytes of a view   4 · 2F (columns) + d · axis + 4 k (d + 1) + 4 classes (d + 1) + 4 d (rest)
//! axis              4 (F + 1), or F + 8 where weights are bytes and each axis has a scale
//! d                 axes that are kept, and one for what they leave out
//! d  as large as leaves room for `WANTED` codes;   k  what is left
//! ```

use serde::Serialize;

use crate::{
    config::retrofit::{Norm, ViewConfig},
    learn::retrofit::leaves_axes_out,
};

/// Codes that axes make room for, in all and a class.
const WANTED: (usize, usize) = (400, 50);
/// Bytes that a file has besides its views: header, meta, tails, and both calibration tables at their largest.
const FIXED: u64 = 64 + 256 + 4 * 24 + 2 * 2 * 256 * 4;
/// Known-answer vectors in a file.
const VECTORS: u64 = 4;
/// Bytes of a number.
const NUMBER: u64 = 4;
/// α of a view with so many axes or fewer is 1; with more it falls as their number grows.
const SHARP: f64 = 6.0;
/// Rows of a regression behind each code, at least: at a code that is a row, u and with it the band would vanish.
const ROWS_A_CODE: usize = 10;
/// Axes that a view has at least.
const LEAST_AXES: usize = 2;
/// Axes that a file allows.
const MOST_AXES: usize = dab_core::artifact::schema::MAX_DIM_DIAGONAL as usize;

/// What is known about the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Columns, F.
    pub inputs: usize,
    /// Outputs of a decoder: classes, or numbers to predict.
    pub outputs: usize,
    /// Training rows of each class; of a regression, the codes that it may have.
    pub counts: Vec<usize>,
    /// Bytes of names and other strings in the file.
    pub strings: u64,
    /// Whether weights are stored in one byte each.
    pub int8: bool,
}

/// Size of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// d.
    pub dim: usize,
    /// Codes a class, at most.
    pub each: usize,
    /// Codes in all.
    pub codes: usize,
    /// Whether each has a precision of its own.
    pub local: bool,
}

/// Whether a view has one code a class or fills its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Filling {
    /// One code a class.
    Single,
    /// As many as fit.
    Full,
    /// As many as fit, each with a precision of its own.
    Local,
}

impl Filling {
    /// Numbers of a code beside its mean: its prior, and its precision where it has one.
    const fn beside_mean(self) -> usize {
        match self {
            Self::Single | Self::Full => 1,
            Self::Local => 2,
        }
    }

    /// That of a view as it is written down.
    pub const fn of(view: &ViewConfig) -> Self {
        match (view.local, view.codes) {
            (true, _) => Self::Local,
            (false, 0..=1) => Self::Single,
            (false, _) => Self::Full,
        }
    }
}

impl Rows {
    /// Classes that have rows.
    pub fn classes(&self) -> usize {
        self.counts.iter().filter(|&&count| count > 0).count()
    }

    /// Bytes that views may share in a file of `flash` bytes.
    pub fn room(&self, flash: u64) -> u64 {
        flash.saturating_sub(self.overhead())
    }

    fn overhead(&self) -> u64 {
        FIXED + self.strings + VECTORS * NUMBER * (self.inputs as u64 + 1)
    }

    /// The largest view of `room` bytes; `None` when not even one code a class fits.
    pub fn size(&self, norm: Norm, room: Option<u64>, filling: Filling) -> Option<Size> {
        let (inputs, classes, rows) = (self.inputs, self.classes(), self.counts.iter().sum::<usize>());
        let most = self.most_axes();
        let Some(room) = room else {
            let each =
                if filling == Filling::Single { 1 } else { self.counts.iter().copied().max().unwrap_or(1) };
            return Some(self.sized(most, each, filling));
        };
        let wanted = match filling {
            Filling::Single => classes,
            Filling::Full | Filling::Local => WANTED.0.min(WANTED.1 * classes).min(rows).max(classes),
        };
        let numbers = |count: usize| NUMBER * count as u64;
        let beside_mean = filling.beside_mean();
        let axes = |out: bool| {
            let free =
                room.checked_sub(self.columns(norm, out) + numbers(self.outputs + beside_mean * wanted))?;
            Some((free / (self.axis() + numbers(self.outputs + wanted + usize::from(out)))) as usize)
        };
        // What axes leave out takes one more.
        let dim = if axes(false)? < inputs { most.min(axes(true)?.saturating_sub(1)) } else { most };
        if dim < LEAST_AXES.min(inputs) {
            return None;
        }
        let left = room.checked_sub(self.head(norm, dim) + numbers(self.outputs * (self.latent(dim) + 1)))?;
        let codes = (left / numbers(self.latent(dim) + beside_mean)) as usize;
        if codes < classes {
            return None;
        }
        let each = if filling == Filling::Single { 1 } else { self.each(codes) };
        Some(self.sized(dim, each, filling))
    }

    /// Bytes that are sure to hold a model of one code a class, its tables at their largest.
    pub fn least_flash(&self) -> u64 {
        // The norm that every choice has.
        let fits = |flash| self.size(Norm::Columns, Some(self.room(flash)), Filling::Single).is_some();
        // What does not fit into 4 GB is no file.
        let (mut low, mut high) = (0, u64::from(u32::MAX));
        while low < high {
            let middle = u64::midpoint(low, high);
            if fits(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Bytes of one axis: its weights, its bias, and its scale where weights are bytes.
    fn axis(&self) -> u64 {
        let inputs = self.inputs as u64;
        if self.int8 { inputs + 2 * NUMBER } else { NUMBER * (inputs + 1) }
    }

    /// Axes that a view keeps at most: what more inputs have is the rest, which takes one.
    fn most_axes(&self) -> usize {
        if self.inputs > MOST_AXES { MOST_AXES - 1 } else { self.inputs }
    }

    /// Axes of a view that keeps `dim`, with the one for what they leave out.
    fn latent(&self, dim: usize) -> usize {
        dim + usize::from(leaves_axes_out(Some(dim), self.inputs))
    }

    /// Bytes of what happens to an input up to its latent mean, in a view that keeps `dim` axes.
    fn head(&self, norm: Norm, dim: usize) -> u64 {
        let (out, axes) = (leaves_axes_out(Some(dim), self.inputs), self.latent(dim) as u64);
        self.columns(norm, out) + axes * (self.axis() + if out { NUMBER } else { 0 })
    }

    /// Bytes of what standardises or centres the columns, in a view that leaves axes out or not.
    fn columns(&self, norm: Norm, out: bool) -> u64 {
        if norm.has_columns() || (out && !norm.has_length()) { NUMBER * 2 * self.inputs as u64 } else { 0 }
    }

    /// Whether floats leave axes out that bytes may keep, when `views` views share a file of `flash` bytes.
    pub fn lacks_axes(&self, flash: Option<u64>, views: u64) -> bool {
        let room = flash.map(|flash| self.room(flash) / views);
        let size = self.size(Norm::Columns, room, Filling::Full);
        size.is_none_or(|size| size.dim < self.most_axes())
    }

    fn sized(&self, dim: usize, each: usize, filling: Filling) -> Size {
        let codes = self.counts.iter().map(|&count| count.min(each)).sum();
        Size { dim, each, codes, local: filling == Filling::Local }
    }

    /// The largest number of codes a class that are no more than `codes` in all.
    fn each(&self, codes: usize) -> usize {
        let total = |each: usize| self.counts.iter().map(|&count| count.min(each)).sum::<usize>();
        let (mut low, mut high) = (1, self.counts.iter().copied().max().unwrap_or(1));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if total(middle) <= codes { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// The size of a view as it is written down.
    pub fn of(&self, view: &ViewConfig) -> Size {
        self.sized(view.rank.unwrap_or(self.inputs).min(self.inputs), view.codes, Filling::of(view))
    }

    /// Bytes of a file with these views; the base always has a decoder, of the inputs where it is the user's own.
    pub fn bytes(&self, views: &[ViewConfig], own_head: bool) -> u64 {
        let view = |(index, view): (usize, &ViewConfig)| {
            let Size { dim, codes, .. } = self.of(view);
            let decoder =
                self.decoder_inputs(index, view, dim, own_head).map_or(0, |n| self.outputs * (n + 1));
            self.head(view.norm, dim)
                + NUMBER * (codes * (self.latent(dim) + Filling::of(view).beside_mean()) + decoder) as u64
        };
        self.overhead() + views.iter().enumerate().map(view).sum::<u64>()
    }

    /// Multiply-adds of one input.
    pub fn multiply_adds(&self, views: &[ViewConfig], own_head: bool) -> u64 {
        let work = |(index, view): (usize, &ViewConfig)| {
            let Size { dim, codes, .. } = self.of(view);
            let length = if view.norm.has_length() { 2 * self.inputs } else { 0 };
            let axes = self.latent(dim);
            let rest = if axes > dim { self.inputs + 2 * axes } else { 0 };
            let decoder = self.decoder_inputs(index, view, dim, own_head).map_or(0, |n| self.outputs * n);
            let local = if view.local { codes } else { 0 };
            (length + axes * (self.inputs + codes) + rest + decoder + local) as u64
        };
        views.iter().enumerate().map(work).sum()
    }

    /// What the decoder of a view reads, if it has one.
    fn decoder_inputs(&self, index: usize, view: &ViewConfig, dim: usize, own_head: bool) -> Option<usize> {
        match (index, own_head) {
            (0, true) => Some(self.inputs),
            (0, false) => Some(self.latent(dim)),
            _ => view.form.uses_energy().then_some(self.latent(dim)),
        }
    }
}

/// Codes that a regression of so many rows may have.
pub fn most_codes(rows: usize) -> usize {
    (rows / ROWS_A_CODE).max(1)
}

/// α of a view with `dim` axes.
pub fn alpha(dim: usize) -> f64 {
    (SHARP / dim.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dab_core::channels::Form;

    fn rows(inputs: usize, classes: usize, each: usize) -> Rows {
        Rows { inputs, outputs: classes, counts: vec![each; classes], strings: 100, int8: false }
    }

    fn view(norm: Norm, Size { dim, each, local, .. }: Size) -> ViewConfig {
        ViewConfig { norm, rank: Some(dim), codes: each, local, form: Form::Sum, ..ViewConfig::default() }
    }

    #[test]
    fn views_fill_the_flash_and_no_more() {
        const FLASH: [u64; 4] = [16 << 10, 64 << 10, 128 << 10, 1 << 20];
        for (inputs, classes, each) in
            [(64, 8, 150), (64, 10, 4000), (384, 150, 90), (8, 3, 40), (2048, 10, 100)]
        {
            let floats = rows(inputs, classes, each);
            let bytes = Rows { int8: true, ..floats.clone() };
            for (rows, flash) in
                [&floats, &bytes].into_iter().flat_map(|rows| FLASH.map(|flash| (rows, flash)))
            {
                for views in 1..=3_u64 {
                    let share = rows.room(flash) / views;
                    for (norm, filling) in [
                        (Norm::Raw, Filling::Full),
                        (Norm::Columns, Filling::Local),
                        (Norm::L2, Filling::Full),
                        (Norm::L2, Filling::Local),
                    ] {
                        let Some(size) = rows.size(norm, Some(share), filling) else { continue };
                        assert_eq!(
                            (size.local, Filling::of(&view(norm, size))),
                            (filling == Filling::Local, filling)
                        );
                        let all = vec![view(norm, size); views as usize];
                        let bytes = rows.bytes(&all, false);
                        assert!(bytes <= flash, "{inputs} × {classes}: {bytes} of {flash}, {size:?}");
                        // All rows are codes, all axes are kept, or less than one more code a class would fit.
                        let a_code = rows.latent(size.dim) + filling.beside_mean();
                        let more = NUMBER * views * (classes * a_code) as u64;
                        let full = size.each == each || bytes + more + 64 * views > flash;
                        assert!(full, "{inputs} × {classes}: {bytes} of {flash}, {size:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bytes_keep_axes_that_floats_leave_out() {
        let floats = rows(512, 10, 1000);
        let bytes = Rows { int8: true, ..floats.clone() };
        let axes =
            |rows: &Rows| rows.size(Norm::Columns, Some(rows.room(128 << 10)), Filling::Full).unwrap().dim;
        assert!(axes(&bytes) > axes(&floats) && floats.lacks_axes(Some(128 << 10), 1));
        assert!(!rows(8, 10, 1000).lacks_axes(Some(128 << 10), 3) && !floats.lacks_axes(None, 3));
    }

    #[test]
    fn the_least_flash_holds_a_model_and_a_byte_less_does_not() {
        for rows in [rows(4, 3, 50), rows(384, 150, 90), Rows { int8: true, ..rows(2048, 10, 100) }] {
            let least = rows.least_flash();
            let size = |flash| rows.size(Norm::Columns, Some(rows.room(flash)), Filling::Single);
            let size_of_least = size(least).unwrap();
            assert_eq!((size_of_least.each, size(least - 1)), (1, None));
            assert!(rows.bytes(&[view(Norm::Columns, size_of_least)], false) <= least);
        }
    }

    #[test]
    fn without_a_limit_every_row_is_a_code() {
        let size = rows(64, 8, 150).size(Norm::Raw, None, Filling::Full);
        assert_eq!(size, Some(Size { dim: 64, each: 150, codes: 1200, local: false }));
        assert_eq!(rows(64, 8, 150).size(Norm::Raw, Some(100), Filling::Full), None);
    }

    #[test]
    fn small_classes_leave_their_codes_to_large_ones() {
        let rows = Rows { counts: vec![1000, 3, 0], ..rows(8, 3, 0) };
        assert_eq!(rows.each(20), 17);
        assert_eq!(rows.sized(8, 17, Filling::Full).codes, 20);
    }
}
