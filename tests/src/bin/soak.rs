//! Billions of assessments, on threads and through three faces of the library: one hash at the end, whoever computed it.
//!
//! ```text
//! soak COUNT [--threads N] [--face core|static|shared|all] [--state FILE] [--library libdab.so]
//! ```
//!
//! The work is cut into chunks of [`CHUNK`] assessments, each with its own seed. Of [`ROUND`] chunks each model of
//! `tests/same-bits` gets one; the others ask a small diagonal, spectral or Cholesky model in turn, which is several times as
//! quick. A chunk gives a hash; they are added up, so that their order does not matter. With `--face all` (the default)
//! chunk i goes through dab-core, the C interface linked into this program (what libdab.a is), or libdab.so, in turn. What is
//! done is kept in the state file, also when the program is killed: started again, it goes on. `tests/soak` is the command.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::{CalibrationSpec, DecoderSpec};
use dab_core::monitor::{Config, Monitor};
use dab_core::{CovarianceKind, Model, Rates, Task};
use dab_same_bits::{Hash, MODELS, Random, SCRATCH};
use dab_tests::face::{Face, Faces};
use dab_tests::specs::{self, bare};

/// Assessments of a chunk.
const CHUNK: u64 = 100_000;
/// Chunks of a round.
const ROUND: u64 = 20;
/// Most inputs and outputs of a model.
const WIDTH: usize = 8;
/// How often the clock of the monitor goes around.
const WRAPS: u64 = 10_000;
/// The resident memory may grow by this much, in kB, after the first chunks: thread stacks and the C library's own.
const GROWTH: u64 = 2048;

struct Arguments {
    count: u64,
    threads: usize,
    face: Option<Face>,
    state: Option<PathBuf>,
    library: Option<PathBuf>,
}

fn arguments() -> Option<Arguments> {
    let mut words = std::env::args().skip(1);
    let count = words.next()?.replace('_', "").parse::<f64>().ok()? as u64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = Arguments { count, threads, face: None, state: None, library: None };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match &*word {
            "--threads" => found.threads = value.parse().ok().filter(|n| *n > 0)?,
            "--face" => found.face = if value == "all" { None } else { Some(Face::parse(&value)?) },
            "--state" => found.state = Some(value.into()),
            "--library" => found.library = Some(value.into()),
            _ => return None,
        }
    }
    Some(found)
}

/// Resident memory of this process in kB; `None` where it cannot be known.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Which model a chunk asks.
struct Models {
    small: [&'static [u8]; 3],
}

impl Models {
    /// The small models: two latent dimensions, three codes, a decoder and a table of p-values.
    fn new() -> Self {
        let kinds = [CovarianceKind::Diagonal, CovarianceKind::Spectral, CovarianceKind::Cholesky];
        let mut random = specs::Random(10);
        let small = kinds.map(|kind| {
            let mut spec = bare(&mut random, kind, 2, 3, 1.0);
            let (weight, bias) = (random.floats(4, 1.0), Some(random.floats(2, 1.0)));
            spec.decoder = Some(DecoderSpec { weight, bias, outputs: 2, task: Task::Classification });
            let scores = random.floats(40, 3.0).iter().map(|score| score.abs()).collect();
            spec.calibration = Some(CalibrationSpec { scores, rates: Rates::for_held_out(40) });
            let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
            Box::leak(Box::new(bytes)).as_slice()
        });
        Self { small }
    }

    fn of(&self, index: u64) -> &'static [u8] {
        match MODELS.get((index % ROUND) as usize) {
            Some((_, artifact)) => artifact,
            None => self.small[(index % 3) as usize],
        }
    }
}

