//! A configuration that keeps a budget of false alarms an hour on recorded, correlated streams.
//!
//! ```text
//! logs → block: the shortest whose means are not correlated with their neighbours'
//!      → for N of M votes: peaks of the N-th largest of M scores in each block → `enter`
//!      → means of the blocks → table of the drift channel, alarm by Ville's bound
//!      → replay through the monitor → upper bound of alarms an hour ≤ budget, else raise both
//!      → the N of M that finds faults soonest
//! ```
//!
//! Why the bound holds although thresholds are chosen on the log that they are judged by: for one N of M, alarms become
//! fewer as the thresholds rise, and the first that are low enough are taken. Then the rate of peaks above them has the
//! distribution that Garwood's bound for the alarms that were seen assumes (the tolerance bound of an order statistic).
//! The choice among N of M looks at delays, not at alarms. Beyond that, thresholds are set where an exponential tail
//! expects a quarter of the budget (`SHARE`): the bound is then rarely what decides, and a fresh stream has room.

use anyhow::{Context, Result, anyhow, bail, ensure};
use dab_core::monitor::{Config, Drift};
use rayon::prelude::*;

use super::delay::{FaultLog, Found, of_fault, of_shift};
use super::peaks::{block_means, level_at, neighbour_correlation, peaks, quantiles};
use super::replay::count_alarms;
use super::{allowed_count, upper_mean};

/// Share of the budget that each channel aims at.
const SHARE: f64 = 0.25;
/// Seconds and inputs that a block has at least.
const SHORTEST_SECONDS: f64 = 10.0;
const SHORTEST_INPUTS: usize = 32;
/// Correlation of neighbouring blocks that counts as none, beyond what chance gives so many blocks.
const UNCORRELATED: f64 = 0.05;
/// Fewest blocks that a table is made from.
const FEWEST_BLOCKS: usize = 32;
/// Votes and windows that are tried. None is shorter than 16 inputs, so that a sensor that fails every second tick fills a
/// quarter of it for good: one of sixteen alarms as soon as one of one.
const VOTES: [(usize, usize); 9] =
    [(1, 16), (2, 16), (4, 16), (8, 16), (12, 16), (24, 32), (96, 128), (384, 512), (1536, 2048)];
/// Thresholds never lie below this quantile of the scores: a vote means a rare score.
const LOWEST_ENTER: f64 = 0.99;
/// Blocks after which an imagined fault counts as missed.
const PATIENCE: usize = 12;
/// What is wrong with a log that has nothing to go by.
const NO_SCORES: &str = "the log has no finite score: is it the right column?";
/// Imagined faults, in ways from the median to the 99.9 % score.
pub const FAULTS: [f32; 3] = [1.0, 2.0, 4.0];

/// What to tune, and for what.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Scores of normal operation, one a tick; not finite: a rejected input.
    pub logs: &'a [Vec<f32>],
    /// Recorded faults.
    pub faults: &'a [FaultLog],
    /// Tick, budget and confidence.
    pub goal: Goal,
    /// Ticks without an input until the state is stale.
    pub timeout: u32,
}

/// What a monitor must keep; it says how long a recording must be.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// Seconds of a tick.
    pub tick: f64,
    /// False alarms an hour.
    pub budget: f64,
    /// Of the bound.
    pub confidence: f64,
}

impl Goal {
    /// Hours without an alarm that show that the budget is kept.
    fn hours(&self) -> f64 {
        upper_mean(0, self.confidence) / self.budget
    }

    /// The same as rows.
    pub fn rows(&self) -> u64 {
        (self.hours() * 3600.0 / self.tick).ceil() as u64
    }

    /// Refuses a recording of fewer rows.
    pub fn check(&self, rows: u64) -> Result<()> {
        let (hours, needed, budget) = (rows as f64 * self.tick / 3600.0, self.hours(), self.budget);
        if hours < needed {
            let percent = (self.confidence * 1e4).round() / 100.0;
            // Rounded up, so that a log of the hours that are named is long enough.
            let named = (needed * 100.0).ceil() / 100.0;
            bail!(
                "the log has {hours:.3} hours, too few to show a budget of {budget} false alarms an hour with {percent} % \
                 confidence: record at least {named:.2} hours ({} rows) of normal operation, or allow more",
                self.rows()
            );
        }
        Ok(())
    }
}

/// How the answer moves with the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetPoint {
    /// False alarms an hour.
    pub budget: f64,
    /// The threshold that it needs, by the tail of the log.
    pub enter: f32,
    /// Seconds until a fault of each of [`FAULTS`] is found.
    pub seconds: [f64; 3],
}

