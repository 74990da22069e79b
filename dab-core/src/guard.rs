//! One call for a control loop: an input in, who may drive out.
//!
//! ```text
//! input → assess → judge → monitor → Decision { state, why, assessment }
//! ```
//!
//! Whatever the model refuses (a NaN, a wrong length, too little scratch) is counted, votes for the fallback, and is
//! never driven on. There is nothing that a caller could forget to pass on.

use crate::error::InputError;
use crate::model::{Assessment, Model};
use crate::monitor::{Config, ConfigError, Monitor, State, Why};

/// Who may drive, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "the fallback must drive unless the state is State::Nominal"]
pub struct Decision {
    /// Who may drive.
    pub state: State,
    /// Why the fallback drives; nothing while the state is nominal.
    pub why: Why,
    /// What the model said of the input, or why it refused it.
    pub assessment: Result<Assessment, InputError>,
}

impl Decision {
    /// Whether the learned controller may drive.
    #[must_use]
    pub fn is_nominal(&self) -> bool {
        self.state == State::Nominal
    }
}

/// A model and a monitor that belong together.
#[derive(Clone, Debug)]
pub struct Guard<'m, 'a> {
    model: &'m Model<'a>,
    monitor: Monitor,
}

impl<'m, 'a> Guard<'m, 'a> {
    /// A guard that has seen nothing, and therefore trusts nothing.
    ///
    /// # Errors
    /// As [`Monitor::new`].
    pub fn new(model: &'m Model<'a>, config: Config) -> Result<Self, ConfigError> {
        Ok(Self { model, monitor: Monitor::new(config)? })
    }

    /// A guard with the monitor that was tuned for the model and lies in its file; `None` if it has none.
    #[must_use]
    pub fn tuned(model: &'m Model<'a>) -> Option<Self> {
        // The reader has checked the configuration: `new` takes it.
        Self::new(model, model.monitor_config()?).ok()
    }

    /// Assesses the input of tick `now` and says who may drive.
    pub fn assess(&mut self, now: u32, input: &[f32], scratch: &mut [f32]) -> Decision {
        let assessment = self.model.assess(input, scratch);
        self.judge(now, assessment)
    }

    /// [`Guard::assess`], and what the network predicts. `outputs` stay as they are if the input is refused.
    pub fn predict(&mut self, now: u32, input: &[f32], outputs: &mut [f32], scratch: &mut [f32]) -> Decision {
        let assessment = self.model.predict_into(input, outputs, scratch);
        self.judge(now, assessment)
    }

    /// Who may drive after an assessment that was made elsewhere, such as one with what was taught.
    pub fn judge(&mut self, now: u32, assessment: Result<Assessment, InputError>) -> Decision {
        let state = self.monitor.judge(now, &assessment);
        Decision { state, why: self.monitor.why(), assessment }
    }

    /// Who may drive at `now` without a new input, so that silence is noticed.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn poll(&mut self, now: u32) -> State {
        self.monitor.poll(now)
    }

    /// The model.
    #[must_use]
    pub const fn model(&self) -> &'m Model<'a> {
        self.model
    }

    /// The monitor: state, reasons, statistics, events.
    #[must_use]
    pub const fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// The monitor, to be reset or restored.
    pub const fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }
}
