//! A stream through a monitor, in constant memory: counts, the first alarms, and a timeline for the eye.

use dab_core::monitor::{Config, ConfigError, Monitor, State, Why};

/// Pieces of a timeline, at most.
const PIECES: usize = 2048;
/// Alarms that are told one by one.
const TOLD: usize = 1000;

/// A piece of a timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Smallest score; in a piece without a score it lies above `high`.
    pub low: f32,
    /// Largest score.
    pub high: f32,
    /// Ticks that were not nominal.
    pub distrusted: u32,
    /// Reasons in it.
    pub why: u8,
}

impl Piece {
    const EMPTY: Self = Self { low: f32::INFINITY, high: f32::NEG_INFINITY, distrusted: 0, why: 0 };

    fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            distrusted: self.distrusted + other.distrusted,
            why: self.why | other.why,
        }
    }
}

/// What a stream looks like from afar: pieces of equal length, whose number is bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// The pieces, the first one first.
    pub pieces: Vec<Piece>,
    /// Ticks in each but the last.
    pub ticks: u64,
    filled: u64,
}

impl Timeline {
    fn new() -> Self {
        Self { pieces: Vec::with_capacity(PIECES), ticks: 1, filled: 1 }
    }

    fn push(&mut self, piece: Piece) {
        if self.filled >= self.ticks {
            if self.pieces.len() == PIECES {
                self.pieces = self.pieces.chunks(2).map(|two| two[0].join(two[1])).collect();
                self.ticks *= 2;
            }
            self.pieces.push(Piece::EMPTY);
            self.filled = 0;
        }
        self.filled += 1;
        if let Some(last) = self.pieces.last_mut() {
            *last = last.join(piece);
        }
    }
}

/// An alarm of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alarm {
    /// The tick of its stream.
    pub tick: u64,
    /// Its reasons.
    pub why: Why,
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    monitor: Monitor,
    tick: u64,
    /// Ticks in nominal, fallback, stale.
    pub states: [u64; 3],
    /// Alarms so far.
    pub alarms: u64,
    /// Alarms by reason: spike, drift, rejected.
    pub by_reason: [u64; 3],
    /// Inputs that could not be assessed.
    pub rejected: u64,
    /// The first alarms.
    pub told: Vec<Alarm>,
    /// The stream from afar.
    pub timeline: Timeline,
}

impl Replay {
    /// A replay that has seen nothing.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Ok(Self {
            monitor: Monitor::new(config)?,
            tick: 0,
            states: [0; 3],
            alarms: 0,
            by_reason: [0; 3],
            rejected: 0,
            told: Vec::new(),
            timeline: Timeline::new(),
        })
    }

    /// Another stream begins: the monitor is as new, the counts go on.
    pub fn next_stream(&mut self) {
        self.monitor.reset();
        self.tick = 0;
    }

    /// The score of the next tick; one that is not finite is a rejected input.
    pub fn push(&mut self, score: f32) {
        let before = self.monitor.statistics().alarms;
        let state = self.monitor.observe(self.tick as u32, score);
        let place = match state {
            State::Nominal => 0,
            State::Fallback => 1,
            State::Stale => 2,
        };
        self.states[place] += 1;
        self.rejected += u64::from(!score.is_finite());
        let why = self.monitor.why();
        if self.monitor.statistics().alarms > before {
            self.alarms += 1;
            for (count, reason) in self.by_reason.iter_mut().zip([Why::SPIKE, Why::DRIFT, Why::REJECTED]) {
                *count += u64::from(why.contains(reason));
            }
            if self.told.len() < TOLD {
                self.told.push(Alarm { tick: self.tick, why });
            }
        }
        let finite = score.is_finite();
        self.timeline.push(Piece {
            low: if finite { score } else { f32::INFINITY },
            high: if finite { score } else { f32::NEG_INFINITY },
            distrusted: u32::from(state != State::Nominal),
            why: why.bits(),
        });
        self.tick += 1;
    }

    /// Ticks so far.
    pub fn ticks(&self) -> u64 {
        self.states.iter().sum()
    }
}

/// Alarms of a configuration on logs, each with a monitor of its own.
pub fn count_alarms(config: Config, logs: &[Vec<f32>]) -> Result<u64, ConfigError> {
    let mut alarms = 0;
    for log in logs {
        let mut monitor = Monitor::new(config)?;
        for (now, &score) in (0u32..).zip(log) {
            let _ = monitor.observe(now, score);
        }
        alarms += monitor.statistics().alarms;
    }
    Ok(alarms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_counts_and_its_timeline_stays_small() {
        let mut replay = Replay::new(Config::plain(1.0)).unwrap();
        let n = 100_000u64;
        for i in 0..n {
            replay.push(if i % 1000 == 999 { 2.0 } else { 0.5 });
        }
        replay.next_stream();
        replay.push(f32::NAN);
        assert_eq!((replay.ticks(), replay.alarms, replay.rejected), (n + 1, 100, 1));
        assert_eq!(replay.by_reason, [100, 0, 0]);
        assert_eq!(replay.told[0], Alarm { tick: 999, why: Why::SPIKE });
        assert!(replay.timeline.pieces.len() <= PIECES && replay.timeline.ticks == 64);
        let distrusted: u32 = replay.timeline.pieces.iter().map(|p| p.distrusted).sum();
        assert_eq!(u64::from(distrusted), replay.states[1]);
    }
}
