//! How long a call takes, and that the input does not decide it.   `timing [ROUNDS]`
//!
//! Every adversarial input is assessed ROUNDS times (default 300), in turns with a fixed loop of additions that takes about
//! as long. The scheduler and interrupts only ever add time, so the least time of an input is its own, and the rest is
//! noise, which the fixed loop shows as well:
//!
//! ```text
//! spread = most, over the inputs, of the least time of an input ÷ median of these     asserted: at most 1.25
//! tail   = most of all calls ÷ median of all calls                                     beside that of the fixed loop
//! ```

use std::process::ExitCode;
use std::time::Instant;

use dab_core::Model;
use dab_same_bits::{MODELS, Random, SCRATCH};

/// No input may take longer than the median one by more than this: two readings of the clock among some hundred
/// nanoseconds, and predictions of the processor that came out well or badly.
const SPREAD: f64 = 1.25;
/// Most inputs of a model.
const WIDTH: usize = 8;

/// A time in cycles of the counter where there is one, otherwise in nanoseconds.
fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the counter; reading it has no other effect. The fence waits for what is before.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::OnceLock;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Inputs that are meant to be slow: huge, tiny, subnormal, all equal (equal eigenvalues), saturated, mixed, ordinary.
fn inputs(width: usize) -> Vec<(&'static str, Vec<f32>)> {
    let mut all = Vec::new();
    let equal = [
        ("zeros", 0.0),
        ("ones", 1.0),
        ("huge", f32::MAX),
        ("negative huge", f32::MIN),
        ("largest of the domain", (1u64 << 50) as f32),
        ("smallest of the domain", 1.0 / (1u64 << 50) as f32),
        ("tiny", f32::MIN_POSITIVE),
        ("subnormal", f32::from_bits(1)),
        ("saturated", 1e20),
        ("-0", -0.0),
    ];
    all.extend(equal.map(|(name, x)| (name, vec![x; width])));
    for (name, a, b) in
        [("huge and tiny", f32::MAX, f32::from_bits(1)), ("signs", 3e18, -3e18), ("near", 1.0, 1.000_000_1)]
    {
        all.push((name, (0..width).map(|i| if i % 2 == 0 { a } else { b }).collect()));
    }
    for i in 0..width {
        let mut one = vec![0.0; width];
        one[i] = f32::MAX;
        all.push(("one huge", one));
    }
    let mut random = Random::new();
    while all.len() < 64 {
        let mut row = vec![0.0; width];
        random.fill(&mut row);
        if row.iter().all(|x| x.is_finite()) {
            all.push(("random", row));
        }
    }
    all
}

/// Additions that depend on one another: always the same work.
fn fixed(rounds: u32) -> f32 {
    let mut x = std::hint::black_box(1.0f32);
    for _ in 0..rounds {
        x = std::hint::black_box(x + 1.0);
    }
    x
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn main() -> ExitCode {
    let rounds: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(300).max(10);
    let unit = if cfg!(target_arch = "x86_64") { "cycles" } else { "ns" };
    println!("{rounds} rounds; {unit} of one call");
    println!(
        "{:<10} {:>8} {:>8} {:>7} {:>10} {:>8}   slowest input",
        "model", "least", "median", "spread", "most", "tail"
    );
    let started = Instant::now();
    let mut sound = true;
    for (name, artifact) in MODELS {
        let model = Model::from_bytes(artifact).expect("a model of the tests");
        let cases = inputs(model.shape().inputs);
        assert!(cases.iter().all(|(_, row)| row.len() <= WIDTH));
        let mut scratch = [0.0; SCRATCH];
        let mut call = |row: &[f32]| {
            let start = now();
            let found = model.assess(std::hint::black_box(row), &mut scratch).expect("a finite input");
            std::hint::black_box(found);
            now() - start
        };
        // The fixed loop takes about as long as a call.
        let about = (0..50).map(|_| call(&cases[0].1)).min().unwrap_or(1000);
        let one = (0..50)
            .map(|_| {
                let s = now();
                std::hint::black_box(fixed(1000));
                now() - s
            })
            .min()
            .unwrap_or(1)
            .max(1);
        let length = (1000 * about / one).max(1) as u32;
        let mut least = vec![u64::MAX; cases.len()];
        let (mut calls, mut loops) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            for (least, (_, row)) in least.iter_mut().zip(&cases) {
                let time = call(row);
                *least = time.min(*least);
                calls.push(time);
                let start = now();
                std::hint::black_box(fixed(length));
                loops.push(now() - start);
            }
        }
        let slowest = (0..cases.len()).max_by_key(|&i| least[i]).unwrap_or(0);
        let (most, mut own) = (least[slowest], least.clone());
        let middle = median(&mut own);
        let spread = most as f64 / middle as f64;
        for (what, times, spread, note) in
            [(name, &mut calls, Some(spread), cases[slowest].0), ("fixed loop", &mut loops, None, "")]
        {
            let (middle, most, first) =
                (median(times), times.last().copied().unwrap_or(0), times.first().copied().unwrap_or(0));
            let spread = spread.map_or_else(|| "-".into(), |s| format!("{s:.3}"));
            let tail = most as f64 / middle as f64;
            println!("{what:<10} {first:>8} {middle:>8} {spread:>7} {most:>10} {tail:>8.1}   {note}");
        }
        sound &= spread <= SPREAD;
    }
    println!("{:.0} s", started.elapsed().as_secs_f64());
    if sound {
        ExitCode::SUCCESS
    } else {
        eprintln!("timing: an input takes more than {SPREAD} times the median one");
        ExitCode::FAILURE
    }
}
