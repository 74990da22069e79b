//! Whether the p-values keep their promise: false alarms among test rows at the rates of the model file.
//!
//! p-values of test rows + a rate → [`AlarmRate`] → metrics.json, the console, the report.
//!
//! ```text
//! m held-out rows, rate r, a = ⌊r (m + 1)⌋:   alarms among n fresh rows ~ BetaBinomial(n, a, m + 1 − a)
//! ```
//!
//! Two or three rates are looked at together. Each range is so wide that all of them hold for 95 % of honest models
//! (Bonferroni): 1 − 0.05 / rates for each.
//!
//! That law is exact for fresh rows of the same kind, whatever the score, and wider than a binomial one: few held-out rows
//! place the threshold roughly. Ties and the compressed table only make alarms rarer. So more alarms than the law allows
//! mean that the test rows are not of the held-out rows' kind; the usual cause is a network that was trained on them.
//!
//! A rate looks at one point of the p-values. With few held-out rows a single outlier among them sets the threshold of 5 %, and
//! no fresh row may reach it although all are stranger than the other held-out ones. So the mean p-value counts as well:
//!
//! ```text
//! p̄ of n fresh rows:   mean ½,   variance (n + m + 1) / 12 n m      as for the Mann–Whitney test
//! ```

use serde::Serialize;

use super::assessed::AMBIGUITY;
use crate::support::text::counted;

/// Share of honest models whose alarms lie in the expected ranges of all rates.
const CENTRAL: f64 = 0.95;
/// Share of honest models whose alarms are rarer than what is told on the console: they do little harm, and tied scores make
/// them rarer.
const RARE: f64 = 1e-3;

/// Mean p-values below this are told, if chance does not explain them: what is above does little harm.
const STRANGER: f64 = 0.4;
/// Standard deviations that chance explains: one honest model in a thousand has more on this side.
const CHANCE: f64 = 3.1;

/// False alarms of one channel at one rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlarmRate {
    /// Whose alarms: `unfamiliarity` (or `uncertainty`, in a model without channels), `ambiguity`.
    pub channel: String,
    /// What an alarm at this rate is called.
    pub verdict: String,
    /// The rate that was promised.
    pub nominal: f64,
    /// The share of test rows that were alarmed.
    pub actual: f64,
    /// Where honest models have `actual`, given as many held-out and test rows: 95 % of them at all rates that are looked at
    /// together.
    pub expected: [f64; 2],
    /// Held-out rows behind the calibration table.
    pub held_out: usize,
    /// Test rows.
    pub test: usize,
    /// Whether `actual` is not above the expected range.
    pub kept: bool,
    /// Whether the test rows alone say that the rate is above the promised one. It may be kept all the same: few held-out rows
    /// place the threshold so roughly that this may be chance.
    pub suspect: bool,
    /// Whether alarms are so rare that less than one honest model in a thousand has so few.
    pub rare: bool,
    /// Mean p-value of the test rows; about 0.5 if they are like the rows that calibrated.
    pub mean_p: f64,
    /// Whether the test rows as a whole are clearly stranger than the rows that calibrated, whatever happens at this rate.
    pub stranger: bool,
}

impl AlarmRate {
    /// Counts alarms: p-values of test rows that are at most `rate`, one of `rates` that are looked at together.
    pub fn new(
        (channel, verdict): (&str, &str),
        rate: f32,
        p_values: &[f32],
        held_out: usize,
        rates: usize,
    ) -> Self {
        let test = p_values.len();
        let alarms = p_values.iter().filter(|&&p| p <= rate).count();
        // The decimal that the rate was written as: 0.05 and not 0.0500000007.
        let rate = rate.to_string().parse().unwrap_or(f64::from(rate));
        let share = |count: usize| count as f64 / test.max(1) as f64;
        let [low, high] = expected(rate, held_out, test, rates);
        let mean_p = match p_values {
            [] => 0.5,
            p_values => p_values.iter().map(|&p| f64::from(p)).sum::<f64>() / test as f64,
        };
        let (n, m) = (test.max(1) as f64, held_out.max(1) as f64);
        let chance = CHANCE * ((n + m + 1.0) / (12.0 * n * m)).sqrt();
        Self {
            channel: channel.to_owned(),
            verdict: verdict.to_owned(),
            nominal: rate,
            actual: share(alarms),
            expected: [share(low), share(high)],
            held_out,
            test,
            kept: alarms <= high,
            suspect: at_least(alarms, test, rate) < tail(rates),
            rare: alarms < central(rate, held_out, test, RARE)[0],
            mean_p,
            stranger: mean_p < STRANGER.min(0.5 - chance),
        }
    }
}

