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

use serde::Serialize;

use super::assessed::AMBIGUITY;

/// Share of honest models whose alarms lie in the expected ranges of all rates.
const CENTRAL: f64 = 0.95;

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
        Self {
            channel: channel.to_owned(),
            verdict: verdict.to_owned(),
            nominal: rate,
            actual: share(alarms),
            expected: [share(low), share(high)],
            held_out,
            test,
            kept: alarms <= high,
        }
    }
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

/// Why the p-values of a channel may not hold, as a sentence without its end.
pub fn reason(channel: &str) -> &'static str {
    if channel == AMBIGUITY {
        "new rows are more often torn between two classes than the rows that calibrated: most often the network was trained on \
         those and tells their classes apart too well, or the new rows have other shares of the classes"
    } else {
        "new rows are stranger than the rows that calibrated: most often the network was trained on those"
    }
}

/// A warning with its remedy for each channel whose promise is broken.
pub fn broken(alarms: &[AlarmRate]) -> Vec<String> {
    let broken: Vec<AlarmRate> = alarms.iter().filter(|alarm| !alarm.kept).cloned().collect();
    let channels = broken.chunk_by(|a, b| a.channel == b.channel);
    let warning = |rates: &[AlarmRate]| {
        let first = rates.first()?;
        let channel = &first.channel;
        Some(format!(
            "the p-values of {channel} do not hold for the test rows: {} (honest ones have {} to {} {}); {}; if so, give \
             features of rows that it has not seen: --calibration FILE",
            words(rates),
            percent(first.expected[0]),
            percent(first.expected[1]),
            first.verdict,
            reason(channel)
        ))
    };
    channels.filter_map(warning).collect()
}

