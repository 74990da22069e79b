//! Streams for tests and tables of the monitor: correlated scores, and a motor.
#![allow(dead_code, reason = "each program uses a part")]

/// Numbers by chance.
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    spare: Option<f64>,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, spare: None }
    }

    /// Above 0, below 1.
    pub fn uniform(&mut self) -> f64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        ((self.seed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (a, b) = (self.uniform(), self.uniform());
        let (size, angle) = ((-2.0 * a.ln()).sqrt(), std::f64::consts::TAU * b);
        self.spare = Some(size * angle.sin());
        size * angle.cos()
    }
}

/// Scores of 3 + ½ x, as if in nats, with x standard normal and correlated with its past.
#[derive(Clone, Debug)]
pub struct Ar1 {
    random: Random,
    keep: f64,
    x: f64,
}

impl Ar1 {
    pub fn new(seed: u64, keep: f64) -> Self {
        let mut random = Random::new(seed);
        let x = random.normal();
        Self { random, keep, x }
    }

    pub fn next(&mut self) -> f32 {
        self.x = self.keep * self.x + (1.0 - self.keep * self.keep).sqrt() * self.random.normal();
        (3.0 + 0.5 * self.x) as f32
    }
}

/// The motor of examples/motor/simulate.py, window by window: the same equations and constants, other random numbers.
#[derive(Clone, Debug)]
pub struct Motor {
    random: Random,
    current: f64,
    speed: f64,
    angle: f64,
    voltage: (f64, f64),
    load: (f64, f64),
    /// A winding is open.
    pub winding: bool,
}

impl Motor {
    const SAMPLES: usize = 24;

    pub fn new(seed: u64) -> Self {
        let random = Random::new(seed);
        let (voltage, load) = ((9.0, 9.0), (0.03, 0.03));
        let mut motor = Self { random, current: 0.0, speed: 0.0, angle: 0.0, voltage, load, winding: false };
        (0..40).for_each(|_| drop(motor.window()));
        motor
    }

    fn step(&mut self, dt: f64) {
        let turn = std::f64::consts::TAU;
        let open = self.winding && (self.angle / turn * 6.0) as i64 % 6 == 0;
        let ripple = 0.06 * (12.0 * self.angle).cos();
        let drop = if open { 4.8 } else { 0.8 } * self.current + 0.022 * self.speed * (1.0 + ripple);
        self.current += dt * (self.voltage.0 - drop) / 0.6e-3;
        self.speed += dt * (0.022 * self.current - 2e-5 * self.speed - self.load.0) / 4e-5;
        self.angle += dt * self.speed;
    }

    fn count(&mut self, value: f64) -> i32 {
        (value + 2.0 * self.random.normal()).round().clamp(0.0, 4095.0) as i32
    }

    /// What the model sees of the next window.
    pub fn window(&mut self) -> Vec<f32> {
        if self.random.uniform() < 0.15 {
            self.voltage.1 = 6.0 + 6.0 * self.random.uniform();
        }
        if self.random.uniform() < 0.15 {
            self.load.1 = 0.06 * self.random.uniform();
        }
        let mut counts = Vec::new();
        for _ in 0..Self::SAMPLES {
            self.voltage.0 += 0.025 * (self.voltage.1 - self.voltage.0);
            self.load.0 += 0.025 * (self.load.1 - self.load.0);
            (0..20).for_each(|_| self.step(1.0 / (800.0 * 20.0)));
            counts.push(self.count(200.0 * self.current + 1000.0));
        }
        let mean = counts.iter().sum::<i32>().div_euclid(Self::SAMPLES as i32);
        let voltage = self.count(250.0 * self.voltage.0);
        counts.iter().map(|i| i - mean).chain([mean, voltage]).map(|x| x as f32).collect()
    }
}
