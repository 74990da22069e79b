//! When to distrust, and when to trust again.

use core::fmt;

use super::drift::{Drift, MAX_BLOCK};
use super::votes::MAX_WINDOW;

/// When to distrust, and when to trust again.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Config {
    /// A score above this (nats) is a vote for the alarm.
    pub enter: f32,
    /// A score at or below this (nats) is a vote for recovery.
    pub exit: f32,
    /// Votes among the window that raise the alarm.
    pub enter_votes: u32,
    /// Votes among the window that end it.
    pub exit_votes: u32,
    /// How many of the last inputs vote, 1 to [`MAX_WINDOW`]; above 32, within a thirty-second of it.
    pub window: u32,
    /// Rejected inputs among the window that raise the alarm by themselves; 0: a quarter of the window, at least one.
    pub reject_votes: u32,
    /// Ticks that an alarm lasts at least.
    pub min_dwell: u32,
    /// Ticks without an input after which the last one is too old; 0: never. At most 2³¹ − 1.
    pub timeout: u32,
    /// The slow channel.
    pub drift: Drift,
}

impl Config {
    /// One threshold, one vote, no dwell, no timeout, no drift channel: what an `if` would do.
    #[must_use]
    pub const fn plain(threshold: f32) -> Self {
        Self {
            enter: threshold,
            exit: threshold,
            enter_votes: 1,
            exit_votes: 1,
            window: 1,
            reject_votes: 0,
            min_dwell: 0,
            timeout: 0,
            drift: Drift::OFF,
        }
    }

    /// `reject_votes`, or its default.
    #[must_use]
    pub(super) const fn rejects(&self) -> u32 {
        if self.reject_votes == 0 { self.window.div_ceil(4) } else { self.reject_votes }
    }

    /// Not inlined: the reader of model files and every monitor share it.
    #[inline(never)]
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let Self { enter, exit, window, timeout, .. } = *self;
        if !(enter.is_finite() && exit.is_finite() && exit <= enter) {
            return Err(ConfigError::Thresholds { enter, exit });
        }
        if !(1..=MAX_WINDOW).contains(&window) {
            return Err(ConfigError::Window { window });
        }
        for votes in [self.enter_votes, self.exit_votes, self.rejects()] {
            if !(1..=window).contains(&votes) {
                return Err(ConfigError::Votes { votes, window });
            }
        }
        if timeout > i32::MAX as u32 {
            return Err(ConfigError::Timeout { timeout });
        }
        if !self.drift.is_sound() {
            return Err(ConfigError::Drift { block: self.drift.block, alarm: self.drift.alarm });
        }
        Ok(())
    }
}

/// Why a [`Config`] describes no monitor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
        window: u32,
    },
    /// `enter_votes` or `exit_votes` is 0, or they or `reject_votes` are more than the window.
    Votes {
        /// The votes that were given.
        votes: u32,
        /// How many inputs vote.
        window: u32,
    },
    /// The timeout is more than half of the clock's range.
    Timeout {
        /// The timeout that was given, ticks.
        timeout: u32,
    },
    /// The table of the drift channel is no table, or its alarm no alarm.
    Drift {
        /// Inputs in a block.
        block: u32,
        /// ln of the capital that raises the alarm.
        alarm: f32,
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
            Self::Drift { block, alarm } => write!(
                f,
                "the drift channel has blocks of {block} inputs and the alarm {alarm}: allowed are blocks of at most \
                 {MAX_BLOCK}, an alarm above 0 and at most 10000, levels that ascend, and p-values that descend, above \
                 0 and at most 1"
            ),
        }
    }
}

impl core::error::Error for ConfigError {}
