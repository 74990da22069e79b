//! Speed of one assessment: `cargo bench -p dab-core`.
//!
//! A table compares, in one interleaved run, dab-core on the machine's widest instructions, dab-core on the
//! target's baseline, and plain C built by `gcc -O3 -march=native`. Ratios are medians over many short alternations: on a noisy machine they hold
//! where nanoseconds do not.

mod models;
mod plain;
mod timing;

use std::hint::black_box;
use std::time::Instant;

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::writer::{Spec, WeightKind};
use dab_core::isa::{Baseline, Isa, Kernel};
use models::{Shape, shapes};
use plain::Plain;
use timing::{ROUND_NANOSECONDS, median, nanoseconds};

/// The widest instructions of this machine.
#[derive(Clone, Copy)]
struct Widest(pulp::Arch);

/// A kernel as pulp wants it.
struct Vectorized<K>(K);

impl<K: Kernel> pulp::WithSimd for Vectorized<K> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> K::Output {
        self.0.call()
    }
}

impl Isa for Widest {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        self.0.dispatch(Vectorized(kernel))
    }
}

/// A contestant: what it computes, as a closure to time.
struct Contestant<'a> {
    name: &'static str,
    call: Box<dyn FnMut() -> f32 + 'a>,
}

fn core_call<'a>(
    bytes: &'a AlignedBytes,
    shape: &'a Shape,
    isa: impl Isa + Copy + 'a,
) -> Box<dyn FnMut() -> f32 + 'a> {
    let model = bytes.model().expect("a sound model");
    let mut scratch = vec![0.0; model.scratch_len()];
    Box::new(move || {
        let assessment = model.assess_on(isa, black_box(&shape.input), &mut scratch);
        assessment.map_or(f32::NAN, |a| a.uncertainty)
    })
}

/// The model with weights of one byte; it lives as long as the benchmark.
fn in_bytes(shape: &Shape) -> &'static AlignedBytes {
    let spec = Spec { weights: WeightKind::Int8, ..shape.spec.clone() };
    Box::leak(Box::new(AlignedBytes::from(&*spec.to_bytes().expect("a sound model"))))
}

fn contestants<'a>(shape: &'a Shape, plain: Option<&'a Plain>) -> Vec<Contestant<'a>> {
    let mut all = vec![
        Contestant { name: "dab-core", call: core_call(&shape.bytes, shape, Widest(pulp::Arch::new())) },
        Contestant { name: "dab-core, baseline", call: core_call(&shape.bytes, shape, Baseline) },
        Contestant { name: "int8", call: core_call(in_bytes(shape), shape, Widest(pulp::Arch::new())) },
    ];
    let kernel = match &shape.name[..3] {
        "(a)" => "plain_a",
        "(c)" => "plain_c",
        _ => return all,
    };
    if let Some(plain) = plain {
        let call = plain.kernel(kernel, shape);
        all.push(Contestant { name: "plain C", call: Box::new(call) });
    }
    all
}

/// Median nanoseconds of each contestant, and the median over rounds of first ÷ each.
fn race(contestants: &mut [Contestant<'_>]) -> Vec<(f64, f64)> {
    const ROUNDS: usize = 201;
    let repeats: Vec<u32> = contestants
        .iter_mut()
        .map(|c| (ROUND_NANOSECONDS / nanoseconds(&mut c.call, 20)).max(1.0) as u32)
        .collect();
    let mut times = vec![Vec::new(); contestants.len()];
    let mut ratios = times.clone();
    for _ in 0..ROUNDS {
        let round: Vec<f64> =
            contestants.iter_mut().zip(&repeats).map(|(c, &n)| nanoseconds(&mut c.call, n)).collect();
        for (i, &t) in round.iter().enumerate() {
            times[i].push(t);
            ratios[i].push(t / round[0]);
        }
    }
    times.into_iter().map(median).zip(ratios.into_iter().map(median)).collect()
}

/// Adds up a buffer: nothing but reading.
struct Read<'a>(&'a [u64]);

impl Kernel for Read<'_> {
    type Output = [u64; 32];

    #[inline(always)]
    fn call(self) -> [u64; 32] {
        let mut lanes = [0u64; 32];
        for chunk in self.0.as_chunks::<32>().0 {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane = lane.wrapping_add(*x);
            }
        }
        lanes
    }
}

/// Bytes per nanosecond when `bytes` of memory are only read, again and again: median of many passes.
fn read_bandwidth(bytes: usize) -> f64 {
    let buffer: Vec<u64> = (0..bytes as u64 / 8).collect();
    let isa = Widest(pulp::Arch::new());
    let pass = || {
        let start = Instant::now();
        black_box(isa.run(Read(black_box(&buffer))));
        bytes as f64 / start.elapsed().as_nanos() as f64
    };
    median((0..101).map(|_| pass()).collect())
}

fn table(shapes: &[Shape], plain: Option<&Plain>) {
    println!("\n| shape | ns | multiply-adds/ns | baseline build | int8 | plain C |");
    println!("|---|---|---|---|---|---|");
    let mut bandwidth = String::new();
    for shape in shapes {
        let mut all = contestants(shape, plain);
        let answers: Vec<f32> = all.iter_mut().map(|c| (c.call)()).collect();
        assert_eq!(
            answers[0].to_bits(),
            answers[1].to_bits(),
            "{}: wide instructions change bits",
            shape.name
        );
        for (c, answer) in all.iter().zip(&answers) {
            // Rounded weights are other weights.
            let allowed = if c.name == "int8" { 0.1 } else { 1e-4 };
            assert!((answer / answers[0] - 1.0).abs() < allowed, "{}: {} gives {answer}", shape.name, c.name);
        }
        let model = shape.bytes.model().expect("a sound model");
        let results = race(&mut all);
        let ratio = |i: usize| results.get(i).map_or("–".into(), |(_, r)| format!("{r:.2}×"));
        let ns = results[0].0;
        let speed = model.multiply_adds() as f64 / ns;
        println!("| {} | {ns:.0} | {speed:.1} | {} | {} | {} |", shape.name, ratio(1), ratio(2), ratio(3));
        if shape.name.starts_with("(c)") {
            let size = shape.bytes.as_slice().len();
            let speed = size as f64 / ns;
            for (what, bytes) in [("a buffer of the model's size", size), ("256 MiB", 256 << 20)] {
                let limit = read_bandwidth(bytes);
                bandwidth += &format!(
                    "(c) reads {:.2} MB in {ns:.0} ns: {speed:.1} GB/s, {:.0} % of the {limit:.1} GB/s measured \
                     for reading {what}\n",
                    size as f64 / 1e6,
                    100.0 * speed / limit
                );
            }
        }
    }
    println!("\nColumns 4 to 6: time ÷ the time of dab-core on the widest instructions, median of one run.");
    print!("{bandwidth}");
}

fn main() {
    let plain = Plain::build();
    if let Err(reason) = &plain {
        println!("no plain C to compare with: {reason}");
    }
    table(&shapes(), plain.ok().as_ref());
}
