//! Who does a job best: every method's figures for one set of strangers, or for the model's errors.
//!
//! per-seed `ScoreReport`s of each method → one [`Contest`] per job, best method first.
//!
//! ```text
//! ties: the 95 % interval of the difference of two AUROCs contains 0
//! five seeds or more: of the paired differences;   fewer: DeLong's, of two scores on the same rows
//! errors of classifiers that are wrong about different rows: from the standard errors of Hanley and McNeil (1982)
//! ```

use anyhow::{Context, Result, ensure};

use crate::measure::metrics::{Detection, Positive, ScoreReport, Summary};

/// 95 % of a normal.
const Z: f64 = 1.96;
/// From this many seeds on, their spread says more than a formula.
const SEEDS: usize = 5;

/// What a method is to the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The model's score for strangers.
    Unfamiliarity,
    /// The model's score for errors.
    Ambiguity,
    /// A part of the model's score.
    Part,
    /// A baseline.
    Rival,
}

/// One method over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    pub name: String,
    /// What it is to the report.
    pub role: Role,
    /// One report per seed, all on the same sets.
    pub seeds: Vec<ScoreReport>,
}

impl Method {
    /// Groups per-seed report lists (`runs[seed][method]`) into baselines.
    pub fn baselines(runs: &[Vec<ScoreReport>]) -> Vec<Self> {
        let methods = runs.iter().map(Vec::len).min().unwrap_or(0);
        (0..methods)
            .map(|m| Self {
                name: runs[0][m].name.clone(),
                role: Role::Rival,
                seeds: runs.iter().map(|run| run[m].clone()).collect(),
            })
            .collect()
    }
}

/// How the model's score does beside a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Wins,
    /// The difference may be chance.
    Ties,
    Loses,
}

/// One method's figures for the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub name: String,
    pub role: Role,
    /// Whether this is the model's score for this job.
    pub main: bool,
    /// Area under the ROC curve.
    pub auroc: Summary,
    /// False alarms at 95 % found; of the errors, the area under the risk–coverage curve.
    pub second: Option<Summary>,
    /// How the model's score does beside a rival.
    pub outcome: Option<Outcome>,
    /// 95 % interval of a rival's AUROC less the model's.
    pub gap: Option<[f64; 2]>,
}

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// The set of strangers, or "errors".
    pub name: String,
    /// What is to be found.
    pub job: Positive,
    /// How many there are to be found, and among how many others (of the first seed).
    pub counts: (usize, usize),
    /// Methods, the best first.
    pub entries: Vec<Entry>,
}

impl Contest {
    /// The model's score for this job.
    pub fn main(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.main)
    }

    pub fn best_rival(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.role == Role::Rival)
    }

    /// Name of the column beside AUROC, and what it means.
    pub const fn second(&self) -> (&'static str, &'static str) {
        match self.job {
            Positive::OutOfDistribution => ("FPR95", "false alarms when 95 % are found"),
            Positive::Misclassified => ("AURC", "error rate, averaged over how many rows are answered"),
        }
    }
}

/// All jobs: each set of strangers, then the errors where there are classes.
pub fn contests(methods: &[Method]) -> Result<Vec<Contest>> {
    let first = methods.first().and_then(|m| m.seeds.first()).context("no method to compare")?;
    let sets = |report: &ScoreReport| report.ood.iter().map(|o| o.0.clone()).collect::<Vec<_>>();
    for method in methods {
        let same = method.seeds.iter().all(|report| sets(report) == sets(first));
        ensure!(same, "{} was measured on other sets than {}", method.name, methods[0].name);
    }
    let mut list = Vec::new();
    for (set, (name, _)) in first.ood.iter().enumerate() {
        list.extend(contest(name, methods, Role::Unfamiliarity, |report| {
            let found = report.ood.get(set).map(|o| &o.1)?;
            Some((found, Some(found.fpr95)))
        }));
    }
    let asked = methods.iter().any(|method| method.role == Role::Ambiguity);
    let role = if asked { Role::Ambiguity } else { Role::Unfamiliarity };
    list.extend(contest("the model's own errors", methods, role, |report| {
        Some((report.misclassification.as_ref()?, report.selective.as_ref().map(|s| s.aurc)))
    }));
    Ok(list)
}

