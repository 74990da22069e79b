//! The bands around a regression's predictions.

use crate::attribute::own_numbers;
use crate::model::Handle;
use crate::status::{self, DAB_ERR_NO_BANDS, Status};

/// The bands of a regression's outputs: for 95 % of inputs like the training data the truth lies within output +- band *
/// a.uncertainty, on average. bands: `outputs` floats, in the target's unit per nat. Ask once, at boot.
/// Returns DAB_OK, DAB_ERR_NO_BANDS (no regression, or made without held-out targets), DAB_ERR_OUTPUT_LENGTH, or -1 to -6
/// for bad pointers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dab_model_bands(model: *const Handle, bands: *mut f32, outputs: usize) -> Status {
    // SAFETY: `own_numbers` checks both pointers; the caller promises a model that nobody writes to, and writable floats.
    status::of(unsafe {
        own_numbers(model, (bands, outputs), |model| {
            let own = model.bands().ok_or(DAB_ERR_NO_BANDS);
            (model.shape().outputs, own.map(|own| move |output| own.get(output)))
        })
    })
}
