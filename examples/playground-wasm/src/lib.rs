//! dab-core for a web page: what `docs/playground/engine.js` calls.
//!
//! ```text
//! room(bytes of model.dab) → load → input slot → assess, explain, encode → slots
//! room(bytes of a CSV file) → open_rows → record → score → text slot: a line of `dab score`
//! ```
//!
//! An instance holds one model and one file of rows. The page reads and writes memory where [`slot`] says, between
//! calls. A range of memory is one number: its length in the upper half, its address in the lower.
#![no_std]

mod info;
mod memory;
mod rows;
mod text;

use core::cell::RefCell;

use dab_core::artifact::schema::CovarianceKind;
use dab_core::gaussian::Spread;
use dab_core::{ArtifactError, Assessment, InputError, Model, Task};

use rows::{Field, Next, Rows};
use text::{Line, Shortest, Text};

#[cfg(target_feature = "atomics")]
compile_error!("one thread: `Instance` is not to be shared");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Room for the words of an error.
const WORDS: usize = 1024;
/// Where the header of an artifact says at which byte the parameters begin (docs/format.md).
const PARAMS_OFFSET: usize = 32;
/// Numbers of an assessment, and of the calibration, that the page reads.
const RESULTS: usize = 11;
const LIMITS: usize = 5;

/// A model and the memory for one input.
struct Bench {
    artifact: &'static [u8],
    model: Model<'static>,
    columns: &'static mut [u32],
    input: &'static mut [f32],
    outputs: &'static mut [f32],
    /// The widths of their bands; empty for a model without any.
    bands: &'static mut [f32],
    distances: &'static mut [f32],
    assignment: &'static mut [f32],
    dimensions: &'static mut [f32],
    latent_mean: &'static mut [f32],
    latent_spread: &'static mut [f32],
    result: &'static mut [f32],
    limits: &'static mut [f32],
    scratch: &'static mut [f32],
}

impl Bench {
    /// `None` when there is no memory for it.
    fn new(artifact: &'static [u8], model: Model<'static>) -> Option<Self> {
        let shape = model.shape();
        let spread = match shape.covariance {
            CovarianceKind::Diagonal => shape.dim,
            CovarianceKind::Spectral | CovarianceKind::Cholesky => shape.dim * shape.dim,
            CovarianceKind::Constant => 0,
        };
        let columns: &mut [u32] = memory::numbers(shape.inputs)?;
        for (i, column) in (0..).zip(columns.iter_mut()) {
            *column = i;
        }
        let own = model.bands();
        let bands: &mut [f32] = memory::numbers(if own.is_some() { shape.outputs } else { 0 })?;
        for (i, width) in bands.iter_mut().enumerate() {
            *width = own.and_then(|own| own.get(i)).unwrap_or(f32::NAN);
        }
        let limits = memory::numbers(LIMITS)?;
        let (rates, table) = (model.rates(), model.calibration());
        let above = |rate| table.and_then(|table| table.threshold(rate)).unwrap_or(f32::NAN);
        limits.copy_from_slice(&[
            rates.doubtful(),
            rates.unfamiliar(),
            above(rates.doubtful()),
            above(rates.unfamiliar()),
            model.codebook().alpha,
        ]);
        Some(Self {
            artifact,
            columns,
            input: memory::numbers(shape.inputs)?,
            outputs: memory::numbers(shape.outputs)?,
            bands,
            distances: memory::numbers(shape.codes)?,
            assignment: memory::numbers(shape.codes)?,
            dimensions: memory::numbers(shape.dim)?,
            latent_mean: memory::numbers(shape.dim)?,
            latent_spread: memory::numbers(spread)?,
            result: memory::numbers(RESULTS)?,
            limits,
            scratch: memory::numbers(model.scratch_len())?,
            model,
        })
    }

