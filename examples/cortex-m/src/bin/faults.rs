//! Bits that flip on a device: in the artifact, where the checksums must find every one, and in scratch while a call runs,
//! where nothing may hang or fault. `tests/firmware faults` runs it.
#![no_std]
#![no_main]

use core::ptr::{addr_of, addr_of_mut};
use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m_rt::{entry, exception};
use dab_core::{Model, artifact};
use dab_same_bits::{MODELS, Random, SCRATCH};
use debugger::{exit, print};

/// Words of memory for an artifact of `tests/same-bits`.
const WORDS: usize = 700;
/// Calls of each model during which bits of scratch flip, and flips that there must be for each model. The emulator's timer
/// keeps real time, so a fast or busy machine needs more calls for as many flips.
const CALLS: u32 = 4000;
const MOST_CALLS: u32 = 50 * CALLS;
const FLIPS_WANTED: u32 = 1000;
/// Cycles between two flips: some for each call.
const PERIOD: u32 = 2000;

/// Scratch lies here, so that the interrupt finds it.
static mut PLACE: [f32; SCRATCH] = [0.0; SCRATCH];
/// Flips so far, and the state of the generator that chooses the bit.
static FLIPS: AtomicU32 = AtomicU32::new(0);
static CHOICE: AtomicU32 = AtomicU32::new(0x2545_f491);

/// The timer's registers: control, reload, current.
const SYSTICK: *mut u32 = 0xe000_e010 as *mut u32;

fn timer(on: bool) {
    // SAFETY: every Cortex-M has these registers at this address; nobody else writes to them.
    unsafe {
        SYSTICK.wrapping_add(1).write_volatile(PERIOD);
        SYSTICK.wrapping_add(2).write_volatile(0);
        SYSTICK.write_volatile(if on { 7 } else { 0 });
    }
}

#[exception]
fn SysTick() {
    let mut x = CHOICE.load(Ordering::Relaxed);
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    CHOICE.store(x, Ordering::Relaxed);
    FLIPS.store(FLIPS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    // SAFETY: a word of scratch. That it changes under a call is the fault that is tried; the compiler may keep values in
    // registers, as it does on a device whose memory fails.
    unsafe {
        let word = addr_of_mut!(PLACE).cast::<u32>().wrapping_add(x as usize / 32 % SCRATCH);
        word.write_volatile(word.read_volatile() ^ 1 << (x % 32));
    }
}

fn number(mut n: u32) {
    let mut digits = [0u8; 10];
    let mut used = 0;
    while used == 0 || n > 0 {
        if let Some(digit) = digits.get_mut(used) {
            *digit = b'0' + (n % 10) as u8;
        }
        (n, used) = (n / 10, used + 1);
    }
    for digit in digits.iter().take(used).rev() {
        print(core::str::from_utf8(core::slice::from_ref(digit)).unwrap_or("?"));
    }
}

/// Every bit of an artifact, flipped alone: how many there are, and how many were found.
fn artifact_flips(bytes: &[u8], memory: &mut [u32; WORDS]) -> Option<(u32, u32)> {
    let words = bytes.len().div_ceil(4);
    let mut found = 0;
    for (to, from) in memory.iter_mut().zip(bytes.chunks(4)) {
        let mut word = [0; 4];
        for (to, from) in word.iter_mut().zip(from) {
            *to = *from;
        }
        *to = u32::from_le_bytes(word);
    }
    for bit in 0..8 * bytes.len() {
        *memory.get_mut(bit / 32)? ^= 1 << (bit % 32);
        // SAFETY: the words are initialized, and `bytes.len()` bytes of them lie within; u8 has no alignment.
        let now =
            unsafe { core::slice::from_raw_parts(memory.as_ptr().cast::<u8>(), bytes.len().min(4 * words)) };
        found += u32::from(artifact::check(now).is_err() && Model::from_bytes(now).is_err());
        *memory.get_mut(bit / 32)? ^= 1 << (bit % 32);
    }
    Some((8 * bytes.len() as u32, found))
}

/// Calls while bits of scratch flip, then without: whether the last answers are the first ones again.
fn scratch_flips(bytes: &[u8]) -> Option<bool> {
    let model = Model::from_bytes(bytes).ok()?;
    let mut input = [0.0; 8];
    let input = input.get_mut(..model.shape().inputs)?;
    let mut ask = |random: &mut Random| {
        random.fill(input);
        // SAFETY: one call at a time has it; what the interrupt does to it is the fault that is tried.
        let scratch = unsafe { &mut *addr_of_mut!(PLACE) };
        model.assess(input, scratch).map_or(0, |a| a.uncertainty.to_bits())
    };
    let first = ask(&mut Random::new());
    let mut random = Random::new();
    let before = FLIPS.load(Ordering::Relaxed);
    timer(true);
    for call in 0..MOST_CALLS {
        if call >= CALLS && FLIPS.load(Ordering::Relaxed).wrapping_sub(before) >= FLIPS_WANTED {
            break;
        }
        ask(&mut random);
    }
    timer(false);
    Some(ask(&mut Random::new()) == first)
}

#[entry]
fn main() -> ! {
    let mut memory = [0u32; WORDS];
    let (mut bits, mut found, mut sound) = (0, 0, true);
    // The two smallest: a pass over the bytes for each of their bits.
    for (_, bytes) in MODELS.iter().filter(|(name, _)| matches!(*name, "spectral" | "cholesky")) {
        let Some((all, seen)) = artifact_flips(bytes, &mut memory) else { exit(false) };
        (bits, found) = (bits + all, found + seen);
    }
    number(found);
    print(" of ");
    number(bits);
    print(" flipped bits of artifacts found\n");
    for (_, bytes) in MODELS {
        sound &= scratch_flips(bytes).unwrap_or(false);
    }
    let flips = FLIPS.load(Ordering::Relaxed);
    // SAFETY: reading a static whose writer, the timer, is off.
    let _ = unsafe { addr_of!(PLACE).read() };
    let enough = flips >= FLIPS_WANTED * MODELS.len() as u32;
    print(if enough {
        "bits of scratch flipped during at least "
    } else {
        "too few bits of scratch flipped during at least "
    });
    number(CALLS * MODELS.len() as u32);
    print(if sound {
        " calls: all returned, and the next answers are right\n"
    } else {
        " calls: a wrong answer stayed\n"
    });
    exit(found == bits && sound && enough)
}
