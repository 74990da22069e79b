//! From a stream of scores to one decision: may the learned controller drive?
//!
//! ```text
//! (time, score) → votes of the last inputs     → spike    ┐
//!               → blocks, p-values, bets       → drift    ├→ Nominal ⇄ Fallback,   silence → Stale
//! no assessment → rejected inputs              → rejected ┘
//! ```
//!
//! One uncertain input is noise; `enter_votes` of the last `window` inputs above `enter` are an alarm. A stream that
//! goes astray slowly, below `enter`, is found by the [`drift`](Drift) channel. Trust comes back when nothing alarms,
//! `exit_votes` of the window are at or below `exit` (lower: hysteresis), and `min_dwell` ticks are over, so that one
//! episode is one alarm.
//!
//! It fails safe: it starts distrusting; a tick without an assessment (a NaN, a refused input) is never [`State::Nominal`]
//! and votes for the alarm; an alarm is never delayed by the dwell; silence for longer than `timeout` or a clock that jumps
//! back is [`State::Stale`].
//!
//! No clock inside: time is the caller's tick counter, which may wrap around. The work of a call is bounded by a
//! constant, whatever the window. How many false alarms an hour a configuration raises on a stream whose inputs are
//! correlated cannot be computed from a false-alarm rate: `dab monitor tune` measures it on recorded streams.

mod config;
mod drift;
mod events;
mod saved;
mod votes;

pub use config::{Config, ConfigError};
pub use drift::{Drift, LEVELS, MAX_BLOCK};
pub use events::{EVENTS, Event, Why};
pub use saved::SAVED_BYTES;

pub use crate::saved::RestoreError;
pub use votes::MAX_WINDOW;

use self::drift::Bets;
use self::events::Events;
use self::votes::{Vote, Votes};
use crate::error::InputError;
use crate::model::Assessment;
use crate::running::Running;

/// Who may drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum State {
    /// The learned controller: its inputs are familiar.
    Nominal,
    /// The fallback: inputs are unfamiliar, or have not been familiar for long enough.
    Fallback,
    /// The fallback: there is no recent input.
    Stale,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// The scores, nats.
    pub uncertainty: Running,
    /// Inputs, with those that were rejected.
    pub inputs: u64,
    /// Inputs that voted for the alarm.
    pub votes: u64,
    /// How often trust was lost to unfamiliar, drifting or rejected inputs: one for each episode.
    pub alarms: u64,
    /// How often the input went silent, or the clock jumped back.
    pub stales: u64,
    /// Ticks in [`State::Nominal`].
    pub nominal_ticks: u64,
    /// Ticks in the other states.
    pub fallback_ticks: u64,
    /// Inputs that could not be assessed.
    pub rejected: u64,
    /// Alarms that the votes raised.
    pub spikes: u64,
    /// Alarms that the drift channel raised.
    pub drifts: u64,
    /// Alarms that rejected inputs raised.
    pub rejections: u64,
}

/// The monitor: configuration, votes, bets, statistics and the last events, all in here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Monitor {
    config: Config,
    state: State,
    why: Why,
    /// The last input was rejected while the state was nominal: the answer is fallback until the next input.
    held: bool,
    /// Time of the last call; meaningless before the first.
    now: u32,
    started: bool,
    /// Ticks since the state was entered, and since the last input; saturating, so that they outlive a
    /// wrap-around of the clock.
    in_state: u32,
    silent: u32,
    votes: Votes,
    bets: Bets,
    statistics: Statistics,
    events: Events,
}