    /// Mean and inverse deviation of the inputs, which are the first parameters; empty for a model that does
    /// not normalise.
    fn normalisation(&self) -> (&'static [f32], &'static [f32]) {
        let offset = self.artifact.get(PARAMS_OFFSET..).and_then(<[u8]>::first_chunk);
        let offset = offset.map_or(0, |&b| u32::from_le_bytes(b)) as usize;
        let inputs = if self.model.meta().normalized { self.input.len() } else { 0 };
        let part = |start: usize| {
            let bytes = self.artifact.get(offset + 4 * start..offset + 4 * (start + inputs));
            bytes.and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()).unwrap_or_default()
        };
        (part(0), part(inputs))
    }

    fn explain(&mut self) -> Result<Assessment, InputError> {
        let Self { model, input, distances, assignment, dimensions, scratch, .. } = self;
        model.explain_into(input, distances, assignment, dimensions, scratch)
    }

    fn encode(&mut self) -> Result<(), InputError> {
        let gaussian = self.model.encode(self.input, self.scratch)?;
        self.latent_mean.copy_from_slice(gaussian.mean);
        let spread = match gaussian.spread {
            Spread::Diagonal(spread) | Spread::Full { factor: spread, .. } => spread,
            Spread::Identity => &[],
        };
        self.latent_spread.copy_from_slice(spread);
        Ok(())
    }

    /// The assessment as the page reads it: NaN stands for "there is none".
    fn keep(&mut self, a: &Assessment) {
        let verdict = a.verdict.map_or(f32::NAN, |verdict| verdict as u8 as f32);
        let number = |x: Option<f32>| x.unwrap_or(f32::NAN);
        let class = |class: Option<usize>| class.map_or(f32::NAN, |class| class as f32);
        self.result.copy_from_slice(&[
            a.score(),
            number(a.p_value),
            verdict,
            a.nearest as f32,
            a.nearest_distance,
            f32::from(a.saturated),
            number(a.unfamiliarity),
            number(a.ambiguity),
            number(a.ambiguity_p),
            class(a.class),
            class(a.runner_up),
        ]);
    }
}

/// All that an instance of the module holds.
#[derive(Default)]
struct Instance {
    room: &'static mut [u8],
    text: Text,
    bench: Option<Bench>,
    rows: Option<Rows>,
}

impl Instance {
    /// The bytes that the page wrote. They are not changed any more.
    fn take_room(&mut self) -> &'static [u8] {
        let room: &'static mut [u8] = core::mem::take(&mut self.room);
        room
    }

    /// Which of the `LOAD` numbers holds; `None` when there is no memory.
    fn load(&mut self) -> Option<u32> {
        self.text = Text::new(memory::bytes(WORDS)?);
        let artifact = self.take_room();
        let error = match Model::from_bytes(artifact) {
            // A device does not read the info section, `dab inspect` does.
            Ok(_) if !info::sound(info::section(artifact)) => ArtifactError::Info,
            Ok(model) => {
                let bench = Bench::new(artifact, model)?;
                let longest = Line::longest(bench.outputs.len(), bench.bands.len()).max(WORDS);
                self.text = Text::new(memory::bytes(longest)?);
                self.bench = Some(bench);
                return Some(LOAD_SOUND);
            }
            Err(error) => error,
        };
        self.text.say(error);
        Some(match error {
            ArtifactError::NotAnArtifact => LOAD_FOREIGN,
            ArtifactError::Version { .. } | ArtifactError::IncompatibleFeatures { .. } => LOAD_NEWER,
            ArtifactError::Info => LOAD_INFO,
            _ => LOAD_DAMAGED,
        })
    }

    /// Assesses the input slot.
    fn run(&mut self, call: impl FnOnce(&mut Bench) -> Result<Assessment, InputError>) -> Option<Assessment> {
        let bench = self.bench.as_mut()?;
        match call(bench) {
            Ok(assessment) => {
                bench.keep(&assessment);
                Some(assessment)
            }
            Err(error) => {
                self.text.say(error);
                None
            }
        }
    }

    /// What is wrong with the record, and in which field; `None` when it was scored.
    fn score(&mut self, width: usize) -> Option<(u32, usize)> {
        let (Some(rows), Some(bench)) = (&self.rows, &mut self.bench) else { return Some((FAULT_WIDTH, 0)) };
        if rows.count() != width {
            return Some((FAULT_WIDTH, 0));
        }
        for (value, &column) in bench.input.iter_mut().zip(&*bench.columns) {
            match Field::parse(rows.field(column as usize)) {
                Field::Number(number) => *value = number,
                Field::Missing => return Some((FAULT_MISSING, column as usize)),
                Field::Text => return Some((FAULT_TEXT, column as usize)),
                Field::NonFinite => return Some((FAULT_NON_FINITE, column as usize)),
            }
        }
        // It cannot fail: the values are finite, and as many as the model takes.
        let assessment = self.run(|b| b.model.predict_into(b.input, b.outputs, b.scratch))?;
        if let Some(bench) = &self.bench {
            self.text.say(Line { assessment: &assessment, outputs: bench.outputs, bands: bench.bands });
        }
        None
    }
}

