//! Recorded streams through the very monitor of the device: how many alarms an hour, how soon is a fault found, and
//! which configuration keeps a budget.
//!
//! ```text
//! scores of a log → tune (block length → thresholds from peaks → replay → bound) → Config → monitor.toml, .h, .rs
//! scores of a log + Config → replay → states, alarms, timeline
//! ```

pub mod delay;
pub mod file;
pub mod peaks;
pub mod replay;
pub mod tune;

/// The largest mean number of events that is compatible with `count` of them at that confidence (Garwood): the mean at
/// which seeing so few has the probability 1 − confidence.
pub fn upper_mean(count: u64, confidence: f64) -> f64 {
    let at_most = |mean: f64| {
        // P(Poisson(mean) ≤ count), by terms relative to the largest: no overflow for large counts.
        let log_term = |k: u64| k as f64 * mean.ln() - mean - libm::lgamma(k as f64 + 1.0);
        (0..=count).map(|k| log_term(k).exp()).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, count as f64 + 10.0 * (count as f64 + 1.0).sqrt() + 50.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if at_most(middle) > 1.0 - confidence { low = middle } else { high = middle }
    }
    high
}

/// Most events that may be seen so that [`upper_mean`] is within `mean`; `None` if not even none may.
pub fn allowed_count(mean: f64, confidence: f64) -> Option<u64> {
    if upper_mean(0, confidence) > mean {
        return None;
    }
    let (mut low, mut high) = (0, mean.ceil() as u64 + 1);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if upper_mean(middle, confidence) <= mean { low = middle } else { high = middle }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_garwoods() {
        // Tables of the Poisson distribution, 95 % one-sided.
        for (count, mean) in [(0, 2.996), (1, 4.744), (2, 6.296), (10, 16.962), (100, 118.1)] {
            assert!(
                (upper_mean(count, 0.95) / mean - 1.0).abs() < 1e-3,
                "{count}: {}",
                upper_mean(count, 0.95)
            );
        }
        assert_eq!(allowed_count(2.9, 0.95), None);
        assert_eq!(allowed_count(3.0, 0.95), Some(0));
        assert_eq!(allowed_count(16.97, 0.95), Some(10));
    }
}