impl AlarmRate {
    /// The largest rate up to the promised one that the held-out rows reach: p-values are whole numbers of 1 / (m + 1).
    pub fn reached(&self) -> f64 {
        let all = self.held_out as f64 + 1.0;
        match below(self.nominal, all) / all {
            reached if 1.5 * reached < self.nominal => reached,
            _ => self.nominal,
        }
    }

    /// Whether that is clearly less.
    pub fn is_coarse(&self) -> bool {
        self.reached() < self.nominal
    }
}

/// The share of test rows that raise an alarm where that is most of them: they are unlike the training rows, and say nothing about
/// predictions for rows that are like them.
pub fn elsewhere(alarms: &[AlarmRate]) -> Option<f64> {
    alarms.first().map(|strangers| strangers.actual).filter(|&share| share > 0.5)
}

/// How many of `all` are a share of `rate` at most.
fn below(rate: f64, all: f64) -> f64 {
    // 0.05 × 100 must give 5, and the f32 nearest to 1/73, times 73, must give 1.
    (rate * all * (1.0 + 1e-6)).floor()
}

/// What lies beyond a range on either side, where so many rates are looked at together.
fn tail(rates: usize) -> f64 {
    (1.0 - CENTRAL) / 2.0 / rates.max(1) as f64
}

/// P(`alarms` or more among `test` rows), each with probability `rate`.
fn at_least(alarms: usize, test: usize, rate: f64) -> f64 {
    let n = test as f64;
    // ln P(0 alarms), then the ratio of neighbours, as in [`expected`].
    let (mut log, mut below) = (n * (1.0 - rate).ln(), 0.0);
    for k in 0..alarms {
        below += log.exp();
        let k = k as f64;
        log += ((n - k) / (k + 1.0) * rate / (1.0 - rate)).ln();
    }
    1.0 - below
}

/// A share as people write it.
fn percent(share: f64) -> String {
    format!("{} %", (1000.0 * share).round() / 10.0)
}

/// What happened beside what was promised, for people.
pub fn words(alarms: &[AlarmRate]) -> String {
    let one = |alarm: &AlarmRate| {
        format!("{} {} at {}", alarm.verdict, percent(alarm.actual), percent(alarm.nominal))
    };
    alarms.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Why the p-values of a channel may not hold, as a sentence without its end. Rows may be features of a network or not: dab
/// cannot know.
pub fn reason(channel: &str) -> &'static str {
    if channel == AMBIGUITY {
        "new rows are more often torn between two classes than the rows that calibrated: if these are features of a network, it \
         was most likely trained on them and tells their classes apart too well; if not, the new rows have other shares of the \
         classes, or it is chance, as in one honest model of twenty at most"
    } else {
        "new rows are stranger than the rows that calibrated: if these are features of a network, it was most likely trained on \
         them; if not, the new rows come from elsewhere or from another time, or it is chance, as in one honest model of twenty at \
         most"
    }
}

/// What helps against [`reason`], as a sentence without its end. `calibrated` says that --calibration was given.
pub const fn remedy(calibrated: bool) -> &'static str {
    if calibrated {
        "the rows of --calibration must be of the kind of the test rows, and ones that no network was trained on"
    } else {
        "rows that no network was trained on give honest p-values: --calibration FILE"
    }
}

/// What helps where rows that calibrate are too few to tell chance from a fault.
pub const fn more(calibrated: bool) -> &'static str {
    if calibrated {
        "give more rows with --calibration"
    } else {
        "give more (--calibration FILE, rows that your network has not seen)"
    }
}