/// The central range of the number of alarms among `test` fresh rows.
fn expected(rate: f64, held_out: usize, test: usize, rates: usize) -> [usize; 2] {
    let all = held_out as f64 + 1.0;
    // 0.05 × 100 must give 5, and the f32 nearest to 1/73, times 73, must give 1.
    let a = (rate * all * (1.0 + 1e-6)).floor();
    if a < 1.0 {
        return [0, 0];
    }
    let (b, n) = (all - a, test as f64);
    // ln P(0 alarms), then the ratio of neighbours: no factorial overflows.
    let mut log: f64 = (0..test).map(|i| ((b + i as f64) / (a + b + i as f64)).ln()).sum();
    let (mut below, mut low, tail) = (0.0, 0, (1.0 - CENTRAL) / 2.0 / rates.max(1) as f64);
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
mod tests {
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn the_law_is_that_of_simulated_models() {
        let (held_out, test, rate) = (99, 400, 0.05);
        let [low, high] = expected(rate, held_out, test, 1);
        let mut random = Random::new(1, "alarms");
        let (mut under, mut over) = (0, 0);
        for _ in 0..4000 {
            let mut calibration: Vec<f64> = (0..held_out).map(|_| random.normal()).collect();
            calibration.sort_by(f64::total_cmp);
            // p = (1 + #{held-out ≥ s}) / (m + 1) ≤ 0.05 needs s above the fifth largest of 99.
            let threshold = calibration[held_out - 5];
            let alarms = (0..test).filter(|_| random.normal() > threshold).count();
            under += usize::from(alarms < low);
            over += usize::from(alarms > high);
        }
        // 2.5 % of 4000 are 100, and the range is of whole numbers: each side may hold a little less. ±4 sd is ±40.
        assert!((40..140).contains(&under) && (40..140).contains(&over), "{under} {over} of [{low}, {high}]");
    }

    /// P(k alarms among n) of BetaBinomial(n, a, b), by logarithms of the gamma function.
    fn law(k: usize, n: usize, a: f64, b: f64) -> f64 {
        let beta = |x: f64, y: f64| libm::lgamma(x) + libm::lgamma(y) - libm::lgamma(x + y);
        let (k, n) = (k as f64, n as f64);
        let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        (choose + beta(k + a, n - k + b) - beta(a, b)).exp()
    }

    #[test]
    fn the_range_is_that_of_the_beta_binomial_law() {
        for (rate, held_out, test, rates) in [
            (0.05, 99, 400, 1),
            (0.01, 199, 300, 3),
            (0.05, 19, 7, 2),
            (0.5, 3, 1, 1),
            (0.05, 999, 20, 2),
            (0.2, 99, 50, 0),
        ] {
            let all = held_out as f64 + 1.0;
            let a = (rate * all + 1e-9).floor();
            let tail = 0.025 / f64::from(rates.max(1));
            let at_most = |k: usize| (0..=k).map(|k| law(k, test, a, all - a)).sum::<f64>();
            // Fewer than `low` alarms are rarer than the tail, and so are more than `high`.
            let low = (0..=test).rev().find(|&k| k == 0 || at_most(k - 1) < tail).unwrap();
            let high = (0..=test).find(|&k| at_most(k) >= 1.0 - tail).unwrap_or(test);
            let found = expected(rate, held_out, test, rates as usize);
            assert_eq!(found, [low, high], "{rate} of {held_out}, {test}");
        }
        assert_eq!(expected(0.05, 18, 100, 1), [0, 0], "one row more, and an alarm is possible");
        assert_ne!(expected(0.05, 19, 100, 1), [0, 0]);
        assert_eq!(expected(0.05, 99, 0, 1), [0, 0]);
    }

    #[test]
    fn alarms_are_told_in_percent_and_each_channel_is_warned_once() {
        let p_values = vec![0.01; 100];
        let alarms = [("u", "doubtful", 0.05), ("u", "unfamiliar", 0.0125), (AMBIGUITY, "ambiguous", 0.05)]
            .map(|(channel, verdict, rate)| AlarmRate::new((channel, verdict), rate, &p_values, 199, 3));
        assert_eq!(words(&alarms[..2]), "doubtful 100 % at 5 %, unfamiliar 100 % at 1.3 %");
        let share = AlarmRate::new(("u", "doubtful"), 0.05, &[0.01, 1.0, 0.5], 199, 1);
        assert_eq!(words(std::slice::from_ref(&share)), "doubtful 33.3 % at 5 %");
        assert_eq!((share.test, share.held_out, share.nominal, share.expected[1]), (3, 199, 0.05, 1.0 / 3.0));
        assert_eq!((broken(&alarms[..2]).len(), broken(&alarms[1..]).len()), (1, 2));
        assert_eq!(AlarmRate::new(("u", "doubtful"), 0.05, &[], 199, 1).actual, 0.0);
    }

    #[test]
    fn too_many_alarms_are_seen() {
        let fresh: Vec<f32> = (1..=1000).map(|i| i as f32 / 1000.0).collect();
        let honest = AlarmRate::new(("uncertainty", "doubtful"), 0.05, &fresh, 999, 2);
        assert!(honest.kept && honest.actual == 0.05, "{honest:?}");
        assert!(honest.expected[0] > 0.02 && honest.expected[1] < 0.08, "{honest:?}");
        let strange: Vec<f32> = fresh.iter().map(|p| p * 0.25).collect();
        let broken = AlarmRate::new(("uncertainty", "doubtful"), 0.05, &strange, 999, 2);
        assert!(!broken.kept && broken.actual > 0.19, "{broken:?}");
        assert_eq!(expected(0.01, 50, 100, 1), [0, 0], "too few held-out rows for any alarm");
        let least = AlarmRate::new(("uncertainty", "unfamiliar"), 1.0 / 73.0, &fresh, 72, 2);
        assert!(least.kept && least.expected[1] > 0.03, "the least rate of 72 rows is reached: {least:?}");
    }
    #[test]
    fn honest_models_are_warned_one_time_in_twenty_at_all_rates_together() {
        let (held_out, test) = (199, 300);
        let mut random = Random::new(4, "alarms/together");
        let mut warned = 0;
        const MODELS: usize = 2000;
        let channels = [("unfamiliarity", "doubtful", 0.05), ("unfamiliarity", "unfamiliar", 0.01)];
        for _ in 0..MODELS {
            // Two independent channels; the first is judged at two rates.
            let mut p_values = || -> Vec<f32> {
                let known: Vec<f64> = (0..held_out).map(|_| random.normal()).collect();
                let p = |score: f64| {
                    (1 + known.iter().filter(|&&k| k >= score).count()) as f32 / (held_out + 1) as f32
                };
                (0..test).map(|_| p(random.normal())).collect()
            };
            let (strange, torn) = (p_values(), p_values());
            let mut alarms = channels
                .map(|(channel, verdict, rate)| {
                    AlarmRate::new((channel, verdict), rate, &strange, held_out, 3)
                })
                .to_vec();
            alarms.push(AlarmRate::new((AMBIGUITY, "ambiguous"), 0.05, &torn, held_out, 3));
            let odd =
                |alarm: &AlarmRate| alarm.actual < alarm.expected[0] || alarm.actual > alarm.expected[1];
            warned += usize::from(alarms.iter().any(odd));
        }
        // 5 % of 2000 are 100, plus 3 sd. Without the correction it is about a tenth.
        assert!(warned <= 130, "{warned} of {MODELS}");
    }

    #[test]
    fn a_warning_names_the_channel_and_its_own_reason() {
        let many = vec![0.01; 100];
        let kept = AlarmRate::new(("unfamiliarity", "doubtful"), 0.05, &[1.0; 100], 199, 3);
        let torn = AlarmRate::new((AMBIGUITY, "ambiguous"), 0.05, &many, 199, 3);
        let said = broken(&[kept, torn]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("the p-values of ambiguity do not hold"), "{said:?}");
        assert!(said[0].contains("torn between two classes") && !said[0].contains("stranger"), "{said:?}");
        let strange = AlarmRate::new(("unfamiliarity", "doubtful"), 0.05, &many, 199, 3);
        let said = broken(&[strange]).join("");
        assert!(
            said.contains("of unfamiliarity") && said.contains("stranger than the rows that calibrated"),
            "{said}"
        );
    }
}