/// A configuration and what is known of it.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// For the monitor.
    pub config: Config,
    /// Hours of normal operation.
    pub hours: f64,
    /// Alarms in them.
    pub alarms: u64,
    /// Upper bound of the alarms an hour.
    pub upper: f64,
    /// Blocks that the table of the drift channel is made of.
    pub blocks: usize,
    /// Correlation of neighbouring blocks.
    pub correlation: f64,
    /// Whether even the longest blocks were correlated: Ville's bound is then not to be relied on.
    pub correlated: bool,
    /// Median, 90 %, 99 % and 99.9 % score.
    pub quantiles: [f32; 4],
    /// Faults of the sizes [`FAULTS`] that are imagined on the log.
    pub imagined: [Found; 3],
    /// A rise within ten minutes to 90 % of the way from the median to `enter`.
    pub drift: Found,
    /// Ticks after which an imagined fault counts as missed.
    pub limit: usize,
    /// The recorded faults.
    pub faults: Vec<(String, Option<Found>)>,
    /// How the answer moves with the budget.
    pub sweep: Vec<BudgetPoint>,
}

impl Request<'_> {
    fn total(&self) -> usize {
        self.logs.iter().map(Vec::len).sum()
    }

    fn hours(&self) -> f64 {
        self.total() as f64 * self.goal.tick / 3600.0
    }

    /// The shortest block whose means are not correlated, and the correlation.
    fn block(&self) -> (usize, f64, bool) {
        let most = (self.total() / FEWEST_BLOCKS).max(1);
        let shortest = ((SHORTEST_SECONDS / self.goal.tick).ceil() as usize).max(SHORTEST_INPUTS);
        let mut block = shortest.min(most);
        loop {
            let means = block_means(self.logs, block, f32::MAX);
            let correlation = neighbour_correlation(&means);
            let chance = 1.0 / (means.len().max(1) as f64).sqrt();
            if correlation <= UNCORRELATED + chance {
                return (block, correlation, false);
            }
            if block * 2 > most {
                return (block, correlation, true);
            }
            block *= 2;
        }
    }

    /// The configuration of `votes` of `window`, thresholds at `enter`.
    fn config(
        &self,
        votes: usize,
        window: usize,
        enter: f32,
        [median, q90, ..]: [f32; 4],
        block: usize,
    ) -> Config {
        let exit = q90.min(0.5 * (median + enter)).min(enter);
        let mut means = block_means(self.logs, block, enter);
        means.sort_unstable_by(f32::total_cmp);
        let per_hour = 3600.0 / (block as f64 * self.goal.tick);
        let alarm = (per_hour / (SHARE * self.goal.budget)).ln().max(1.0) as f32;
        let half_second = (0.5 / self.goal.tick).ceil();
        Config {
            enter,
            exit,
            enter_votes: votes as u32,
            exit_votes: window.div_ceil(2) as u32,
            window: window as u32,
            reject_votes: 0,
            min_dwell: half_second.max(block as f64 / 4.0).min(1e9) as u32,
            timeout: self.timeout,
            drift: Drift::from_blocks(block as u32, alarm, &means).unwrap_or(Drift::OFF),
        }
    }

    /// The thresholds of `votes` of `window` that keep the budget, and the alarms in the log.
    fn fit(&self, votes: usize, window: usize, quantiles: [f32; 4], block: usize) -> Result<(Config, u64)> {
        let hours = self.hours();
        let peaks = peaks(self.logs, block, votes, window);
        let allowed = allowed_count(self.goal.budget * hours, self.goal.confidence).unwrap_or(0);
        // Only `allowed` pieces lie strictly above the next peak.
        let counted = peaks.get(allowed as usize).copied().unwrap_or(f32::MIN);
        let fitted = level_at(&peaks, hours, SHARE * self.goal.budget);
        let enter = fitted.max(counted).max(quantiles[2]);
        let mut config = self.config(votes, window, enter, quantiles, block);
        let step = (0.1 * (enter - quantiles[0])).max(f32::EPSILON * enter.abs());
        let mut alarms = u64::MAX;
        for _ in 0..40 {
            alarms = count_alarms(config, self.logs).unwrap_or(u64::MAX);
            if alarms <= allowed {
                return Ok((config, alarms));
            }
            config.enter += step;
            config.drift.alarm += std::f32::consts::LN_2;
        }
        bail!(
            "no threshold keeps the budget: even far above every score the log has {alarms} alarms in {hours:.2} hours, from \
             rejected inputs; mend the log or the sensor"
        )
    }

    /// Ticks until faults are found: recorded ones if there are any, otherwise imagined ones.
    fn delays(&self, config: Config, quantiles: [f32; 4], limit: usize) -> Vec<f64> {
        if self.faults.is_empty() {
            return self.imagined(config, quantiles, limit).map(|found| found.ticks as f64).to_vec();
        }
        let found = self.faults.iter().map(|fault| {
            let missed = 2 * fault.scores.len().max(limit);
            of_fault(config, self.before(config), fault).map_or(missed, |found| found.ticks) as f64
        });
        found.collect()
    }

    /// When faults of the sizes [`FAULTS`] are found.
    fn imagined(&self, config: Config, quantiles: [f32; 4], limit: usize) -> [Found; 3] {
        let way = quantiles[3] - quantiles[0];
        FAULTS.map(|size| of_shift(config, self.longest(), size * way, 0, limit))
    }

    /// Normal operation before a fault log.
    fn before(&self, config: Config) -> &[f32] {
        let [dwell, window, block] =
            [config.min_dwell, config.window, config.drift.block].map(|n| n as usize);
        let log = self.longest();
        &log[..log.len().min(dwell + 2 * window + 2 * block + 1)]
    }

    fn longest(&self) -> &[f32] {
        self.logs.iter().max_by_key(|log| log.len()).map_or(&[], |log| log)
    }

    /// Refuses logs that cannot show that a budget is kept.
    fn check(&self) -> Result<()> {
        self.goal.check(self.total() as u64)?;
        let (inputs, rejected) =
            (self.total(), self.logs.iter().flatten().filter(|x| !x.is_finite()).count());
        ensure!(rejected < inputs, NO_SCORES);
        ensure!(
            rejected <= inputs / 4,
            "{rejected} of {inputs} inputs of the log are missing or not finite: normal operation must not have that many"
        );
        Ok(())
    }

    /// The configuration.
    pub fn tune(&self) -> Result<Tuned> {
        self.check()?;
        let quantiles = quantiles(self.logs, [0.5, 0.9, LOWEST_ENTER, 0.999]).context(NO_SCORES)?;
        let (block, correlation, correlated) = self.block();
        let limit = PATIENCE * block;
        let candidates: Vec<(usize, usize)> =
            VOTES.into_iter().filter(|&(_, window)| window == VOTES[0].1 || window <= block / 4).collect();
        let fitted: Vec<Result<(Config, u64, f64)>> = candidates
            .par_iter()
            .map(|&(votes, window)| {
                let (config, alarms) = self.fit(votes, window, quantiles, block)?;
                let delays = self.delays(config, quantiles, limit);
                let cost = delays.iter().map(|ticks| ticks.ln()).sum::<f64>() / delays.len() as f64;
                Ok((config, alarms, cost))
            })
            .collect();
        let mut best: Option<(Config, u64, f64)> = None;
        let mut refused = None;
        for result in fitted {
            match result {
                // Of equals the shorter window: it needs fewer ticks to trust again.
                Ok(found) if best.is_none_or(|b| found.2 < b.2 - 1e-9) => best = Some(found),
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        let (config, alarms, _) = best.ok_or_else(|| refused.unwrap_or_else(|| anyhow!(NO_SCORES)))?;
        let hours = self.hours();
        let ramp = (600.0 / self.goal.tick) as usize;
        let to_ninety = 0.9 * (config.enter - quantiles[0]);
        let faults = self.faults.iter();
        Ok(Tuned {
            config,
            hours,
            alarms,
            upper: upper_mean(alarms, self.goal.confidence) / hours,
            blocks: block_means(self.logs, block, f32::MAX).len(),
            correlation,
            correlated,
            quantiles,
            imagined: self.imagined(config, quantiles, limit),
            drift: of_shift(config, self.longest(), to_ninety, ramp, ramp + limit),
            limit,
            faults: faults
                .map(|fault| (fault.name.clone(), of_fault(config, self.before(config), fault)))
                .collect(),
            sweep: self.sweep(config, quantiles, block, limit),
        })
    }

    /// What other budgets would cost: thresholds by the tail of the log, without the bound.
    fn sweep(&self, chosen: Config, quantiles: [f32; 4], block: usize, limit: usize) -> Vec<BudgetPoint> {
        let (votes, window) = (chosen.enter_votes as usize, chosen.window as usize);
        let peaks = peaks(self.logs, block, votes, window);
        let per_hour = 3600.0 / (block as f64 * self.goal.tick);
        [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
            .map(|times| {
                let budget = times * self.goal.budget;
                let enter = level_at(&peaks, self.hours(), SHARE * budget).max(quantiles[2]);
                let mut config = Config { enter, exit: chosen.exit.min(enter), ..chosen };
                config.drift.alarm = (per_hour / (SHARE * budget)).ln().max(1.0) as f32;
                let found = self.imagined(config, quantiles, limit);
                BudgetPoint { budget, enter, seconds: found.map(|found| found.ticks as f64 * self.goal.tick) }
            })
            .to_vec()
    }
}
