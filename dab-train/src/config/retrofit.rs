//! `[retrofit]`: a model without gradients, and how it is chosen.
//!
//! ```text
//! [retrofit]
//! flash = 131072          # bytes that the file may have
//!
//! [[retrofit.views]]      # none: they are chosen by leaving classes out
//! norm = "l2"
//! ridge = 1.0
//! codes = 20
//! form = "joined"
//! ```

use anyhow::ensure;
use dab_core::artifact::schema::{Form, MAX_DIM_DIAGONAL, MAX_VIEWS};
use serde::{Deserialize, Serialize};

/// A model that is computed, not trained: whitening, codes by k-means in each class, softmax regression.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retrofit {
    /// Bytes that the file may have; no limit without.
    pub flash: Option<u64>,
    /// Seconds that choosing may take; then the best so far is taken. No limit without.
    pub seconds: Option<f64>,
    /// Whether fixed views are taken when there are none: nothing is tried.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
    /// The last layer of the user's own network, a safetensors file with `weight` and `bias`: it gives the logits. Their mean
    /// over the classes is subtracted. That changes no probability, and the energy then depends on differences of classes alone.
    pub head: Option<String>,
    /// The views of an input, the base first. None: they are chosen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<ViewConfig>,
}

/// What a model that learns by gradients has beside its own distance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Beside {
    /// Views of its inputs, of distances alone.
    pub views: Vec<ViewConfig>,
    /// Whether they alone judge: the network's own distance then makes the band of a prediction and nothing else.
    pub alone: bool,
    /// What the network's own score is made of: its distance, or that and the energy of its logits.
    pub form: Form,
}

impl Beside {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let (count, most) = (self.views.len(), MAX_VIEWS - 1);
        ensure!(count <= most, "beside.views: {count} views, a file holds {most} beside the network's own");
        let distances = self.views.iter().all(|view| view.form == Form::Distance);
        ensure!(
            distances,
            "beside.views: their form is \"distance\"; a view beside a network has no decoder"
        );
        check_views("beside.views", &self.views)
    }
}

/// What happens to an input before it is whitened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// Nothing.
    #[default]
    Raw,
    /// Each column to mean 0 and variance 1.
    Columns,
    /// Each row to length 1.
    L2,
}

impl Norm {
    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Columns => "columns",
            Self::L2 => "l2",
        }
    }

    /// Whether columns are standardised.
    #[must_use]
    pub const fn has_columns(self) -> bool {
        matches!(self, Self::Columns)
    }

    /// Whether rows are brought to length 1.
    #[must_use]
    pub const fn has_length(self) -> bool {
        matches!(self, Self::L2)
    }
}

/// One view of an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ViewConfig {
    /// What comes first.
    pub norm: Norm,
    /// r: added to the within-class covariance, in units of its mean variance.
    pub ridge: f64,
    /// Axes that are kept; all without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Codes a class (in all, for a regression).
    pub codes: usize,
    /// Whether distances from a code count in units of how densely training rows lie around it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// Temperature α of E5.
    pub alpha: f64,
    /// What the view's score is made of.
    pub form: Form,
}

impl Default for ViewConfig {
    fn default() -> Self {
        Self {
            norm: Norm::L2,
            ridge: 1.0,
            rank: None,
            codes: 1,
            local: false,
            alpha: 1.0,
            form: Form::Distance,
        }
    }
}

impl ViewConfig {
    /// In words, for people; `classes` says whether there are any, or numbers to predict.
    #[must_use]
    pub fn words(&self, classes: bool) -> String {
        let each = if self.codes == 1 { "code" } else { "codes" };
        let each = if classes { format!("{each} a class") } else { each.to_owned() };
        let rank = self.rank.map_or_else(String::new, |rank| format!(", {rank} axes"));
        let local = if self.local { "local " } else { "" };
        format!(
            "{}, ridge {}, {} {each}{rank}, {local}{}",
            self.norm.name(),
            self.ridge,
            self.codes,
            self.form.name()
        )
    }
}

impl Retrofit {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let count = self.views.len();
        ensure!(count <= MAX_VIEWS, "retrofit.views: {count} views, a file holds {MAX_VIEWS}");
        ensure!(self.seconds.is_none_or(|seconds| seconds > 0.0), "retrofit.seconds must be above 0");
        check_views("retrofit.views", &self.views)
    }
}

/// Refuses views that cannot be fitted; `setting` is where they were given.
fn check_views(setting: &str, views: &[ViewConfig]) -> anyhow::Result<()> {
    for (index, ViewConfig { ridge, alpha, codes, rank, .. }) in views.iter().enumerate() {
        let at = format!("{setting}, view {index}");
        ensure!(*ridge >= 0.0 && ridge.is_finite(), "{at}: ridge is {ridge}, it must not be below 0");
        ensure!(*alpha > 0.0 && alpha.is_finite(), "{at}: alpha is {alpha}, it must be above 0");
        ensure!(*codes > 0, "{at}: codes start at 1");
        // One axis is for what the others leave out.
        let most = MAX_DIM_DIAGONAL as usize - 1;
        ensure!(rank.is_none_or(|rank| (1..=most).contains(&rank)), "{at}: rank is from 1 to {most}");
    }
    Ok(())
}
