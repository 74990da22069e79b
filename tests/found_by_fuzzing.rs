//! What the fuzzer found (fuzz/run), each as a test with a name.

use core::ffi::c_void;
use core::ptr::null;

use dab::assess::{Assessment, DAB_NO_VERDICT, dab_assess};
use dab::attribute::{dab_assess_without, dab_attribute, dab_input_name, dab_output_name};
use dab::ellipse::{dab_ellipse_bytes, dab_ellipse_init, dab_ellipse_observe};
use dab::guard::dab_guard;
use dab::host::{dab_model_close, dab_model_open};
use dab::memory::{MemoryConfig, dab_memory_bytes, dab_memory_init, dab_memory_stats};
use dab::model::{DAB_MODEL_BYTES, Handle, dab_model_init};
use dab::monitor::{Monitor, MonitorConfig};
use dab::status::{
    DAB_ERR_CONFIG, DAB_ERR_MISALIGNED, DAB_ERR_NO_MONITOR, DAB_ERR_NOT_INITIALIZED, DAB_ERR_NULL,
    DAB_ERR_OVERLAP, DAB_ERR_STRUCT_SIZE, DAB_OK,
};
use dab::taught::{dab_assess_taught, dab_teach};
use dab::tuned::dab_model_monitor;
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
        // Among the numbers: a memory's head has padding, which means nothing.
        let numbers = 16..16 + size_of::<Assessment>().div_ceil(8);
        let over = storage.as_mut_ptr().wrapping_add(numbers.start).cast::<Assessment>();
        over.cast::<u32>().write(size_of::<Assessment>() as u32);
        let before = storage[numbers.clone()].to_vec();
        let scratch_bytes = size_of_val(&scratch);
        // The input is NULL: an error that is found before the overlap.
        let scratch = scratch.as_mut_ptr().cast();
        let refused = [DAB_ERR_NULL, DAB_ERR_OVERLAP];
        assert!(refused.contains(&dab_teach(handle, memory, null(), 4, scratch, scratch_bytes, over)));
        assert_eq!(storage[numbers.clone()], before, "dab_teach");
        assert!(refused.contains(&dab_assess_taught(
            handle,
            memory,
            null(),
            4,
            scratch,
            scratch_bytes,
            over
        )));
        assert_eq!(storage[numbers], before, "dab_assess_taught");
        let mut sound = core::mem::zeroed::<Assessment>();
        sound.size = size_of::<Assessment>() as u32;
        assert_eq!(dab_assess(handle, null(), 4, scratch, scratch_bytes, &mut sound), DAB_ERR_NULL);
        assert_eq!(sound.uncertainty, f32::MAX);
    }
}

/// An assessment from an earlier call that trusts its input.
fn trusted() -> Assessment {
    // SAFETY: numbers only, for which zeros are a value.
    let mut found = unsafe { core::mem::zeroed::<Assessment>() };
    found.size = size_of::<Assessment>() as u32;
    (found.verdict, found.flags, found.uncertainty, found.p_value) = (1, 1, 0.5, 0.9);
    found
}

#[test]
fn an_assessment_over_means_or_groups_is_never_written() {
    let artifact = AlignedBytes::from(&*real()[0].1.to_bytes().expect("a model"));
    let artifact = artifact.as_slice();
    let (mut storage, mut scratch) = ([0u64; DAB_MODEL_BYTES / 8], [0f32; 256]);
    let mut handle: *mut Handle = core::ptr::null_mut();
    let (input, mut shares) = ([0.5f32; 4], [0f32; 4]);
    // Four means or groups, and a result that begins at the second one.
    let mut shared = [0u32; 32];
    shared[1] = size_of::<Assessment>() as u32;
    let before = shared;
    let bytes = size_of_val(&scratch);
    // SAFETY: every pointer has the memory that its size says; the result lies over what is read, which must be noticed.
    unsafe {
        let (to, from) = (storage.as_mut_ptr().cast(), artifact.as_ptr().cast());
        assert_eq!(dab_model_init(to, DAB_MODEL_BYTES, from, artifact.len(), &mut handle), DAB_OK);
        let all = shared.as_mut_ptr();
        let over = all.wrapping_add(1).cast::<Assessment>();
        let (scratch, input) = (scratch.as_mut_ptr().cast(), input.as_ptr());
        let odd = all.wrapping_byte_add(2).cast::<f32>().cast_const();
        for (means, groups, status) in [
            (all.cast::<f32>().cast_const(), null(), DAB_ERR_OVERLAP),
            (null(), all.cast_const(), DAB_ERR_OVERLAP),
            (odd, all.cast_const(), DAB_ERR_MISALIGNED),
        ] {
            let found = dab_assess_without(handle, input, 4, means, groups, 0, scratch, bytes, over);
            assert_eq!(found, status);
            let (to, none) = (shares.as_mut_ptr(), core::ptr::null_mut());
            let found = dab_attribute(handle, input, 4, means, groups, to, none, 4, scratch, bytes, over);
            assert_eq!(found, status);
            assert_eq!(std::slice::from_raw_parts(all, 32), before, "what the call only reads was written");
        }
    }
}

