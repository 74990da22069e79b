//! How soon a fault is found: in recorded fault logs, and in faults that are imagined on a normal log.

use dab_core::monitor::{Config, Monitor, State, Why};

/// A recorded fault.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultLog {
    /// What to call it.
    pub name: String,
    /// One score a tick.
    pub scores: Vec<f32>,
    /// The tick at which the fault begins.
    pub onset: usize,
}

/// When a fault was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Ticks from its beginning to the first tick that is not nominal.
    pub ticks: usize,
    /// Why.
    pub why: Why,
}

/// A monitor, and the tick of its next score.
struct Watch {
    monitor: Monitor,
    now: u32,
}

impl Watch {
    /// One that trusts after the normal scores in `before`; `None` if it does not.
    fn trusting(config: Config, before: &[f32]) -> Option<Self> {
        let mut watch = Self { monitor: Monitor::new(config).ok()?, now: 0 };
        for &score in before {
            watch.alarmed(score);
        }
        (watch.monitor.state() == State::Nominal).then_some(watch)
    }

    /// Whether the next score ends the trust.
    fn alarmed(&mut self, score: f32) -> bool {
        let state = self.monitor.observe(self.now, score);
        self.now = self.now.wrapping_add(1);
        state != State::Nominal
    }
}

/// When a recorded fault is found after the normal operation in `before`; `None` if it is not, or trust was lost before.
pub fn of_fault(config: Config, before: &[f32], fault: &FaultLog) -> Option<Found> {
    let mut watch = Watch::trusting(config, before)?;
    let mut scores = fault.scores.iter().enumerate();
    let (i, _) = scores.find(|&(i, &score)| watch.alarmed(score) && i >= fault.onset)?;
    Some(Found { ticks: i - fault.onset + 1, why: watch.monitor.why() })
}

/// Places in a log at which imagined faults begin.
const PLACES: usize = 8;

/// Median ticks until scores that rise by `shift`, within `ramp` ticks, are found, and why; `limit` where they are not. The
/// fault begins at several places of the log.
pub fn of_shift(config: Config, log: &[f32], shift: f32, ramp: usize, limit: usize) -> Found {
    let lead = config.min_dwell as usize + 2 * config.window as usize + config.drift.block as usize;
    let mut found: Vec<Found> = Vec::new();
    for place in 0..PLACES {
        // A part of a block earlier each time: faults do not begin with blocks.
        let lead = lead + place * config.drift.block as usize / PLACES + 1;
        let room = log.len().saturating_sub(lead + 1);
        let onset = lead + room * place / (2 * PLACES);
        let Some(before) = log.get(onset - lead..onset) else { continue };
        let Some(mut watch) = Watch::trusting(config, before) else { continue };
        let share = |tick: usize| if ramp == 0 { 1.0 } else { (tick as f32 / ramp as f32).min(1.0) };
        let mut scores = log[onset..].iter().take(limit).enumerate();
        let alarm = scores.find(|&(tick, &score)| watch.alarmed(score + shift * share(tick)));
        found.push(Found { ticks: alarm.map_or(limit, |(tick, _)| tick + 1), why: watch.monitor.why() });
    }
    found.sort_by_key(|f| f.ticks);
    found.get(found.len() / 2).copied().unwrap_or(Found { ticks: limit, why: Why::NONE })
}
