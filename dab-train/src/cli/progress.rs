//! What a run says while it runs: a bar for people, JSON lines for logs, or nothing.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{rdfc::Epoch, trainer::Observer};

/// Between two redraws of the bar.
const REDRAW: Duration = Duration::from_millis(100);

/// How a run reports.
#[derive(Debug)]
pub enum Progress {
    /// Nothing.
    Quiet,
    /// One JSON object an epoch, on standard output.
    JsonLines {
        /// The seed, which each line carries.
        seed: u64,
    },
    /// A bar on standard error.
    Bar {
        /// The bar.
        bar: ProgressBar,
        /// When it was last redrawn.
        drawn: Option<Instant>,
    },
}

impl Progress {
    /// A bar labelled with the seed.
    #[must_use]
    pub fn bar(seed: u64) -> Self {
        let style = ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len} {msg} ETA {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(0).with_style(style).with_prefix(format!("seed {seed}"));
        Self::Bar { bar, drawn: None }
    }
}

/// How evenly codes are used: the smallest prior and how many there are.
fn usage(epoch: &Epoch) -> String {
    let least = epoch.usage.iter().copied().fold(f32::INFINITY, f32::min);
    format!("codes {} (least {least:.3})", epoch.usage.len())
}

/// Examples a second, all steps included, of a run that was not resumed.
fn speed(epoch: &Epoch, elapsed: Duration) -> f64 {
    (epoch.examples * epoch.number) as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
}

impl Observer for Progress {
    fn epoch(&mut self, epoch: &Epoch, total: usize, elapsed: Duration) {
        match self {
            Self::Quiet => {}
            Self::JsonLines { seed } => {
                let left = elapsed.as_secs_f64() / epoch.number as f64 * (total - epoch.number) as f64;
                let line = json!({ "seed": seed, "epochs": total, "seconds": elapsed.as_secs_f64(), "eta": left,
                    "examples_per_second": speed(epoch, elapsed), "epoch": epoch });
                // A closed pipe is the reader's wish to stop listening, not a failure of the run.
                let _ = writeln!(std::io::stdout(), "{line}");
            }
            Self::Bar { bar, drawn } => {
                let last = epoch.number == total;
                if !last && drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
                    return;
                }
                *drawn = Some(Instant::now());
                bar.set_length(total as u64);
                bar.set_position(epoch.number as u64);
                bar.set_message(format!(
                    "nll {:.4} distortion {:.3} rate {:.3} {} {:.0}/s",
                    epoch.nll,
                    epoch.distortion,
                    epoch.rate,
                    usage(epoch),
                    speed(epoch, elapsed)
                ));
                if last {
                    bar.finish();
                }
            }
        }
    }
}