#[test]
fn a_guard_without_a_monitor_leaves_no_trust_behind() {
    let artifact = AlignedBytes::from(&*real()[0].1.to_bytes().expect("a model"));
    let artifact = artifact.as_slice();
    let (mut storage, mut scratch) = ([0u64; DAB_MODEL_BYTES / 8], [0f32; 256]);
    let mut handle: *mut Handle = core::ptr::null_mut();
    let mut nobody = [0u64; size_of::<Monitor>() / 8];
    let input = [0.5f32; 4];
    let bytes = size_of_val(&scratch);
    // SAFETY: every pointer has the memory that its size says, or is NULL.
    unsafe {
        let (to, from) = (storage.as_mut_ptr().cast(), artifact.as_ptr().cast());
        assert_eq!(dab_model_init(to, DAB_MODEL_BYTES, from, artifact.len(), &mut handle), DAB_OK);
        let scratch = scratch.as_mut_ptr().cast();
        for (monitor, status) in [
            (core::ptr::null_mut(), DAB_ERR_NULL),
            (nobody.as_mut_ptr().cast::<Monitor>(), DAB_ERR_NOT_INITIALIZED),
        ] {
            let (mut out, outputs) = (trusted(), core::ptr::null_mut());
            let who = dab_guard(handle, monitor, 0, input.as_ptr(), 4, outputs, 0, scratch, bytes, &mut out);
            assert_eq!(who, status);
            assert_eq!((out.verdict, out.flags, out.uncertainty), (DAB_NO_VERDICT, 0, f32::MAX));
        }
    }
}

#[test]
fn a_file_that_cannot_be_opened_leaves_no_older_handle() {
    for path in [c"/nowhere/model.dab".as_ptr(), c"/".as_ptr(), c"".as_ptr(), null()] {
        let mut handle: *mut Handle = core::ptr::dangling_mut::<u64>().cast();
        // SAFETY: the paths end with a NUL, or are NULL; NULL may be closed.
        unsafe {
            assert_ne!(dab_model_open(path, &mut handle), DAB_OK);
            assert!(handle.is_null());
            dab_model_close(handle);
        }
    }
}

#[test]
fn a_name_that_cannot_be_had_is_empty_whatever_was_wrong() {
    let (mut name, mut nobody) = ([b'x'; 8], [0u64; DAB_MODEL_BYTES / 8]);
    for (model, status) in
        [(core::ptr::null_mut(), DAB_ERR_NULL), (nobody.as_mut_ptr().cast(), DAB_ERR_NOT_INITIALIZED)]
    {
        for ask in [dab_input_name, dab_output_name] {
            name[0] = b'x';
            // SAFETY: the name has eight writable bytes; the model is none, which must be noticed.
            let found = unsafe { ask(model, 0, name.as_mut_ptr().cast(), name.len()) };
            assert_eq!((found, name[0]), (status, 0));
        }
    }
}

#[test]
fn a_monitor_that_a_model_does_not_have_has_no_tick_and_no_configuration() {
    let artifact = AlignedBytes::from(&*real()[0].1.to_bytes().expect("a model"));
    let artifact = artifact.as_slice();
    let mut storage = [0u64; DAB_MODEL_BYTES / 8];
    let mut handle: *mut Handle = core::ptr::null_mut();
    let mut config = core::mem::MaybeUninit::<MonitorConfig>::zeroed();
    // SAFETY: every pointer has the memory that its size says, or is NULL; a configuration of zeros is a value.
    unsafe {
        let (to, from) = (storage.as_mut_ptr().cast(), artifact.as_ptr().cast());
        assert_eq!(dab_model_init(to, DAB_MODEL_BYTES, from, artifact.len(), &mut handle), DAB_OK);
        let config = config.assume_init_mut();
        let size = size_of::<MonitorConfig>() as u32;
        let (mut tick, mut ticks) = (0.25f32, [0.25f32; 2]);
        // The tick, whatever is wrong with the configuration.
        assert_eq!(dab_model_monitor(handle, core::ptr::null_mut(), &mut tick), DAB_ERR_NULL);
        assert_eq!(tick, 0.0);
        (tick, config.size) = (0.25, 7);
        assert_eq!(dab_model_monitor(handle, config, &mut tick), DAB_ERR_STRUCT_SIZE);
        assert_eq!(tick, 0.0);
        (tick, config.size, config.window) = (0.25, size, 9);
        assert_eq!(dab_model_monitor(handle, config, &mut tick), DAB_ERR_NO_MONITOR);
        assert_eq!((tick, config.size, config.window), (0.0, size, 0));
        // The configuration, whatever is wrong with the tick.
        config.window = 9;
        let odd = ticks.as_mut_ptr().wrapping_byte_add(1);
        assert_eq!(dab_model_monitor(handle, config, odd), DAB_ERR_MISALIGNED);
        assert_eq!((ticks, config.window), ([0.25; 2], 0));
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
