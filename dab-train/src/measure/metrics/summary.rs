//! One number over several seeds.
//!
//! per-seed values → `Summary` → a table cell such as `0.962 ± 0.003`.
//!
//! ```text
//! sd² = Σ (x − mean)² / (n − 1)
//! ```
//!
//! One seed has no spread: its cell shows the value alone, never "± 0".

use serde::Serialize;

/// Mean and spread over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; 0 for a single value.
    pub sd: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of values.
    pub count: usize,
}

impl Summary {
    /// Summarises `values`; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
        let sd = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { mean, sd, min, max, count })
    }

    /// `mean ± sd` with `digits` decimals; the mean alone for one value.
    pub fn show(&self, digits: usize) -> String {
        if self.count > 1 {
            format!("{:.digits$} ± {:.digits$}", self.mean, self.sd)
        } else {
            format!("{:.digits$}", self.mean)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_needs_two_values() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[0.5]).unwrap().show(2), "0.50");
        assert_eq!(Summary::of(&[0.5]).unwrap().sd, 0.0);
        assert_eq!(Summary::of(&[1.0, 3.0]).unwrap().show(3), "2.000 ± 1.414");
    }
}
