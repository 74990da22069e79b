//! What happens to a picture before an image network sees it.
//!
//! ```text
//! file → RGB bytes → shorter side to `resize`, centre of side × side → x / 255 → (x − mean) / std, per colour
//! ```
//!
//! This is torchvision's `Resize(resize)`, `CenterCrop(side)`, `ToTensor()`, `Normalize(mean, std)` on a Pillow picture,
//! with one exception: a file of exactly side × side is taken as it is, so that the same pixels give the same features
//! whether they come from a file or from an array. `always_resize` takes the exception back.

use serde::{Deserialize, Serialize};

use super::{pixels::Normalise, resize::Picture};

/// How pictures become a network's inputs. A model file carries it in its info.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preprocessing {
    /// Height and width of what the network sees.
    pub side: usize,
    /// The shorter side of a picture before its centre is cut out.
    pub resize: usize,
    /// Whether files of side × side are resized too.
    #[serde(default)]
    pub always_resize: bool,
    /// Bytes → inputs.
    #[serde(flatten)]
    pub normalise: Normalise,
}

/// ImageNet's.
impl Default for Preprocessing {
    fn default() -> Self {
        Self { side: 224, resize: 256, always_resize: false, normalise: Normalise::default() }
    }
}

impl Preprocessing {
    /// The rule in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { side, resize, always_resize, normalise } = self;
        let exception =
            if *always_resize { String::new() } else { format!(", unless it is {side} × {side}") };
        let list = |numbers: [f32; 3]| numbers.map(|number| number.to_string()).join(" ");
        format!(
            "RGB; the shorter side is resized to {resize} (bilinear, antialiased){exception}; the centre of {side} × \
             {side}; x / 255; minus mean {}; divided by std {}",
            list(normalise.mean),
            list(normalise.std)
        )
    }

    /// Whether a picture of this size is taken as it is.
    pub(super) fn keeps(&self, picture: &Picture) -> bool {
        let exact = picture.width == self.side && picture.height == self.side;
        exact && (!self.always_resize || self.resize == self.side)
    }

    /// The part of a picture that the network sees, side × side.
    pub(super) fn centre(&self, picture: &Picture) -> Picture {
        if self.keeps(picture) {
            return picture.clone();
        }
        let (width, height) = (picture.width, picture.height);
        let short = width.min(height);
        // The longer side is cut to a whole number, as torchvision does it.
        let scaled = |length: usize| (self.resize as f64 * length as f64 / short as f64) as usize;
        let (w, h) =
            if width <= height { (self.resize, scaled(height)) } else { (scaled(width), self.resize) };
        // A half is rounded to the even neighbour, as Python does it.
        let middle = |length: usize| ((length - self.side) as f64 / 2.0).round_ties_even() as usize;
        let (left, top) = (middle(w), middle(h));
        picture.resized(w, h, left..left + self.side, top..top + self.side)
    }
}
