//! A monitor in bytes, the same on every machine: for flash that outlives a restart.
//!
//! ```text
//! "dbw1", CRC-32C of the rest, CRC-32C of the configuration, state, clock, votes, bets, statistics, events
//! ```
//!
//! The configuration itself is not in it: the firmware has it. A restored monitor continues bit for bit. After a restart
//! the clock usually jumps back, which is [`State::Stale`]: trust is then earned anew.

use super::drift::Bets;
use super::events::{Event, Events, Why};
use super::votes::{BUCKETS, Counts};
use super::{Config, Monitor, State, Statistics};
use crate::artifact::crc::Crc;
use crate::running::Running;
use crate::saved::{Reader, RestoreError, Saved, Writer, seal};

/// Bytes of a saved monitor.
pub const SAVED_BYTES: usize = 496;

/// What a saved monitor must agree with.
fn fingerprint(config: &Config) -> u32 {
    let mut crc = Crc::new();
    let drift = &config.drift;
    for x in [config.enter, config.exit, drift.alarm].iter().chain(&drift.levels).chain(&drift.p_values) {
        crc.update(&x.to_le_bytes());
    }
    let numbers = [
        config.enter_votes,
        config.exit_votes,
        config.window,
        config.reject_votes,
        config.min_dwell,
        config.timeout,
        drift.block,
        drift.restart.into(),
    ];
    for x in numbers {
        crc.update(&x.to_le_bytes());
    }
    crc.value()
}

impl Monitor {
    /// Everything but the configuration, in bytes.
    #[must_use]
    pub fn save(&self) -> [u8; SAVED_BYTES] {
        let mut bytes = [0; SAVED_BYTES];
        let mut to = Writer::new(&mut bytes);
        to.put(fingerprint(&self.config).to_le_bytes());
        let state = match self.state {
            State::Nominal => 1,
            State::Fallback => 0,
            State::Stale => 2,
        };
        to.put([state, self.why.bits(), self.held.into(), self.started.into()]);
        for x in [self.now, self.in_state, self.silent] {
            to.put(x.to_le_bytes());
        }
        to.put([self.votes.youngest, self.bets.drifting.into()]);
        to.put(self.votes.filled.to_le_bytes());
        for bucket in &self.votes.buckets {
            for x in [bucket.high, bucket.calm, bucket.rejected] {
                to.put(x.to_le_bytes());
            }
        }
        to.put(self.bets.sum.to_le_bytes());
        to.put(self.bets.filled.to_le_bytes());
        to.put(self.bets.capital.to_le_bytes());
        to.put(self.bets.p_value.to_le_bytes());
        to.put([0; 4]);
        let s = &self.statistics;
        to.put(s.uncertainty.to_bytes());
        let counts = [
            s.inputs,
            s.votes,
            s.alarms,
            s.stales,
            s.nominal_ticks,
            s.fallback_ticks,
            s.rejected,
            s.spikes,
            s.drifts,
            s.rejections,
            self.events.count,
        ];
        for x in counts {
            to.put(x.to_le_bytes());
        }
        for event in &self.events.ring {
            for x in [event.tick, event.why.bits().into(), event.score.to_bits(), event.nearest] {
                to.put(x.to_le_bytes());
            }
        }
        seal(&mut bytes, Saved::Monitor.tag());
        bytes
    }

    /// Continues with a saved monitor of the same configuration.
    ///
    /// # Errors
    /// When the bytes are damaged, are not a saved monitor, or are one of another configuration. Nothing changes then.
    pub fn restore(&mut self, bytes: &[u8; SAVED_BYTES]) -> Result<(), RestoreError> {
        let mut from = Reader::new(bytes, Saved::Monitor)?;
        if from.u32() != Some(fingerprint(&self.config)) {
            return Err(RestoreError::OtherConfig);
        }
        *self = self.read(&mut from).ok_or(RestoreError::Impossible { what: Saved::Monitor })?;
        Ok(())
    }

    /// This monitor with a saved state; `None` if no inputs lead to it.
    fn read(&self, from: &mut Reader<'_>) -> Option<Self> {
        let [state] = from.take()?;
        let state = match state {
            0 => State::Fallback,
            1 => State::Nominal,
            2 => State::Stale,
            _ => return None,
        };
        let [why] = from.take()?;
        let why = Why::from_bits(why)?;
        let (held, started) = (from.bool()?, from.bool()?);
        let (now, in_state, silent) = (from.u32()?, from.u32()?, from.u32()?);
        let [youngest] = from.take()?;
        let drifting = from.bool()?;
        let filled = from.u16()?;
        let mut buckets = [Counts { high: 0, calm: 0, rejected: 0 }; BUCKETS];
        for bucket in &mut buckets {
            bucket.high = from.u16()?;
            bucket.calm = from.u16()?;
            bucket.rejected = from.u16()?;
        }
        let votes = self.votes.restored(buckets, youngest, filled)?;
        let bets = Bets {
            sum: f64::from_bits(from.u64()?),
            filled: from.u32()?,
            capital: from.f32()?,
            p_value: from.f32()?,
            drifting,
        };
        let nothing = from.u32()? == 0;
        let uncertainty = Running::from_bytes(&from.take()?)?;
        let mut count = || from.u64();
        let statistics = Statistics {
            uncertainty,
            inputs: count()?,
            votes: count()?,
            alarms: count()?,
            stales: count()?,
            nominal_ticks: count()?,
            fallback_ticks: count()?,
            rejected: count()?,
            spikes: count()?,
            drifts: count()?,
            rejections: count()?,
        };
        let mut events = Events { count: count()?, ..Events::NONE };
        for event in &mut events.ring {
            *event = Event {
                tick: from.u32()?,
                why: Why::from_bits(u8::try_from(from.u32()?).ok()?)?,
                score: from.f32()?,
                nearest: from.u32()?,
            };
        }
        let block = self.config.drift.block;
        let sound = nothing
            && (state == State::Nominal) == why.is_empty()
            && (bets.filled < block || (block == 0 && bets.filled == 0))
            && bets.sum.is_finite()
            && bets.capital.is_finite()
            && bets.p_value > 0.0
            && bets.p_value <= 1.0
            && events.ring.iter().all(|event| event.score.is_finite());
        let config = self.config;
        let whole = Self {
            config,
            state,
            why,
            held,
            now,
            started,
            in_state,
            silent,
            votes,
            bets,
            statistics,
            events,
        };
        sound.then_some(whole)
    }
}