/// What a user should know about the alarms of each channel, with its remedy: a promise that is broken, one that may be, and
/// alarms that are too rare.
pub fn warnings(alarms: &[AlarmRate], calibrated: bool) -> Vec<String> {
    let channels = alarms.chunk_by(|a, b| a.channel == b.channel);
    channels.filter_map(|rates| warning(rates, calibrated)).collect()
}

/// The most important of these about one channel.
fn warning(rates: &[AlarmRate], calibrated: bool) -> Option<String> {
    let those =
        |of: fn(&AlarmRate) -> bool| rates.iter().filter(|rate| of(rate)).cloned().collect::<Vec<_>>();
    let [broken, suspect, rare] =
        [those(|rate| !rate.kept), those(|rate| rate.suspect), those(|rate| rate.rare)];
    let range = |rate: &AlarmRate| {
        format!(
            "(honest ones have {} to {} {})",
            percent(rate.expected[0]),
            percent(rate.expected[1]),
            rate.verdict
        )
    };
    if let Some(first) = broken.first() {
        let channel = &first.channel;
        return Some(format!(
            "the p-values of {channel} do not hold for the test rows: {} {}; {}; {}",
            words(&broken),
            range(first),
            reason(channel),
            remedy(calibrated)
        ));
    }
    if let Some(first) = suspect.first() {
        return Some(format!(
            "{} of {} are called {} at {}: {} too few to tell chance from a fault; {}",
            percent(first.actual),
            counted(first.test, "test row"),
            first.verdict,
            percent(first.nominal),
            too_few(first.held_out),
            more(calibrated)
        ));
    }
    if let Some(first) = rates.iter().find(|rate| rate.stranger) {
        return Some(format!("{}; {}; {}", as_a_whole(first), reason(&first.channel), remedy(calibrated)));
    }
    let first = rare.first()?;
    let (how, missed) = match first.channel == AMBIGUITY {
        true => ("more often torn between two classes", "torn inputs"),
        false => ("stranger", "strangers"),
    };
    Some(format!(
        "alarms of {} are rarer than promised: {} {}; the rows that calibrated are {how} than the test rows, or many scores are \
         equal, so {missed} are missed; {}",
        first.channel,
        words(&rare),
        range(first),
        match calibrated {
            true => "are the rows of --calibration of the kind that the model is for?",
            false => "do the held-out rows hold broken or foreign ones?",
        }
    ))
}

/// What is said of p-values that are too small as a whole, as a sentence without its end.
pub fn as_a_whole(rate: &AlarmRate) -> String {
    format!(
        "the p-values of {} do not hold for the test rows as a whole: their mean is {:.2}, and rows like those that calibrated have \
         about 0.5",
        rate.channel, rate.mean_p
    )
}

/// `118 rows that calibrate are`, for a sentence that goes on.
pub fn too_few(rows: usize) -> String {
    let verbs = if rows == 1 { "calibrates is" } else { "calibrate are" };
    format!("{} that {verbs}", counted(rows, "row"))
}

/// The range of the number of alarms among `test` fresh rows, of `rates` that are looked at together.
fn expected(rate: f64, held_out: usize, test: usize, rates: usize) -> [usize; 2] {
    central(rate, held_out, test, tail(rates))
}

/// The range of the number of alarms that has `tail` on either side.
fn central(rate: f64, held_out: usize, test: usize, tail: f64) -> [usize; 2] {
    let all = held_out as f64 + 1.0;
    let a = below(rate, all);
    if a < 1.0 {
        return [0, 0];
    }
    let (b, n) = (all - a, test as f64);
    // ln P(0 alarms), then the ratio of neighbours: no factorial overflows.
    let mut log: f64 = (0..test).map(|i| ((b + i as f64) / (a + b + i as f64)).ln()).sum();
    let (mut below, mut low) = (0.0, 0);
    for k in 0..=test {
        if below < tail {
            low = k;
        }
        below += log.exp();
        if below >= 1.0 - tail {
            return [low, k];
        }
        let k = k as f64;
        log += ((n - k) / (k + 1.0) * (k + a) / (n - k - 1.0 + b)).ln();
    }
    [low, test]
}

#[cfg(test)]
#[path = "alarms_tests.rs"]
mod tests;