/// The hash of one chunk through one face.
fn chunk(models: &Models, faces: &Faces, face: Face, index: u64) -> u64 {
    let artifact = models.of(index);
    let shape = Model::from_bytes(artifact).expect("a model of the tests").shape();
    let mut asked = faces.open(face, artifact);
    // Any seed but 0, which xorshift cannot leave.
    let mut random = Random::seeded((index as u32).wrapping_mul(0x9e37_79b9) | 1);
    let (mut input, mut outputs, mut scratch) = ([0.0; WIDTH], [0.0; WIDTH], [0.0; SCRATCH]);
    let (input, outputs) = (&mut input[..shape.inputs], &mut outputs[..shape.outputs]);
    let mut hash = Hash::default();
    for _ in 0..CHUNK {
        random.fill(input);
        match asked.predict(input, outputs, &mut scratch) {
            None => hash.word(u32::MAX),
            Some(words) => {
                words.into_iter().for_each(|word| hash.word(word));
                outputs.iter().for_each(|y| hash.word(y.to_bits()));
            }
        }
    }
    // Mixed with its number, so that two chunks cannot change places unnoticed.
    (hash.value() ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

/// Two monitors whose clocks of 32 bits go around at different times say the same.
fn watch() {
    let mut config = Config::plain(2.0);
    config.exit = 1.0;
    (config.enter_votes, config.exit_votes, config.window) = (2, 3, 5);
    (config.min_dwell, config.timeout) = (1 << 20, (1 << 29) - 1);
    let [mut monitor, mut shifted] = [(); 2].map(|()| Monitor::new(config).expect("a configuration"));
    let (mut now, mut state) = (0u64, 0x2545_f491_4f6c_dd1du64);
    while now >> 32 < WRAPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        now += state >> 34;
        let score = (state & 0xff) as f32 / 100.0;
        let expected = monitor.observe(now as u32, score);
        assert_eq!(shifted.observe((now as u32).wrapping_add(0x9000_0001), score), expected, "at tick {now}");
    }
    let seen = monitor.statistics();
    assert!(seen.alarms > 0 && seen.stales > 0 && seen.nominal_ticks > 0);
    assert_eq!(
        seen.nominal_ticks + seen.fallback_ticks,
        shifted.statistics().nominal_ticks + shifted.statistics().fallback_ticks
    );
    println!("monitor: its clock went around {WRAPS} times, {} inputs, {} alarms", seen.inputs, seen.alarms);
}

fn main() -> ExitCode {
    let Some(Arguments { count, threads, face, state, library }) = arguments() else {
        eprintln!(
            "usage: soak COUNT [--threads N] [--face core|static|shared|all] [--state FILE] [--library libdab.so]"
        );
        return ExitCode::from(2);
    };
    let (models, faces) = (Models::new(), Faces::new(library.as_deref()));
    watch();
    let chunks = count.div_ceil(CHUNK);
    // Chunks that are done, and the sum of their hashes.
    let read = |path: &PathBuf| -> Option<(u64, u64)> {
        let text = fs::read_to_string(path).ok()?;
        let (done, sum) = text.trim().split_once(' ')?;
        Some((done.parse().ok()?, u64::from_str_radix(sum, 16).ok()?))
    };
    let (mut done, mut sum) = state.as_ref().and_then(read).unwrap_or((0, 0));
    if done > chunks {
        (done, sum) = (0, 0);
    }
    let (started, before) = (Instant::now(), done);
    let mut memory = None;
    while done < chunks {
        // Some chunks for each thread, then the state is kept.
        let batch = (8 * threads as u64).min(chunks - done);
        let (next, total) = (AtomicU64::new(done), Mutex::new(0u64));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= done + batch {
                            return;
                        }
                        let face = face.unwrap_or_else(|| faces.turn(index));
                        let hash = chunk(&models, &faces, face, index);
                        let mut total = total.lock().expect("no thread fails");
                        *total = total.wrapping_add(hash);
                    }
                });
            }
        });
        done += batch;
        sum = sum.wrapping_add(*total.lock().expect("no thread fails"));
        if let Some(path) = &state {
            // A kill between the two leaves the old state.
            let draft = path.with_extension("new");
            let kept =
                fs::write(&draft, format!("{done} {sum:016x}\n")).and_then(|()| fs::rename(&draft, path));
            if let Err(error) = kept {
                eprintln!("soak: {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
        memory = memory.or_else(resident);
    }
    let seconds = started.elapsed().as_secs_f64();
    let here = (done - before) * CHUNK;
    println!(
        "{} assessments, {here} of them now in {seconds:.0} s on {threads} threads through {}: hash {sum:016x}",
        done * CHUNK,
        face.map_or_else(|| faces.names(), |face| face.name().into()),
    );
    if let (Some(first), Some(last)) = (memory, resident()) {
        println!("memory: {first} kB after the first chunks, {last} kB at the end");
        if last > first + GROWTH {
            eprintln!("soak: the memory grows");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