/// What `load` returns: the page gives other advice for each, as `dab` does.
const LOAD_NO_MEMORY: u32 = 0;
const LOAD_SOUND: u32 = 1;
const LOAD_FOREIGN: u32 = 2;
const LOAD_NEWER: u32 = 3;
const LOAD_DAMAGED: u32 = 4;
const LOAD_INFO: u32 = 5;

/// What is wrong with a record, in the lower three bits of what `score` returns.
const FAULT_WIDTH: u32 = 1;
const FAULT_MISSING: u32 = 2;
const FAULT_TEXT: u32 = 3;
const FAULT_NON_FINITE: u32 = 4;

struct Single(RefCell<Option<Instance>>);

// SAFETY: the module is compiled without atomics (checked above), so its memory belongs to one instance on one thread.
unsafe impl Sync for Single {}

static INSTANCE: Single = Single(RefCell::new(None));

/// Runs `call` on the instance. No export calls another one, so it is never borrowed twice.
fn instance<R>(call: impl FnOnce(&mut Instance) -> R) -> R {
    call(INSTANCE.0.borrow_mut().get_or_insert_default())
}

/// A range of memory in one number.
fn range<T>(values: &[T]) -> u64 {
    (values.len() as u64) << 32 | values.as_ptr().addr() as u64
}

/// Functions that the page calls.
macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty $body:block)*) => {
        $(
            $(#[$doc])*
            // SAFETY: the compiler sees to it that no two functions of this crate have one name, and no crate that
            // it uses exports a name.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $kind),*) -> $result $body
        )*
    };
}

