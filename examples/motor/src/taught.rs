//! "This is normal now": a load that was never trained on alarms, is taught, and alarms no more; a fault still does.
//!
//! ```text
//! window → assess with what was taught → guard          button: window → teach → memory → two slots of flash
//! ```
//!
//! The stream (`taught.bin`): a pump is coupled from window 30 to 139. While the button is held, from 60 to 109, every window
//! is taught. At 120 the firmware starts anew and reads what was taught from flash. From 160 to 199 a winding is open.

use dab_core::memory::{Config as MemoryConfig, Memory};
use dab_core::monitor::State;
use dab_core::teach::TeachError;
use dab_core::{Guard, Model, slots};

use crate::{SCRATCH, guard, print_number, start, windows_of};

/// Windows of the same form as `stream.bin`.
static STREAM: &[u8] = include_bytes!("../taught.bin");
/// Latent dimension of the model, and places for taught codes.
const DIM: usize = 4;
const PLACES: usize = 8;
/// A window farther than this (nats) from what was taught becomes a new taught code.
const SPAWN: f32 = 4.0;
/// When the button is held, and when the firmware starts anew.
const TAUGHT: core::ops::Range<u32> = 60..110;
const RESTART: u32 = 120;
/// Bytes of one slot: its head and a full memory, in whole pages.
const SLOT: usize = 512;

/// Two pages of flash. A product erases and programs them; here they are memory.
struct Flash([[u8; SLOT]; 2]);

impl Flash {
    /// Writes what was taught into the slot that does not hold the newest state.
    fn write(&mut self, memory: &mut Memory<PLACES, DIM>) -> bool {
        let Self([first, second]) = self;
        let before = slots::newest(first, second).map(|found| (found.slot, found.sequence));
        let (slot, sequence) =
            before.map_or((slots::Slot::First, 0), |(slot, n)| (slot.other(), n.wrapping_add(1)));
        let page = match slot {
            slots::Slot::First => first,
            slots::Slot::Second => second,
        };
        let Some(room) = page.get_mut(slots::HEAD_BYTES..) else { return false };
        let Ok(bytes) = memory.view().save(room) else { return false };
        slots::seal(page, sequence, bytes).is_some()
    }

    /// Reads it back; an empty memory when there is none.
    fn read(&self, memory: &mut Memory<PLACES, DIM>) -> bool {
        let Self([first, second]) = self;
        slots::newest(first, second).is_none_or(|found| memory.view().restore(found.state).is_ok())
    }
}

/// What a start of the firmware makes.
fn boot<'m, 'a>(model: &'m Model<'a>, flash: &Flash) -> Option<(Guard<'m, 'a>, Memory<PLACES, DIM>)> {
    let mut memory = Memory::new(MemoryConfig { spawn: SPAWN, ..MemoryConfig::DEFAULT }).ok()?;
    flash.read(&mut memory).then_some(())?;
    Some((guard(model)?, memory))
}

/// Boots, watches the stream, is taught, and prints each change. Whether everything could be used.
pub fn run(print: fn(&str)) -> bool {
    let mut scratch = [0.0; SCRATCH];
    let Some(model) = start(print, &mut scratch) else { return false };
    let mut flash = Flash([[0xff; SLOT]; 2]);
    let Some((mut watch, mut memory)) = boot(&model, &flash) else { return false };
    let mut before = watch.monitor().state();
    for (now, window) in (0..).zip(windows_of(STREAM)) {
        if now == RESTART {
            let Some(again) = boot(&model, &flash) else { return false };
            (watch, memory) = again;
            print("started anew, ");
            print_number(print, memory.view().pinned() as u32, 0);
            print(" taught codes from flash\n");
            before = watch.monitor().state();
        }
        if TAUGHT.contains(&now) {
            let taught = model.teach(&mut memory.view(), &window, &mut scratch).is_ok();
            if !taught || !flash.write(&mut memory) {
                return false;
            }
        }
        let found = match model.assess_taught(&mut memory.view(), &window, &mut scratch) {
            Ok(found) => Ok(found),
            // The guard counts what the model refuses.
            Err(TeachError::Input(refused)) => Err(refused),
            Err(TeachError::Memory(_)) => return false,
        };
        let decision = watch.judge(now, found);
        let state = decision.state;
        if state != before {
            print("window ");
            print_number(print, now, 0);
            print(match state {
                State::Nominal => ": trusted, u ",
                State::Fallback => ": fallback, u ",
                State::Stale => ": no data, u ",
            });
            let nats = decision.assessment.map_or(f32::MAX, |found| found.uncertainty);
            print_number(print, (nats * 100.0) as u32, 2);
            print(" nats\n");
            before = state;
        }
    }
    true
}
