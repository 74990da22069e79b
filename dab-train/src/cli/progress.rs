//! What a run says while it runs: a bar for people, or JSON lines for logs.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use serde_json::json;

use crate::{
    learn::{
        epoch::Epoch,
        run::{Moment, Observer},
    },
    support::memory::peak_bytes,
};

/// Between two redraws of the bar.
const REDRAW: Duration = Duration::from_millis(100);
/// Positions of the bar within an epoch.
const FINE: f64 = 1000.0;

/// How a run reports, and since when.
#[derive(Debug)]
pub struct TrainingProgress {
    how: How,
    /// Epochs that were done when this process began: a resumed run starts with some.
    first: Option<f64>,
}

#[derive(Debug)]
enum How {
    /// One JSON object an epoch, on standard output; each line carries the seed.
    JsonLines { seed: u64 },
    /// A bar on standard error, what the last epoch gave, and when it was last redrawn.
    Bar { bar: ProgressBar, last: String, drawn: Option<Instant> },
}

/// How fast a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    /// Examples a second, all steps included.
    speed: f64,
    /// Seconds to the end.
    left: f64,
}

impl TrainingProgress {
    pub fn json_lines(seed: u64) -> Self {
        Self { how: How::JsonLines { seed }, first: None }
    }

    pub fn bar(seed: u64) -> Self {
        let bar = styled(ProgressBar::new(0), "{prefix} {bar:24} {msg}").with_prefix(format!("seed {seed}"));
        Self { how: How::Bar { bar, last: String::new(), drawn: None }, first: None }
    }

    /// The pace of this process alone; its first call tells how many epochs were done before it.
    fn pace(&mut self, moment: &Moment) -> Pace {
        // The first call comes within this process' first epoch, or at its end.
        let first = *self.first.get_or_insert((moment.epochs.ceil() - 1.0).max(0.0));
        let (done, seconds) = (moment.epochs - first, moment.elapsed.as_secs_f64());
        Pace {
            speed: done * moment.examples as f64 / seconds.max(f64::MIN_POSITIVE),
            left: seconds / done.max(f64::MIN_POSITIVE) * (moment.total as f64 - moment.epochs),
        }
    }

    fn draw(&mut self, moment: &Moment) {
        let Pace { speed, left } = self.pace(moment);
        let How::Bar { bar, last, drawn } = &mut self.how else { return };
        let ends = moment.epochs >= moment.total as f64;
        if !ends && drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        *drawn = Some(Instant::now());
        bar.set_length((moment.total as f64 * FINE) as u64);
        bar.set_position((moment.epochs * FINE) as u64);
        let memory = peak_bytes().map_or(String::new(), |bytes| format!(" {}", gib(bytes)));
        let left = HumanDuration(Duration::try_from_secs_f64(left).unwrap_or_default());
        let (epoch, total) = (moment.epochs.ceil(), moment.total);
        bar.set_message(format!("{epoch}/{total} {last}{speed:.0}/s{memory} ETA {left:#}"));
        if ends {
            bar.finish();
        }
    }
}

/// A bar that looks as `template` says.
pub fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A bar that is told how many fits of candidates are done; it goes away with the last.
pub fn choosing_bar() -> Box<dyn Fn(usize, usize) + Sync> {
    let bar = styled(ProgressBar::new(0), "choosing {bar:24} {pos}/{len} ETA {eta}");
    Box::new(move |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        if done == total {
            bar.finish_and_clear();
        }
    })
}

fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Losses, and how evenly codes are used: the smallest prior and how many there are.
fn losses(epoch: &Epoch) -> String {
    let least = epoch.usage.iter().copied().fold(f32::INFINITY, f32::min);
    format!(
        "nll {:.4} distortion {:.3} rate {:.3} codes {} (least {least:.3}) ",
        epoch.nll,
        epoch.distortion,
        epoch.rate,
        epoch.usage.len()
    )
}

impl Observer for TrainingProgress {
    fn epoch(&mut self, epoch: &Epoch, total: usize, elapsed: Duration) {
        let moment = Moment { epochs: epoch.number as f64, total, examples: epoch.examples, elapsed };
        let Pace { speed, left } = self.pace(&moment);
        match &mut self.how {
            How::JsonLines { seed } => {
                let line = json!({ "seed": seed, "epochs": total, "seconds": elapsed.as_secs_f64(), "eta": left,
                    "examples_per_second": speed, "peak_bytes": peak_bytes(), "epoch": epoch });
                // A closed pipe is the reader's wish to stop listening, not a failure of the run.
                let _ = writeln!(std::io::stdout(), "{line}");
            }
            How::Bar { last, .. } => {
                *last = losses(epoch);
                self.draw(&moment);
            }
        }
    }

    fn step(&mut self, moment: &Moment) {
        self.draw(moment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(epochs: f64, seconds: f64) -> Moment {
        Moment { epochs, total: 10, examples: 100, elapsed: Duration::from_secs_f64(seconds) }
    }

    #[test]
    fn a_pace_counts_what_this_process_did() {
        let mut fresh = TrainingProgress::json_lines(0);
        assert_eq!(fresh.pace(&moment(0.5, 5.0)), Pace { speed: 10.0, left: 95.0 });
        assert_eq!(fresh.pace(&moment(1.0, 10.0)), Pace { speed: 10.0, left: 90.0 });
        // Six epochs were done elsewhere.
        let mut resumed = TrainingProgress::json_lines(0);
        assert_eq!(resumed.pace(&moment(6.25, 5.0)), Pace { speed: 5.0, left: 75.0 });
        assert_eq!(resumed.pace(&moment(8.0, 20.0)), Pace { speed: 10.0, left: 20.0 });
        // An epoch of one step.
        let mut whole = TrainingProgress::json_lines(0);
        assert_eq!(whole.pace(&moment(7.0, 2.0)), Pace { speed: 50.0, left: 6.0 });
    }
}