exports! {
    /// Sets memory aside for a file and returns where it lies; 0 when there is none.
    fn room(len: usize) -> *mut u8 {
        instance(|i| match memory::bytes(len) {
            Some(bytes) => {
                i.room = bytes;
                i.room.as_mut_ptr()
            }
            None => core::ptr::null_mut(),
        })
    }

    /// Makes a model of the bytes in the room: 1. 0 when there is no memory; another number, with words in the text,
    /// when they are no model.
    fn load() -> u32 {
        instance(|i| i.load().unwrap_or(LOAD_NO_MEMORY))
    }

    /// Compares the known answers of the model: 1; 0 with words in the text.
    fn self_test() -> u32 {
        instance(|i| {
            let Some(bench) = &mut i.bench else { return 0 };
            match bench.model.self_test(bench.scratch) {
                Ok(()) => 1,
                Err(error) => {
                    i.text.say(error);
                    0
                }
            }
        })
    }

    /// A size of the model; engine.js has the names.
    fn size(which: u32) -> u32 {
        instance(|i| {
            let Some(Bench { model, artifact, bands, .. }) = &i.bench else { return 0 };
            let shape = model.shape();
            let size = match which {
                0 => shape.inputs,
                1 => shape.layers,
                2 => shape.dim,
                3 => shape.codes,
                4 => shape.outputs,
                5 => shape.covariance as usize,
                6 => shape.task.map_or(0, |task| if task == Task::Regression { 1 } else { 2 }),
                7 => model.calibration().map_or(0, |table| table.held_out as usize),
                8 => model.scratch_len(),
                9 => info::Entries::new(info::section(artifact)).map_or(0, Iterator::count),
                10 => usize::from(model.channels_meta().is_some()),
                11 => bands.len(),
                _ => 0,
            };
            size as u32
        })
    }

    /// A range of memory that the page may read, and the first three write; engine.js has the names.
    fn slot(which: u32) -> u64 {
        instance(|i| {
            if which == 0 {
                return range(i.text.memory());
            }
            let Some(bench) = &i.bench else { return 0 };
            let (codes, table) = (bench.model.codebook(), bench.model.calibration());
            match which {
                1 => range(bench.input),
                2 => range(bench.columns),
                3 => range(bench.outputs),
                4 => range(bench.distances),
                5 => range(bench.assignment),
                6 => range(bench.dimensions),
                7 => range(bench.latent_mean),
                8 => range(bench.latent_spread),
                9 => range(bench.result),
                10 => range(bench.limits),
                11 => range(codes.means),
                12 => range(codes.precisions),
                13 => range(codes.priors),
                14 => table.map_or(0, |table| range(table.scores)),
                15 => table.map_or(0, |table| range(table.p_values)),
                16 => range(bench.normalisation().0),
                17 => range(bench.normalisation().1),
                _ => 0,
            }
        })
    }

    /// The text that was written last.
    fn text() -> u64 {
        instance(|i| range(i.text.written()))
    }

    /// The key (`part` 0) or value (1) of an entry of the info section.
    fn info_entry(index: usize, part: u32) -> u64 {
        instance(|i| {
            let entries = i.bench.as_ref().and_then(|bench| info::Entries::new(info::section(bench.artifact)));
            let entry = entries.and_then(|mut entries| entries.nth(index));
            entry.map_or(0, |(key, value)| range(if part == 0 { key } else { value }.as_bytes()))
        })
    }

    /// Assesses the input slot into the result slot: 1; 0 with words in the text.
    fn assess() -> u32 {
        instance(|i| u32::from(i.run(|b| b.model.assess(b.input, b.scratch)).is_some()))
    }

    /// The same, and the outputs.
    fn predict() -> u32 {
        instance(|i| u32::from(i.run(|b| b.model.predict_into(b.input, b.outputs, b.scratch)).is_some()))
    }

    /// The same as `assess`, and distances, assignment and dimensions.
    fn explain() -> u32 {
        instance(|i| u32::from(i.run(Bench::explain).is_some()))
    }

    /// The Gaussian of the input slot, in the latent slots: 1; 0 when there is none.
    fn encode() -> u32 {
        instance(|i| u32::from(i.bench.as_mut().is_some_and(|bench| bench.encode().is_ok())))
    }

    /// The number that the first `len` bytes of the text slot are; NaN when they are none.
    fn number(len: usize) -> f32 {
        instance(|i| match i.text.memory().get(..len).map(Field::parse) {
            Some(Field::Number(number)) => number,
            _ => f32::NAN,
        })
    }

    /// Writes the shortest digits of a finite number into the text.
    fn shortest(x: f32) -> u64 {
        instance(|i| {
            i.text.say(Shortest(x));
            range(i.text.written())
        })
    }

    /// Takes the bytes in the room as rows: 1; 0 when there is no memory.
    fn open_rows() -> u32 {
        instance(|i| {
            let file = i.take_room();
            i.rows = Rows::new(file);
            u32::from(i.rows.is_some())
        })
    }

    /// Reads the next record: its fields; -1 at the end, -2 when they are too many.
    fn record() -> i32 {
        instance(|i| match i.rows.as_mut().map(Rows::next) {
            Some(Next::Record(fields)) => fields as i32,
            Some(Next::TooWide) => -2,
            Some(Next::End) | None => -1,
        })
    }

    /// A field of the record.
    fn field(index: usize) -> u64 {
        instance(|i| i.rows.as_ref().map_or(0, |rows| range(rows.field(index))))
    }

    /// What a field of the record holds: 0 a number, otherwise the fault.
    fn field_fault(index: usize) -> u32 {
        instance(|i| match i.rows.as_ref().map_or(Field::Missing, |rows| Field::parse(rows.field(index))) {
            Field::Number(_) => 0,
            Field::Missing => FAULT_MISSING,
            Field::Text => FAULT_TEXT,
            Field::NonFinite => FAULT_NON_FINITE,
        })
    }

    /// The line at which the record begins.
    fn record_line() -> u32 {
        instance(|i| i.rows.as_ref().map_or(0, |rows| rows.line() as u32))
    }

    /// Bytes of the file that were read.
    fn rows_position() -> usize {
        instance(|i| i.rows.as_ref().map_or(0, Rows::position))
    }

    /// Scores the record, which should have `width` fields; input `n` is the field that the columns slot says.
    /// 0: the line is in the text. Otherwise the fault, and 8 × the field that has it.
    fn score(width: usize) -> u32 {
        instance(|i| i.score(width).map_or(0, |(fault, field)| fault | (field as u32) << 3))
    }
}
