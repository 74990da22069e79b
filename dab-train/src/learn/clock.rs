//! Where the time of an epoch goes: what `dab bench` shows.
//!
//! A `Clock` is told at the end of each part of an epoch which part that was. It is off unless somebody starts it:
//! devices that work ahead of the program have to be waited for at each lap.

use std::time::{Duration, Instant};

use burn::tensor::Device;

/// Parts of an epoch, in their order: three of step 1, two of step 2, two of step 3, and step 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochPart {
    /// Step 1: inputs → loss.
    Forward,
    /// Step 1: loss → gradients.
    Backward,
    /// Step 1: gradients → weights.
    Update,
    /// Step 2: every example's Gaussian.
    Encode,
    /// Step 2: distances (E4) and π_x (E5), as often as step 3 needs them.
    Assign,
    /// Step 3: E10, gradients and update.
    Means,
    /// Step 3: E11.
    Covariances,
    /// Step 4: E12, and what is reported of the epoch.
    Priors,
}

impl EpochPart {
    /// All, in order.
    pub const ALL: [Self; 8] = [
        Self::Forward,
        Self::Backward,
        Self::Update,
        Self::Encode,
        Self::Assign,
        Self::Means,
        Self::Covariances,
        Self::Priors,
    ];

    /// The step of method.md that it belongs to, 1 to 4.
    #[must_use]
    pub fn step(self) -> usize {
        match self {
            Self::Forward | Self::Backward | Self::Update => 1,
            Self::Encode | Self::Assign => 2,
            Self::Means | Self::Covariances => 3,
            Self::Priors => 4,
        }
    }

    /// Its name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Update => "update",
            Self::Encode => "encode",
            Self::Assign => "assign",
            Self::Means => "means",
            Self::Covariances => "covariances",
            Self::Priors => "priors",
        }
    }
}

/// Time spent in each part, in the order of [`EpochPart::ALL`].
pub type Times = [Duration; EpochPart::ALL.len()];

/// A stopwatch for the parts of an epoch.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Running>);

#[derive(Clone, Debug)]
struct Running {
    device: Device,
    last: Instant,
    spent: Times,
}

impl Clock {
    /// From now on, laps are measured on `device`.
    pub fn start(&mut self, device: &Device) {
        self.0 = Some(Running { device: device.clone(), last: Instant::now(), spent: Times::default() });
    }

    /// What was done since the last lap was `part`.
    pub(super) fn lap(&mut self, part: EpochPart) {
        let Some(running) = &mut self.0 else { return };
        // A device that cannot be waited for has failed; the next operation on it says so.
        let _ = running.device.sync();
        let now = Instant::now();
        running.spent[part as usize] += now - running.last;
        running.last = now;
    }

    /// Stops, and tells what was measured since the start: nothing if there was none.
    pub fn stop(&mut self) -> Times {
        self.0.take().map(|running| running.spent).unwrap_or_default()
    }
}
