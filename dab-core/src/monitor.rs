//! From a stream of uncertainties to one decision: may the learned controller drive?
//!
//! ```text
//! (time, uncertainty) → votes of the last M inputs → Nominal ⇄ Fallback,   silence → Stale
//! ```
//!
//! One uncertain input is noise; `enter_votes` of the last `window` inputs above `enter` are an alarm.
//! Trust comes back when `exit_votes` of them are at or below `exit` (lower: hysteresis), not before
//! `min_dwell` ticks. It fails safe: it starts distrusting, a NaN is a vote for the alarm, an alarm is never
//! delayed by the dwell, silence for longer than `timeout` or a clock that jumps back is [`State::Stale`].
//!
//! No clock inside: time is the caller's tick counter, which may wrap around. Every call costs the same few
//! operations, whatever the window.

use core::fmt;

use crate::running::Running;

/// Most inputs that vote.
pub const MAX_WINDOW: u8 = 32;

/// When to distrust, and when to trust again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// An uncertainty above this (nats) is a vote for the alarm.
    pub enter: f32,
    /// An uncertainty at or below this (nats) is a vote for recovery.
    pub exit: f32,
    /// Votes among the window that raise the alarm.
    pub enter_votes: u8,
    /// Votes among the window that end it.
    pub exit_votes: u8,
    /// How many of the last inputs vote, 1 to 32.
    pub window: u8,
    /// Ticks that an alarm lasts at least.
    pub min_dwell: u32,
    /// Ticks without an input after which the last one is too old; 0: never. At most 2³¹ − 1.
    pub timeout: u32,
}

impl Config {
    /// One threshold, one vote, no dwell, no timeout: what an `if` would do.
    #[must_use]
    pub const fn plain(threshold: f32) -> Self {
        Self {
            enter: threshold,
            exit: threshold,
            enter_votes: 1,
            exit_votes: 1,
            window: 1,
            min_dwell: 0,
            timeout: 0,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let Self { enter, exit, window, timeout, .. } = *self;
        if !(enter.is_finite() && exit.is_finite() && exit <= enter) {
            return Err(ConfigError::Thresholds { enter, exit });
        }
        if !(1..=MAX_WINDOW).contains(&window) {
            return Err(ConfigError::Window { window });
        }
        for votes in [self.enter_votes, self.exit_votes] {
            if !(1..=window).contains(&votes) {
                return Err(ConfigError::Votes { votes, window });
            }
        }
        if timeout > i32::MAX as u32 {
            return Err(ConfigError::Timeout { timeout });
        }
        Ok(())
    }
}

/// Why a [`Config`] describes no monitor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A threshold is not finite, or `exit` lies above `enter`.
    Thresholds {
        /// The upper threshold that was given.
        enter: f32,
        /// The lower threshold that was given.
        exit: f32,
    },
    /// The window is empty or longer than [`MAX_WINDOW`].
    Window {
        /// The window that was given.
        window: u8,
    },
    /// `enter_votes` or `exit_votes` is 0 or more than the window.
    Votes {
        /// The votes that were given.
        votes: u8,
        /// How many inputs vote.
        window: u8,
    },
    /// The timeout is more than half of the clock's range.
    Timeout {
        /// The timeout that was given, ticks.
        timeout: u32,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Thresholds { enter, exit } => {
                write!(f, "enter is {enter} and exit {exit}: both must be finite, and exit at most enter")
            }
            Self::Window { window } => write!(f, "the window is {window}, allowed are 1 to {MAX_WINDOW}"),
            Self::Votes { votes, window } => {
                write!(f, "{votes} votes cannot decide among {window} inputs, allowed are 1 to {window}")
            }
            Self::Timeout { timeout } => {
                write!(f, "the timeout is {timeout} ticks, allowed are at most {}", i32::MAX)
            }
        }
    }
}

impl core::error::Error for ConfigError {}

/// Who may drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The uncertainties, nats.
    pub uncertainty: Running,
    /// Inputs, with those that were not finite.
    pub inputs: u64,
    /// Inputs that voted for the alarm.
    pub votes: u64,
    /// How often trust was lost to unfamiliar inputs.
    pub alarms: u64,
    /// How often the input went silent, or the clock jumped back.
    pub stales: u64,
    /// Ticks in [`State::Nominal`].
    pub nominal_ticks: u64,
    /// Ticks in the other states.
    pub fallback_ticks: u64,
}

/// The monitor: configuration, votes and statistics, all in here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Monitor {
    config: Config,
    state: State,
    /// Time of the last call; meaningless before the first.
    now: u32,
    started: bool,
    /// Ticks since the state was entered, and since the last input; saturating, so that they outlive a
    /// wrap-around of the clock.
    in_state: u32,
    silent: u32,
    /// One bit per input, the latest lowest: above `enter`, at or below `exit`.
    high: u32,
    calm: u32,
    statistics: Statistics,
}

