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

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::artifact::crc::crc32c;
    use crate::monitor::Drift;

    /// Where the bytes of a saved monitor begin.
    const STATE: usize = 12;
    const WHY: usize = 13;
    const YOUNGEST: usize = 28;
    const FILLED: usize = 30;
    const BUCKET: usize = 32;
    const SUM: usize = 224;
    const BLOCK: usize = 232;
    const CAPITAL: usize = 236;
    const P_VALUE: usize = 240;
    const NOTHING: usize = 244;
    const EVENT_WHY: usize = 372;
    const EVENT_SCORE: usize = 376;

    /// Where bytes are others, and which.
    type Changes<'a> = &'a [(usize, &'a [u8])];

    /// What becomes of a saved monitor when numbers at some places are others, and the checksum fits.
    fn restored(config: Config, changes: Changes<'_>) -> Result<Monitor, RestoreError> {
        let mut monitor = Monitor::new(config).unwrap();
        let mut bytes = monitor.save();
        for (at, new) in changes {
            bytes[*at..*at + new.len()].copy_from_slice(new);
        }
        let crc = crc32c(&bytes[8..]).to_le_bytes();
        bytes[4..8].copy_from_slice(&crc);
        monitor.restore(&bytes).map(|()| monitor)
    }

    #[test]
    fn each_number_of_a_saved_monitor_has_a_last_value_that_is_taken() {
        // Three buckets of two inputs; blocks of four.
        let drift = Drift::from_blocks(4, 2.0, &[0.5, 1.0, 1.5]).unwrap();
        let off = Config { enter_votes: 1, exit_votes: 1, window: 3, ..Config::plain(1.0) };
        let config = Config { drift, ..off };
        let wide = Config { window: 33 * 2 - 3, ..config };
        let bits = |x: f32| x.to_le_bytes();
        let above = 1.0 + f32::EPSILON;
        let taken: [(Config, Changes<'_>); 14] = [
            (config, &[]),
            (config, &[(STATE, &[0])]),
            (config, &[(STATE, &[1]), (WHY, &[0])]),
            (config, &[(WHY, &[31])]),
            (config, &[(YOUNGEST, &[2])]),
            (config, &[(FILLED, &[1]), (BUCKET, &[1, 0, 1, 0, 1, 0])]),
            (config, &[(YOUNGEST, &[2]), (BUCKET, &[1, 0, 1, 0, 1, 0]), (BUCKET + 6, &[1, 0, 1, 0, 1, 0])]),
            (wide, &[(YOUNGEST, &[31]), (FILLED, &[2]), (BUCKET, &[2, 0, 2, 0, 2, 0])]),
            (config, &[(BLOCK, &[3])]),
            (config, &[(SUM, &f64::MAX.to_le_bytes())]),
            (config, &[(CAPITAL, &bits(-1e6))]),
            (config, &[(P_VALUE, &bits(1.0))]),
            (config, &[(P_VALUE, &bits(f32::MIN_POSITIVE))]),
            (config, &[(EVENT_WHY, &[31]), (EVENT_SCORE, &bits(f32::MAX))]),
        ];
        for (at, (config, changes)) in taken.into_iter().enumerate() {
            assert!(restored(config, changes).is_ok(), "{at}");
        }
        let refused: [(Config, Changes<'_>); 26] = [
            (config, &[(STATE, &[3])]),
            (config, &[(STATE, &[1])]),
            (config, &[(STATE, &[0]), (WHY, &[0])]),
            (config, &[(WHY, &[32])]),
            (config, &[(YOUNGEST, &[3])]),
            (config, &[(FILLED, &[2])]),
            (config, &[(BUCKET, &[1])]),
            (config, &[(BUCKET + 2, &[1])]),
            (config, &[(BUCKET + 4, &[1])]),
            (config, &[(BUCKET + 6, &[2])]),
            (config, &[(BUCKET + 8, &[2])]),
            (config, &[(BUCKET + 10, &[2])]),
            (config, &[(BUCKET + 18, &[1])]),
            (config, &[(BUCKET + 20, &[1])]),
            (config, &[(BUCKET + 22, &[1])]),
            (wide, &[(YOUNGEST, &[32])]),
            (wide, &[(FILLED, &[3])]),
            (config, &[(BLOCK, &[4])]),
            (off, &[(BLOCK, &[1])]),
            (config, &[(SUM, &f64::INFINITY.to_le_bytes())]),
            (config, &[(CAPITAL, &bits(f32::INFINITY))]),
            (config, &[(P_VALUE, &bits(0.0))]),
            (config, &[(P_VALUE, &bits(above))]),
            (config, &[(NOTHING, &[1])]),
            (config, &[(EVENT_WHY, &[32])]),
            (config, &[(EVENT_SCORE, &bits(f32::NAN))]),
        ];
        for (at, (config, changes)) in refused.into_iter().enumerate() {
            assert_eq!(
                restored(config, changes),
                Err(RestoreError::Impossible { what: Saved::Monitor }),
                "{at}"
            );
        }
        // The channel that is off has no block that is being filled.
        assert!(restored(off, &[]).is_ok());
    }

    #[test]
    fn restored_votes_count_as_before() {
        let config = Config { enter_votes: 3, window: 3, ..Config::plain(1.0) };
        // Two inputs were high, calm and rejected each, as many as there are places.
        let full: &[u8] = &[1, 0, 1, 0, 1, 0];
        let found = restored(config, &[(YOUNGEST, &[1]), (FILLED, &[1]), (BUCKET, full), (BUCKET + 6, full)]);
        let sums = found.unwrap().votes.sums();
        assert_eq!((sums.high, sums.calm, sums.rejected), (2, 2, 2));
    }

    #[test]
    fn a_monitor_of_any_other_setting_is_another_monitor() {
        let drift = Drift::from_blocks(4, 2.0, &[0.5, 1.0, 1.5]).unwrap();
        let config =
            Config { enter_votes: 2, exit_votes: 2, window: 9, timeout: 5, drift, ..Config::plain(1.0) };
        let saved = Monitor::new(config).unwrap().save();
        let mut levels = drift.levels;
        levels[6] = 1.75;
        let mut p_values = drift.p_values;
        p_values[0] = 1.0;
        let others = [
            Config { enter: 1.5, ..config },
            Config { exit: 0.5, ..config },
            Config { enter_votes: 3, ..config },
            Config { exit_votes: 3, ..config },
            Config { window: 8, ..config },
            Config { reject_votes: 3, ..config },
            Config { min_dwell: 3, ..config },
            Config { timeout: 6, ..config },
            Config { drift: Drift { block: 5, ..drift }, ..config },
            Config { drift: Drift { alarm: 2.5, ..drift }, ..config },
            Config { drift: Drift { restart: false, ..drift }, ..config },
            Config { drift: Drift { levels, ..drift }, ..config },
            Config { drift: Drift { p_values, ..drift }, ..config },
        ];
        for other in others {
            assert_eq!(
                Monitor::new(other).unwrap().restore(&saved),
                Err(RestoreError::OtherConfig),
                "{other:?}"
            );
        }
    }
}