type Pick<'a> = Option<(&'a Detection, Option<f64>)>;

/// One job; `None` where no method was measured at it.
fn contest<'a>(
    name: &str,
    methods: &'a [Method],
    main: Role,
    pick: impl Fn(&'a ScoreReport) -> Pick<'a>,
) -> Option<Contest> {
    let own: Vec<&Detection> = methods
        .iter()
        .find(|m| m.role == main)
        .map(|m| m.seeds.iter().filter_map(|seed| Some(pick(seed)?.0)).collect())
        .unwrap_or_default();
    let mut entries = Vec::new();
    for method in methods {
        let found: Vec<_> = method.seeds.iter().filter_map(&pick).collect();
        let detections: Vec<&Detection> = found.iter().map(|f| f.0).collect();
        let Some(auroc) = Summary::of(&detections.iter().map(|d| d.auroc).collect::<Vec<_>>()) else {
            continue;
        };
        let gap = (method.role == Role::Rival).then(|| gap(&own, &detections)).flatten();
        entries.push(Entry {
            name: method.name.clone(),
            role: method.role,
            main: method.role == main,
            auroc,
            second: Summary::of(&found.iter().filter_map(|f| f.1).collect::<Vec<_>>()),
            outcome: gap.map(outcome),
            gap,
        });
    }
    entries.sort_by(|a, b| b.auroc.mean.total_cmp(&a.auroc.mean));
    let first = *own.first()?;
    let counts = (first.positives, first.negatives);
    Some(Contest { name: name.to_owned(), job: first.positive, counts, entries })
}

/// The 95 % interval of the AUROC of `rival` less that of `own`, seed by seed.
fn gap(own: &[&Detection], rival: &[&Detection]) -> Option<[f64; 2]> {
    let differences: Vec<f64> = rival.iter().zip(own).map(|(rival, own)| rival.auroc - own.auroc).collect();
    let difference = Summary::of(&differences)?;
    let half = if difference.count >= SEEDS {
        student(difference.count) * difference.sd / (difference.count as f64).sqrt()
    } else {
        let (own, rival) = (own.first()?, rival.first()?);
        // Several seeds may share their test rows: their mean is taken to be as uncertain as one of them.
        Z * own.paired_error(rival).unwrap_or_else(|| (variance(own) + variance(rival)).sqrt())
    };
    Some([difference.mean - half, difference.mean + half])
}

/// How the model's score does beside a rival whose AUROC lies so much above it.
fn outcome([low, high]: [f64; 2]) -> Outcome {
    match () {
        () if high < 0.0 => Outcome::Wins,
        () if low > 0.0 => Outcome::Loses,
        () => Outcome::Ties,
    }
}

/// Variance of an AUROC from one sample (Hanley and McNeil 1982).
fn variance(found: &Detection) -> f64 {
    let (a, n, m) = (found.auroc, found.positives as f64, found.negatives as f64);
    let (q1, q2) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
    ((a * (1.0 - a) + (n - 1.0) * (q1 - a * a) + (m - 1.0) * (q2 - a * a)) / (n * m)).max(0.0)
}