impl Monitor {
    /// A monitor that has seen nothing, and therefore trusts nothing.
    ///
    /// # Errors
    /// Unless `exit ≤ enter`, both finite, `1 ≤ votes ≤ window ≤ 32` and `timeout < 2³¹`.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            state: State::Stale,
            now: 0,
            started: false,
            in_state: 0,
            silent: 0,
            high: 0,
            calm: 0,
            statistics: Statistics::default(),
        })
    }

    /// Takes in an uncertainty that was measured at `now` and says who may drive.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn observe(&mut self, now: u32, uncertainty: f32) -> State {
        self.advance(now);
        if self.state == State::Stale {
            self.enter(State::Fallback);
        }
        self.silent = 0;
        // A NaN is not at most anything.
        let high = !matches!(uncertainty.partial_cmp(&self.config.enter), Some(o) if o.is_le());
        let calm = uncertainty <= self.config.exit;
        self.high = self.high << 1 | u32::from(high);
        self.calm = self.calm << 1 | u32::from(calm);
        self.statistics.inputs = self.statistics.inputs.saturating_add(1);
        self.statistics.votes = self.statistics.votes.saturating_add(high.into());
        self.statistics.uncertainty.push(uncertainty);

        let alarm = self.votes(self.high) >= self.config.enter_votes.into();
        match self.state {
            State::Nominal if alarm => {
                self.statistics.alarms = self.statistics.alarms.saturating_add(1);
                self.enter(State::Fallback);
            }
            State::Fallback
                if !alarm
                    && self.votes(self.calm) >= self.config.exit_votes.into()
                    && self.in_state >= self.config.min_dwell =>
            {
                self.enter(State::Nominal);
            }
            _ => {}
        }
        self.state
    }

    /// Says who may drive at `now` when there is no new input: call it from the control loop, so that silence
    /// is noticed.
    #[must_use = "the fallback must drive unless this is State::Nominal"]
    pub fn poll(&mut self, now: u32) -> State {
        self.advance(now);
        self.state
    }

    /// Who may drive, as of the last call.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// What happened so far.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    fn votes(&self, history: u32) -> u32 {
        (history & u32::MAX >> (u32::from(MAX_WINDOW) - u32::from(self.config.window))).count_ones()
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
        let spent = match self.state {
            State::Nominal => &mut self.statistics.nominal_ticks,
            State::Fallback | State::Stale => &mut self.statistics.fallback_ticks,
        };
        *spent = spent.saturating_add(ticks.into());
        let silent = self.config.timeout > 0 && self.silent > self.config.timeout;
        if (backwards || silent) && self.state != State::Stale {
            self.statistics.stales = self.statistics.stales.saturating_add(1);
            (self.high, self.calm) = (0, 0);
            self.enter(State::Stale);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;
    use proptest::prelude::*;

    fn config() -> Config {
        Config { enter: 2.0, exit: 1.0, enter_votes: 3, exit_votes: 4, window: 5, min_dwell: 10, timeout: 20 }
    }

    /// A monitor that trusts, at time 100.
    fn nominal() -> Monitor {
        let mut monitor = Monitor::new(config()).unwrap();
        for now in 0..=100 {
            let _ = monitor.observe(now, 0.5);
        }
        assert_eq!(monitor.state(), State::Nominal);
        monitor
    }

    #[test]
    fn it_starts_distrusting_and_earns_trust() {
        let mut monitor = Monitor::new(config()).unwrap();
        assert_eq!(monitor.poll(7), State::Stale);
        assert_eq!(monitor.observe(8, 0.5), State::Fallback);
        // Ten ticks of dwell, then four calm inputs are enough.
        for now in 9..18 {
            assert_eq!(monitor.observe(now, 0.5), State::Fallback, "{now}");
        }
        assert_eq!(monitor.observe(18, 0.5), State::Nominal);
    }

    #[test]
    fn votes_not_spikes_raise_the_alarm() {
        let mut monitor = nominal();
        for (i, u) in [9.0, 0.5, 9.0, 0.5, 0.5, 0.5, 9.0, 9.0].into_iter().enumerate() {
            assert_eq!(monitor.observe(101 + i as u32, u), State::Nominal, "{i}");
        }
        assert_eq!(monitor.observe(109, f32::NAN), State::Fallback, "a NaN votes for the alarm");
        assert_eq!(monitor.statistics().alarms, 1);
        // Between the thresholds nothing changes, for ever.
        for now in 110..300 {
            assert_eq!(monitor.observe(now, 1.5), State::Fallback);
        }
    }

    #[test]
    fn silence_and_clocks_that_jump_back_fail_safe() {
        let mut monitor = nominal();
        assert_eq!(monitor.poll(120), State::Nominal);
        assert_eq!(monitor.poll(121), State::Stale);
        assert_eq!(monitor.observe(122, 0.5), State::Fallback, "one input is not enough");
        let mut monitor = nominal();
        assert_eq!(monitor.observe(130, 0.5), State::Fallback, "the first input after a silence");
        let mut monitor = nominal();
        assert_eq!(monitor.poll(99), State::Stale);
        assert_eq!(monitor.statistics().stales, 1);
    }

    #[test]
    fn plain_is_an_if() {
        let mut monitor = Monitor::new(Config::plain(1.0)).unwrap();
        for (now, u) in [0.0, 2.0, 1.0, 1.1, f32::INFINITY, 0.9].into_iter().enumerate() {
            let expected = if u <= 1.0 { State::Nominal } else { State::Fallback };
            assert_eq!(monitor.observe(now as u32, u), expected, "{u}");
        }
    }

    #[test]
    fn unsound_configurations_are_refused_in_words() {
        type Change = fn(&mut Config);
        let broken: [(Change, &str); 9] = [
            (|c| c.enter = f32::NAN, "enter is NaN and exit 1: both must be finite, and exit at most enter"),
            (
                |c| c.exit = f32::NEG_INFINITY,
                "enter is 2 and exit -inf: both must be finite, and exit at most enter",
            ),
            (|c| c.exit = 3.0, "enter is 2 and exit 3: both must be finite, and exit at most enter"),
            (|c| c.window = 0, "the window is 0, allowed are 1 to 32"),
            (|c| c.window = 33, "the window is 33, allowed are 1 to 32"),
            (|c| c.enter_votes = 0, "0 votes cannot decide among 5 inputs, allowed are 1 to 5"),
            (|c| c.enter_votes = 6, "6 votes cannot decide among 5 inputs, allowed are 1 to 5"),
            (|c| c.exit_votes = 6, "6 votes cannot decide among 5 inputs, allowed are 1 to 5"),
            (|c| c.timeout = 1 << 31, "the timeout is 2147483648 ticks, allowed are at most 2147483647"),
        ];
        for (change, words) in broken {
            let mut config = config();
            change(&mut config);
            assert_eq!(Monitor::new(config).unwrap_err().to_string(), words);
        }
    }

    prop_compose! {
        fn any_config()(
            exit in 0f32..2.0, gap in 0f32..2.0, window in 1u8..=32, a: u8, b: u8,
            min_dwell in 0u32..40, timeout in 0u32..30,
        ) -> Config {
            let votes = |x: u8| 1 + x % window;
            Config {
                enter: exit + gap, exit, enter_votes: votes(a), exit_votes: votes(b), window, min_dwell, timeout,
            }
        }
    }

    proptest! {
        /// The same inputs at the same intervals give the same states, wherever the counter starts.
        #[test]
        fn wrap_around_changes_nothing(
            config in any_config(), start: u32, steps in prop::collection::vec((0u32..25, 0f32..4.0), 1..120),
        ) {
            let run = |start: u32| -> Vec<State> {
                let mut monitor = Monitor::new(config).unwrap();
                let mut now = start;
                steps.iter().map(|&(ticks, u)| {
                    now = now.wrapping_add(ticks);
                    if u > 3.5 { monitor.poll(now) } else { monitor.observe(now, u) }
                }).collect()
            };
            prop_assert_eq!(run(0), run(start));
        }

        /// Against a monitor that remembers everything.
        #[test]
        fn it_does_what_the_words_say(
            config in any_config(), steps in prop::collection::vec((0u32..25, 0f32..4.0), 1..120),
        ) {
            let mut monitor = Monitor::new(config).unwrap();
            let (mut history, mut now, mut last, mut since) = (Vec::new(), 0u32, 0, 0);
            let mut state = State::Stale;
            for (ticks, u) in steps {
                now += ticks;
                if config.timeout > 0 && now - last > config.timeout && state != State::Stale {
                    (state, since) = (State::Stale, now);
                    history.clear();
                }
                last = now;
                if state == State::Stale {
                    (state, since) = (State::Fallback, now);
                }
                history.push(u);
                let count = |vote: &dyn Fn(f32) -> bool| {
                    history.iter().rev().take(config.window.into()).filter(|&&u| vote(u)).count()
                };
                let alarm = count(&|u| u > config.enter) >= config.enter_votes.into();
                let calm = count(&|u| u <= config.exit) >= config.exit_votes.into();
                if state == State::Nominal && alarm {
                    (state, since) = (State::Fallback, now);
                } else if state == State::Fallback && !alarm && calm && now - since >= config.min_dwell {
                    (state, since) = (State::Nominal, now);
                }
                prop_assert_eq!(monitor.observe(now, u), state);
            }
            let s = monitor.statistics();
            prop_assert_eq!(s.inputs, s.uncertainty.count());
            prop_assert!(s.votes <= s.inputs);
        }
    }
}
