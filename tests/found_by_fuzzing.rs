//! What the fuzzer found (fuzz/run), each as a test with a name.

use core::ffi::c_void;
use core::ptr::null;

use dab::assess::{Assessment, dab_assess};
use dab::ellipse::{dab_ellipse_bytes, dab_ellipse_init, dab_ellipse_observe};
use dab::memory::{MemoryConfig, dab_memory_bytes, dab_memory_init, dab_memory_stats};
use dab::model::{DAB_MODEL_BYTES, Handle, dab_model_init};
use dab::status::{DAB_ERR_CONFIG, DAB_ERR_NULL, DAB_ERR_OVERLAP, DAB_OK};
use dab::taught::{dab_assess_taught, dab_teach};
use dab_core::artifact::{AlignedBytes, ArtifactError};
use dab_core::explore::{Config, Exploration, RestoreError, SAVED_BYTES, Schedule};
use dab_core::saved::Saved;
use dab_tests::patch::{Parts, crc32c};
use dab_tests::specs::real;

fn memory_config(codes: u32, dim: u32) -> MemoryConfig {
    MemoryConfig {
        size: size_of::<MemoryConfig>() as u32,
        codes,
        dim,
        std: 1.0,
        spawn: 0.0,
        alpha: 0.0,
        widen: 0.0,
        keep: 0.0,
        horizon: 0,
    }
}

#[test]
fn an_ellipse_that_cannot_be_started_anew_goes_on_as_it_was() {
    let mut storage = vec![0u64; dab_ellipse_bytes(2).div_ceil(8)];
    let (place, bytes) = (storage.as_mut_ptr().cast::<c_void>(), 8 * storage.len());
    let mut ellipse = core::ptr::null_mut();
    let mut square = 0.0;
    // SAFETY: the storage has the bytes that it is said to have, the features have two floats.
    unsafe {
        assert_eq!(dab_ellipse_init(place, bytes, 2, 1.0, &mut ellipse), DAB_OK);
        let mut other = core::ptr::null_mut();
        assert_eq!(dab_ellipse_init(place, bytes, 2, -1.0, &mut other), DAB_ERR_CONFIG);
        assert_eq!(dab_ellipse_observe(ellipse, [3.0, 4.0].as_ptr(), 2, 0, &mut square), DAB_OK);
    }
    assert_eq!(square, 25.0, "its numbers were lost");
}

#[test]
fn an_assessment_over_a_memory_is_never_written() {
    let artifact = AlignedBytes::from(&*real()[0].1.to_bytes().expect("a model"));
    let artifact = artifact.as_slice();
    let mut model_storage = [0u64; DAB_MODEL_BYTES / 8];
    let mut handle: *mut Handle = core::ptr::null_mut();
    let mut storage = vec![0u64; dab_memory_bytes(8, 3).div_ceil(8)];
    let mut memory = core::ptr::null_mut();
    let config = memory_config(8, 3);
    let mut scratch = [0f32; 256];
    // SAFETY: every pointer has the memory that its size says; the result lies over the memory, which must be noticed.
    unsafe {
        let (to, from) = (model_storage.as_mut_ptr().cast(), artifact.as_ptr().cast());
        assert_eq!(dab_model_init(to, DAB_MODEL_BYTES, from, artifact.len(), &mut handle), DAB_OK);
        let place = storage.as_mut_ptr().cast::<c_void>();
        assert_eq!(dab_memory_init(place, 8 * storage.len(), &config, &mut memory), DAB_OK);
        let over = storage.as_mut_ptr().wrapping_add(16).cast::<Assessment>();
        over.cast::<u32>().write(size_of::<Assessment>() as u32);
        let before = storage.clone();
        let scratch_bytes = size_of_val(&scratch);
        // The input is NULL: an error that is found before the overlap.
        let scratch = scratch.as_mut_ptr().cast();
        let refused = [DAB_ERR_NULL, DAB_ERR_OVERLAP];
        assert!(refused.contains(&dab_teach(handle, memory, null(), 4, scratch, scratch_bytes, over)));
        assert_eq!(storage, before, "dab_teach");
        assert!(refused.contains(&dab_assess_taught(
            handle,
            memory,
            null(),
            4,
            scratch,
            scratch_bytes,
            over
        )));
        assert_eq!(storage, before, "dab_assess_taught");
        let mut sound = core::mem::zeroed::<Assessment>();
        sound.size = size_of::<Assessment>() as u32;
        assert_eq!(dab_assess(handle, null(), 4, scratch, scratch_bytes, &mut sound), DAB_ERR_NULL);
        assert_eq!(sound.uncertainty, f32::MAX);
    }
}

#[test]
fn the_last_bytes_of_a_memory_are_its_own() {
    // 96 + 4 · (3 · (3 + 2) + 2) = 164 bytes: the last word of 8 bytes is half used.
    let bytes = dab_memory_bytes(3, 1);
    assert!(!bytes.is_multiple_of(8));
    let mut storage = vec![0u64; bytes.div_ceil(8)];
    let place = storage.as_mut_ptr();
    let config = memory_config(3, 1);
    // SAFETY: the storage has all bytes; the handle is to be written into its last word, which must be refused.
    unsafe {
        let handle = place.wrapping_add(storage.len() - 1).cast();
        assert_eq!(dab_memory_init(place.cast(), bytes, &config, handle), DAB_ERR_OVERLAP);
        assert_ne!(dab_memory_stats(place.cast(), core::ptr::null_mut()), DAB_OK);
    }
}

#[test]
fn minus_zero_is_refused_in_every_part_and_never_written() {
    for (name, mut spec) in real() {
        spec.self_test = vec![vec![-0.0; spec.inputs]];
        spec.head.weight[0] = -0.0;
        let bytes = spec.to_bytes().expect("a model");
        let sound = Parts::of(&bytes);
        assert!(sound.params.iter().all(|x| x.to_bits() != (-0f32).to_bits()), "{name}");
        for (part, range) in sound.places() {
            let mut changed = sound.clone();
            changed.params[range.start] = -0.0;
            let found = changed.join().model().err();
            assert_eq!(found, Some(ArtifactError::OutOfRange { part, index: 0 }), "{name} {part:?}");
        }
    }
}

#[test]
fn an_exploration_refuses_statistics_that_no_stream_has() {
    const IMPOSSIBLE: RestoreError = RestoreError::Impossible { what: Saved::Normaliser };
    let schedule = Schedule::Constant { start: 1.0 };
    let config = Config { schedule, clip: 5.0, centered: true, warmup: 2 };
    let mut bonus = Exploration::new(config).expect("a configuration");
    [1.0, 2.0, 4.0].into_iter().for_each(|u| bonus.update(u));
    let saved = bonus.save();
    let changed = |at: usize, with: &[u8]| {
        let mut bytes: [u8; SAVED_BYTES] = saved;
        bytes[at..at + with.len()].copy_from_slice(with);
        let sum = crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        let mut bonus = bonus;
        bonus.restore(&bytes)
    };
    assert_eq!(changed(8, &[]), Ok(()));
    // Behind tag and checksum: count, mean, sum of squares, smallest, largest.
    assert_eq!(changed(24, &1e306f64.to_le_bytes()), Err(IMPOSSIBLE), "wider than the range");
    assert_eq!(changed(36, &1e30f32.to_le_bytes()), Err(IMPOSSIBLE), "beyond the domain");
    assert_eq!(changed(32, &1e-30f32.to_le_bytes()), Err(IMPOSSIBLE), "below the domain");
}