/// The 97.5 % quantile of Student's t with `count − 1` degrees of freedom, to 1 % from four on.
fn student(count: usize) -> f64 {
    let freedom = count as f64 - 1.0;
    Z + 2.4 / freedom + 3.2 / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::metrics::Scored;

    fn method(name: &str, role: Role, shift: f32, correct: Option<&[bool]>) -> Method {
        let test: Vec<f32> = (0..100).map(|i| i as f32).collect();
        let far = test.iter().map(|x| x + shift).collect();
        let scored = Scored { name: name.into(), test, ood: vec![("far".into(), far)] };
        Method { name: name.into(), role, seeds: vec![scored.report(correct).unwrap()] }
    }

    #[test]
    fn the_best_comes_first_and_close_ones_tie() {
        let correct: Vec<bool> = (0..100).map(|i| i < 90).collect();
        // A little better on the whole, and much worse for every second stranger.
        let test: Vec<f32> = (0..100).map(|i| i as f32).collect();
        let far = test.iter().enumerate().map(|(i, x)| x + if i % 2 == 0 { 96.0 } else { 46.0 });
        let scored =
            Scored { name: "near".into(), test: test.clone(), ood: vec![("far".into(), far.collect())] };
        let near = Method {
            seeds: vec![scored.report(Some(&correct)).unwrap()],
            ..method("near", Role::Rival, 0.0, None)
        };
        let all = [
            method("u", Role::Unfamiliarity, 60.0, Some(&correct)),
            near,
            method("worse", Role::Rival, 10.0, Some(&correct)),
            method("better", Role::Rival, 150.0, Some(&correct)),
        ];
        let found = contests(&all).unwrap();
        assert_eq!(found.len(), 2, "strangers, and errors");
        let order: Vec<_> = found[0].entries.iter().map(|e| (e.name.as_str(), e.outcome)).collect();
        let expected = [
            ("better", Some(Outcome::Loses)),
            ("near", Some(Outcome::Ties)),
            ("u", None),
            ("worse", Some(Outcome::Wins)),
        ];
        assert_eq!(order, expected);
        assert_eq!(found[1].counts, (10, 90));
        assert_eq!((found[0].second().0, found[1].second().0), ("FPR95", "AURC"));
    }

    #[test]
    fn a_small_difference_on_the_same_rows_is_no_tie() {
        // The rival loses a little nearly everywhere: the same rows say so, two samples of them could not.
        let scored = |far: Vec<f32>| Scored {
            name: "m".into(),
            test: (0..100).map(|i| i as f32).collect(),
            ood: vec![("far".into(), far)],
        };
        let method = |role, loss: f32| {
            let far = (0..100).map(|i| 60.0 + i as f32 - loss).collect();
            Method { name: "m".into(), role, seeds: vec![scored(far).report(None).unwrap()] }
        };
        let found = contests(&[method(Role::Unfamiliarity, 0.0), method(Role::Rival, 3.0)]).unwrap();
        let rival = found[0].best_rival().unwrap();
        let [low, high] = rival.gap.unwrap();
        assert_eq!(rival.outcome, Some(Outcome::Wins), "{low} to {high}");
        let difference = rival.auroc.mean - found[0].main().unwrap().auroc.mean;
        assert!(low < difference && difference < high && high < 0.0, "{low} {difference} {high}");
    }

    #[test]
    fn five_seeds_are_compared_in_pairs() {
        let with = |role, shifts: &[f32]| Method {
            seeds: shifts.iter().map(|&s| method("m", role, s, None).seeds.remove(0)).collect(),
            ..method("m", role, 1.0, None)
        };
        // Each seed is a little better, though the seeds differ by more than that.
        let own = with(Role::Unfamiliarity, &[20.0, 30.0, 40.0, 50.0, 60.0]);
        let outcome = |shifts: &[f32]| {
            contests(&[own.clone(), with(Role::Rival, shifts)]).unwrap()[0].best_rival().unwrap().outcome
        };
        assert_eq!(outcome(&[19.0, 29.0, 39.0, 49.0, 59.0]), Some(Outcome::Wins));
        assert_eq!(outcome(&[21.0, 28.0, 40.0, 52.0, 59.0]), Some(Outcome::Ties));
    }

    #[test]
    fn the_quantile_is_students() {
        for (count, t) in [(5, 2.776), (6, 2.571), (10, 2.262), (30, 2.045)] {
            assert!((student(count) / t - 1.0).abs() < 0.01, "{count}: {}", student(count));
        }
    }

    #[test]
    fn methods_on_other_sets_are_refused() {
        let mut other = method("MSP", Role::Rival, 1.0, None);
        other.seeds[0].ood.clear();
        let message =
            contests(&[method("u", Role::Unfamiliarity, 4.0, None), other]).unwrap_err().to_string();
        assert!(message.contains("MSP was measured on other sets"), "{message}");
        assert!(contests(&[]).is_err());
    }
}
