//! How high a stream gets: the statistic that N of M votes compare with a threshold, and its peaks.
//!
//! N of the last M scores lie above x exactly when the N-th largest of them does. So one pass per N and M gives, for
//! every threshold at once, in which pieces of the log it would have raised an alarm: those whose peak lies above it.

/// The N-th largest of the last M numbers, as they come.
struct Ranked {
    votes: usize,
    window: usize,
    recent: std::collections::VecDeque<f32>,
    sorted: Vec<f32>,
}

impl Ranked {
    fn new(votes: usize, window: usize) -> Self {
        Self { votes, window, recent: [].into(), sorted: Vec::with_capacity(window) }
    }

    /// Takes in a number; the statistic, once there are so many numbers.
    fn push(&mut self, x: f32) -> Option<f32> {
        if self.window == 1 {
            return Some(x);
        }
        if self.recent.len() == self.window
            && let Some(old) = self.recent.pop_front()
        {
            let at = self.sorted.partition_point(|&y| y < old);
            self.sorted.remove(at);
        }
        self.recent.push_back(x);
        let at = self.sorted.partition_point(|&y| y < x);
        self.sorted.insert(at, x);
        self.sorted.len().checked_sub(self.votes).and_then(|at| self.sorted.get(at)).copied()
    }
}

/// The largest value of the statistic in each piece of `piece` scores, largest piece first. Scores that are not finite
/// are left out: rejected inputs have a channel of their own.
pub fn peaks(logs: &[Vec<f32>], piece: usize, votes: usize, window: usize) -> Vec<f32> {
    let mut found = Vec::new();
    for log in logs {
        let mut ranked = Ranked::new(votes, window);
        for scores in log.chunks(piece) {
            let statistic = scores.iter().filter(|x| x.is_finite()).filter_map(|&x| ranked.push(x));
            let peak = statistic.fold(f32::NEG_INFINITY, f32::max);
            if peak.is_finite() {
                found.push(peak);
            }
        }
    }
    found.sort_unstable_by(|a, b| b.total_cmp(a));
    found
}

/// Means of blocks of `block` finite scores, each at most `most`, as the device computes them, in their order.
pub fn block_means(logs: &[Vec<f32>], block: usize, most: f32) -> Vec<f32> {
    let mut means = Vec::new();
    for log in logs {
        let (mut sum, mut filled) = (0.0, 0usize);
        for &x in log.iter().filter(|x| x.is_finite()) {
            sum += f64::from(if x < most { x } else { most });
            filled += 1;
            if filled == block {
                means.push((sum / filled as f64) as f32);
                (sum, filled) = (0.0, 0);
            }
        }
    }
    means
}

/// Correlation of neighbours; 0 without a spread.
pub fn neighbour_correlation(xs: &[f32]) -> f64 {
    let mean = xs.iter().map(|&x| f64::from(x)).sum::<f64>() / xs.len().max(1) as f64;
    let centred = |x: f32| f64::from(x) - mean;
    let variance: f64 = xs.iter().map(|&x| centred(x).powi(2)).sum();
    let products: f64 = xs.windows(2).map(|w| centred(w[0]) * centred(w[1])).sum();
    if variance > 0.0 { products / variance } else { 0.0 }
}

/// Quantiles of the finite scores, by an even sample of at most a million of them.
pub fn quantiles<const N: usize>(logs: &[Vec<f32>], at: [f64; N]) -> Option<[f32; N]> {
    const SAMPLE: usize = 1_000_000;
    let total: usize = logs.iter().map(Vec::len).sum();
    let step = total.div_ceil(SAMPLE).max(1);
    let mut sample: Vec<f32> =
        logs.iter().flatten().step_by(step).copied().filter(|x| x.is_finite()).collect();
    sample.sort_unstable_by(f32::total_cmp);
    let last = sample.len().checked_sub(1)?;
    Some(at.map(|share| sample[((share * last as f64).round() as usize).min(last)]))
}

/// The threshold that a stream with these peaks (largest first, of `hours`) exceeds `rate` times an hour, by the mean
/// excess of the largest tenth: an exponential tail, which a Gaussian's lies below.
pub fn level_at(peaks: &[f32], hours: f64, rate: f64) -> f32 {
    let top = (peaks.len() / 10).clamp(10, 200).min(peaks.len().saturating_sub(1));
    let wanted = hours * rate;
    let Some(&base) = peaks.get(top) else { return peaks.first().copied().unwrap_or(0.0) };
    if wanted >= top as f64 {
        return peaks.get(wanted as usize).copied().unwrap_or(base);
    }
    let excess = peaks[..top].iter().map(|&x| f64::from(x - base)).sum::<f64>() / top.max(1) as f64;
    (f64::from(base) + excess * (top as f64 / wanted).ln()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_the_threshold_of_an_alarm() {
        let log = vec![1.0, 5.0, 2.0, 6.0, 7.0, 0.0, 0.0, f32::NAN, 9.0, 8.0, 0.0, 0.0];
        // Two of three above x: the second largest of three.
        assert_eq!(peaks(std::slice::from_ref(&log), 6, 2, 3), [8.0, 6.0]);
        assert_eq!(peaks(std::slice::from_ref(&log), 12, 1, 1), [9.0]);
        assert_eq!(block_means(&[log], 4, 5.5), [(1.0 + 5.0 + 2.0 + 5.5) / 4.0, (5.5 + 5.5) / 4.0]);
    }

    #[test]
    fn levels_extrapolate_an_exponential_tail() {
        // Peaks whose number above x falls by e for every unit of x.
        let n = 10_000;
        let peaks: Vec<f32> = (0..n).map(|i| -((f64::from(i) + 0.5) / f64::from(n)).ln() as f32).collect();
        let exact = (f64::from(n) / 0.1f64).ln();
        assert!((f64::from(level_at(&peaks, 1.0, 0.1)) - exact).abs() < 0.2);
        assert!((f64::from(level_at(&peaks, 1.0, 1000.0)) - 10f64.ln()).abs() < 0.01);
    }
}