impl Monitor {
    /// A monitor that has seen nothing, and therefore trusts nothing.
    ///
    /// # Errors
    /// Unless `exit ≤ enter`, both finite, `1 ≤ votes ≤ window ≤` [`MAX_WINDOW`], `timeout < 2³¹`, and the drift channel
    /// is off or has a table.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            state: State::Stale,
            why: Why::STARTING,
            held: false,
            now: 0,
            started: false,
            in_state: 0,
            silent: 0,
            votes: Votes::new(config.window),
            bets: Bets::NONE,
            statistics: Statistics::default(),
            events: Events::NONE,
        })
    }

    /// Forgets everything but the configuration: the monitor is as new, and trusts nothing.
    pub fn reset(&mut self) {
        self.votes.clear();
        (self.state, self.why, self.held) = (State::Stale, Why::STARTING, false);
        (self.now, self.started, self.in_state, self.silent) = (0, false, 0, 0);
        self.bets = Bets::NONE;
        self.statistics = Statistics::default();
        self.events = Events::NONE;
    }

    /// Takes in a score that was measured at `now` and says who may drive. A score that is not finite is a rejected
    /// input, and so is `f32::MAX`, the score of an assessment that failed.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn observe(&mut self, now: u32, score: f32) -> State {
        self.take(now, measured(score), Event::NO_CODE)
    }

    /// Takes in that the input of `now` could not be assessed, and says who may drive: never the learned controller.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn reject(&mut self, now: u32) -> State {
        self.take(now, None, Event::NO_CODE)
    }

    /// Takes in what a model said of the input of `now`: its score, or that it refused it.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn judge(&mut self, now: u32, assessment: &Result<Assessment, InputError>) -> State {
        match assessment {
            Ok(found) => self.take(now, measured(found.score()), found.nearest as u32),
            Err(_) => self.reject(now),
        }
    }

    /// Says who may drive at `now` when there is no new input: call it from the control loop, so that silence
    /// is noticed.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn poll(&mut self, now: u32) -> State {
        self.advance(now);
        self.state()
    }

    /// Who may drive, as of the last call.
    #[must_use]
    pub const fn state(&self) -> State {
        if self.held { State::Fallback } else { self.state }
    }

    /// Why the fallback drives; nothing while the state is nominal.
    #[must_use]
    pub const fn why(&self) -> Why {
        if self.held { Why::REJECTED } else { self.why }
    }

    /// What happened so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The last [`EVENTS`] events, the latest first: losses of trust, further reasons, and its return.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.events.latest_first()
    }

    /// How many events there were.
    #[must_use]
    pub const fn event_count(&self) -> u64 {
        self.events.count
    }

    /// ln of the capital of the drift channel, and the p-value of the last complete block.
    #[must_use]
    pub const fn drift(&self) -> (f32, f32) {
        (self.bets.capital, self.bets.p_value)
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    fn take(&mut self, now: u32, score: Option<f32>, nearest: u32) -> State {
        self.advance(now);
        if self.state == State::Stale {
            self.enter(State::Fallback);
        }
        self.silent = 0;
        let config = &self.config;
        let vote = Vote {
            high: score.is_some_and(|u| u > config.enter),
            calm: score.is_some_and(|u| u <= config.exit),
            rejected: score.is_none(),
        };
        self.votes.push(vote);
        let statistics = &mut self.statistics;
        statistics.inputs = statistics.inputs.saturating_add(1);
        statistics.votes = statistics.votes.saturating_add((vote.high || vote.rejected).into());
        statistics.rejected = statistics.rejected.saturating_add(vote.rejected.into());
        if let Some(score) = score {
            statistics.uncertainty.push(score);
            self.bets.push(&config.drift, score, config.enter);
        }

        let sums = self.votes.sums();
        let spike = sums.high >= config.enter_votes;
        let rejected = sums.rejected >= config.rejects()
            || (sums.rejected > 0 && !spike && sums.high.wrapping_add(sums.rejected) >= config.enter_votes);
        let active = Why::SPIKE
            .only_if(spike)
            .with(Why::DRIFT.only_if(self.bets.drifting))
            .with(Why::REJECTED.only_if(rejected));
        let event = |why| Event { tick: now, why, score: score.unwrap_or(f32::MAX), nearest };
        let calm = sums.calm >= config.exit_votes && !vote.rejected && self.in_state >= config.min_dwell;
        match self.state {
            State::Nominal if !active.is_empty() => {
                self.count_alarm(active);
                self.why = active;
                self.events.push(event(active));
                self.enter(State::Fallback);
            }
            State::Fallback if active.is_empty() && calm => {
                self.why = Why::NONE;
                self.events.push(event(Why::NONE));
                self.enter(State::Nominal);
            }
            State::Fallback => {
                let more = active.without(self.why);
                if !more.is_empty() {
                    self.why = self.why.with(more);
                    self.events.push(event(more));
                }
            }
            State::Nominal | State::Stale => {}
        }
        self.held = vote.rejected && self.state == State::Nominal;
        self.state()
    }

    fn count_alarm(&mut self, why: Why) {
        let s = &mut self.statistics;
        s.alarms = s.alarms.saturating_add(1);
        s.spikes = s.spikes.saturating_add(why.contains(Why::SPIKE).into());
        s.drifts = s.drifts.saturating_add(why.contains(Why::DRIFT).into());
        s.rejections = s.rejections.saturating_add(why.contains(Why::REJECTED).into());
    }

    fn enter(&mut self, state: State) {
        (self.state, self.in_state) = (state, 0);
    }

    fn advance(&mut self, now: u32) {
        let ticks = if self.started { now.wrapping_sub(self.now) } else { 0 };
        (self.now, self.started) = (now, true);
        // More than half of the counter's range is a step back.
        let backwards = ticks > i32::MAX as u32;
        let ticks = if backwards { 0 } else { ticks };
        self.in_state = self.in_state.saturating_add(ticks);
        self.silent = self.silent.saturating_add(ticks);
        let spent = match self.state() {
            State::Nominal => &mut self.statistics.nominal_ticks,
            State::Fallback | State::Stale => &mut self.statistics.fallback_ticks,
        };
        *spent = spent.saturating_add(ticks.into());
        let silent = self.config.timeout > 0 && self.silent > self.config.timeout;
        if (backwards || silent) && self.state != State::Stale {
            self.statistics.stales = self.statistics.stales.saturating_add(1);
            self.votes.clear();
            self.bets.interrupt();
            (self.why, self.held) = (Why::STALE, false);
            self.events.push(Event { tick: now, why: Why::STALE, score: f32::MAX, nearest: Event::NO_CODE });
            self.enter(State::Stale);
        }
    }
}

/// The score, if an assessment gave it: one that failed has `f32::MAX`, and arithmetic that fails is not finite.
fn measured(score: f32) -> Option<f32> {
    Some(score).filter(|x| x.is_finite() && *x < f32::MAX)
}

#[cfg(test)]
mod tests;
