//! The C interface called from Rust, at the ends of its rules. What C programs get from it is in `tests/c`.

use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};

use dab::assess::{
    Assessment, DAB_FLAG_AMBIGUITY, DAB_FLAG_CALIBRATED, DAB_FLAG_CHANNELS, DAB_FLAG_SATURATED, dab_assess,
};
use dab::attribute::{dab_attribute, dab_attribution_bytes};
use dab::ellipse::{DAB_ELLIPSE_HEAD_BYTES, dab_ellipse_bytes, dab_ellipse_init, dab_ellipse_observe};
use dab::host::{dab_model_close, dab_model_open};
use dab::memory::{
    DAB_MEMORY_HEAD_BYTES, Memory, MemoryConfig, MemoryStatistics, Novelty, dab_memory_assess,
    dab_memory_bytes, dab_memory_init, dab_memory_observe_batch, dab_memory_stats,
};
use dab::model::{
    DAB_MODEL_BYTES, Handle, Shape, dab_model_bytes, dab_model_check, dab_model_init, dab_model_shape,
};
use dab::monitor::{
    DAB_FALLBACK, DAB_NOMINAL, DAB_STALE, Monitor, MonitorConfig, dab_monitor_init, dab_monitor_observe,
    dab_monitor_poll,
};
use dab::saved::{dab_memory_restore, dab_memory_save};
use dab::status::{
    DAB_ERR_BODY_CHECKSUM, DAB_ERR_CONFIG, DAB_ERR_NO_MEANS, DAB_ERR_NULL, DAB_ERR_OUTPUT_LENGTH,
    DAB_ERR_OVERLAP, DAB_ERR_TOO_SMALL, DAB_ERR_TRAILING_BYTES, DAB_OK, dab_status_string,
};
use dab::tuned::dab_model_monitor;
use dab_core::artifact::AlignedBytes;
use dab_core::{CovarianceKind, ellipse, memory};
use dab_tests::attack::{MLP, SPECTRAL, VIEWS, parts};
use dab_tests::c_cases::with_monitor;
use dab_tests::specs::{Random, bare};

/// A model in storage of its own.
struct Started {
    handle: *mut Handle,
    _storage: Box<[u64; DAB_MODEL_BYTES / 8]>,
    artifact: AlignedBytes,
}

fn started(artifact: AlignedBytes) -> Started {
    let mut storage = Box::new([0u64; DAB_MODEL_BYTES / 8]);
    let (to, from, mut handle) = (storage.as_mut_ptr().cast(), artifact.as_slice(), null_mut());
    // SAFETY: storage and artifact have the bytes that they are said to have, and live as long as the handle.
    let status =
        unsafe { dab_model_init(to, dab_model_bytes(), from.as_ptr().cast(), from.len(), &mut handle) };
    assert_eq!(status, DAB_OK);
    Started { handle, _storage: storage, artifact }
}

/// Zeros, but for the size.
fn sized<T>(size: impl FnOnce(&mut T)) -> T {
    // SAFETY: the structs of dab.h are numbers only, for which zeros are a value.
    let mut empty = unsafe { core::mem::zeroed::<T>() };
    size(&mut empty);
    empty
}

fn empty() -> Assessment {
    sized(|out: &mut Assessment| out.size = size_of::<Assessment>() as u32)
}

#[test]
fn an_assessment_has_the_numbers_and_the_flags_of_the_core() {
    let mut saturated = 0;
    // Narrow codes, and means as far away as they may be: the largest distance is no f32.
    let mut narrow = bare(&mut Random(1), CovarianceKind::Diagonal, 2, 3, 1.0);
    narrow.head.weight.iter_mut().for_each(|w| *w *= 1e9);
    narrow.codes.covs.iter_mut().for_each(|c| *c *= 1e-12);
    for (index, (artifact, own)) in [
        (parts(MLP).join(), DAB_FLAG_CALIBRATED),
        (parts(SPECTRAL).join(), 0),
        (parts(VIEWS).join(), DAB_FLAG_CALIBRATED | DAB_FLAG_CHANNELS | DAB_FLAG_AMBIGUITY),
        (AlignedBytes::from(&*narrow.to_bytes().expect("a model")), 0),
    ]
    .into_iter()
    .enumerate()
    {
        let started = started(artifact);
        let model = started.artifact.model().expect("a model");
        let mut scratch = vec![0f32; model.scratch_len()];
        for value in [0.5, 1e3, f32::MAX] {
            let input = vec![value; model.shape().inputs];
            let expected = model.assess(&input, &mut scratch).expect("an assessment");
            let (mut found, bytes) = (empty(), size_of_val(&*scratch));
            // SAFETY: every pointer has the memory that its size says.
            let status = unsafe {
                let scratch = scratch.as_mut_ptr().cast();
                dab_assess(started.handle, input.as_ptr(), input.len(), scratch, bytes, &mut found)
            };
            assert_eq!(status, DAB_OK);
            saturated += usize::from(expected.saturated);
            let flags = own | if expected.saturated { DAB_FLAG_SATURATED } else { 0 };
            assert_eq!((found.flags, found.uncertainty), (flags, expected.uncertainty), "{index}");
            let none = |value: Option<f32>| value.unwrap_or(-1.0);
            assert_eq!(
                (found.p_value, found.unfamiliarity, found.ambiguity_p),
                (none(expected.p_value), none(expected.unfamiliarity), none(expected.ambiguity_p))
            );
        }
        let mut refused = empty();
        let bytes = size_of_val(&*scratch);
        // SAFETY: the scratch has its bytes; the input is NULL, which must be noticed.
        let status = unsafe {
            dab_assess(started.handle, null(), 1, scratch.as_mut_ptr().cast(), bytes, &mut refused)
        };
        assert_eq!((status, refused.p_value, refused.ambiguity_p), (DAB_ERR_NULL, -1.0, -1.0));
    }
    assert!(saturated > 0, "no input was too far for its distance");
}

#[test]
fn an_attribution_without_a_place_for_it_is_refused() {
    let model = bare(&mut Random(2), CovarianceKind::Diagonal, 2, 3, 1.0).to_bytes().expect("a model");
    let started = started(AlignedBytes::from(&*model));
    let input = [0.5f32; 4];
    // SAFETY: every pointer has the memory that its size says, or is NULL.
    unsafe {
        let mut scratch = vec![0f32; dab_attribution_bytes(started.handle) / 4];
        let (place, bytes) = (scratch.as_mut_ptr().cast::<c_void>(), 4 * scratch.len());
        let (mut out, mut shares, own) = (empty(), [0f32; 4], [0f32; 4]);
        let mut ask = |means, uncertainty| {
            let none = null_mut();
            dab_attribute(
                started.handle,
                input.as_ptr(),
                4,
                means,
                null(),
                uncertainty,
                none,
                4,
                place,
                bytes,
                &mut out,
            )
        };
        // This model has no means of its own, but that is found later.
        assert_eq!(ask(null(), null_mut()), DAB_ERR_OUTPUT_LENGTH);
        assert_eq!(ask(null(), shares.as_mut_ptr()), DAB_ERR_NO_MEANS);
        assert_eq!(ask(own.as_ptr(), shares.as_mut_ptr()), DAB_OK);
    }
}

#[test]
fn an_ellipse_takes_the_bytes_that_it_asks_for_and_knows_where_it_ends() {
    let bytes = dab_ellipse_bytes(3);
    assert_eq!(bytes, DAB_ELLIPSE_HEAD_BYTES + 4 * ellipse::storage_len(3));
    // Three features, and a square, behind it.
    let mut storage = vec![0u64; bytes.div_ceil(8) + 4];
    let place = storage.as_mut_ptr().cast::<c_void>();
    let (mut found, mut square) = (null_mut(), 0.0);
    // SAFETY: the storage has more bytes than it is said to have; the features lie behind it, or over its end.
    unsafe {
        assert_eq!(dab_ellipse_init(place, bytes - 1, 3, 1.0, &mut found), DAB_ERR_TOO_SMALL);
        assert_eq!(dab_ellipse_init(place, bytes, 3, 1.0, &mut found), DAB_OK);
        let behind = place.wrapping_byte_add(bytes).cast::<f32>();
        assert_eq!(dab_ellipse_observe(found, behind, 3, 0, &mut square), DAB_OK);
        assert_eq!(dab_ellipse_observe(found, behind.wrapping_sub(1), 3, 0, &mut square), DAB_ERR_OVERLAP);
        let features = [1.0f32, 2.0, 3.0];
        assert_eq!(dab_ellipse_observe(found, features.as_ptr(), 3, 0, behind), DAB_OK);
        assert_eq!(behind.read(), 14.0);
        let last = behind.wrapping_sub(1);
        assert_eq!(dab_ellipse_observe(found, features.as_ptr(), 3, 0, last), DAB_ERR_OVERLAP);
    }
}

/// Room for three codes of two dimensions, and some words behind it.
fn memory(storage: &mut [u64]) -> *mut Memory {
    let config = sized(|config: &mut MemoryConfig| {
        (config.size, config.codes, config.dim) = (size_of::<MemoryConfig>() as u32, 3, 2);
        config.std = 1.0;
    });
    let mut found = null_mut();
    let bytes = dab_memory_bytes(3, 2);
    assert_eq!(bytes, DAB_MEMORY_HEAD_BYTES + 4 * memory::storage_len(3, 2));
    assert!(bytes <= size_of_val(storage));
    // SAFETY: the storage has the bytes.
    assert_eq!(unsafe { dab_memory_init(storage.as_mut_ptr().cast(), bytes, &config, &mut found) }, DAB_OK);
    found
}

fn statistics(memory: *mut Memory) -> MemoryStatistics {
    let mut found = sized(|out: &mut MemoryStatistics| out.size = size_of::<MemoryStatistics>() as u32);
    // SAFETY: a memory that was started, and a result of the size that it says.
    assert_eq!(unsafe { dab_memory_stats(memory, &mut found) }, DAB_OK);
    found
}

#[test]
fn a_memory_knows_where_it_ends_and_learns_no_row_of_a_refused_batch() {
    let bytes = dab_memory_bytes(3, 2);
    let mut storage = vec![0u64; bytes.div_ceil(8) + 8];
    let memory = memory(&mut storage);
    let behind = storage.as_mut_ptr().wrapping_byte_add(bytes).cast::<f32>();
    let mut out = [sized(|out: &mut Novelty| out.size = size_of::<Novelty>() as u32); 2];
    // SAFETY: the input lies in the storage, behind the memory or over its end; every pointer has what its size says.
    unsafe {
        assert_eq!(dab_memory_assess(memory, behind, null(), 2, out.as_mut_ptr()), DAB_OK);
        let over = behind.wrapping_sub(1);
        assert_eq!(dab_memory_assess(memory, over, null(), 2, out.as_mut_ptr()), DAB_ERR_OVERLAP);
        let (means, stds) = ([1.0f32; 4], [1.0f32, 1.0, 1.0, 0.0]);
        let (means, to) = (means.as_ptr(), out.as_mut_ptr());
        assert_eq!(dab_memory_observe_batch(memory, means, stds.as_ptr(), 2, 2, to), DAB_ERR_CONFIG);
        assert_eq!((statistics(memory).used, statistics(memory).visits), (0, 0.0));
        assert_eq!(dab_memory_observe_batch(memory, means, null(), 2, 2, to), DAB_OK);
        assert_eq!(statistics(memory).visits, 2.0);
    }
}

#[test]
fn a_memory_is_saved_into_as_many_bytes_as_it_says() {
    let mut storage = vec![0u64; dab_memory_bytes(3, 2).div_ceil(8)];
    let memory = memory(&mut storage);
    let mut out = sized(|out: &mut Novelty| out.size = size_of::<Novelty>() as u32);
    // SAFETY: every pointer has the memory that its size says.
    unsafe {
        assert_eq!(dab_memory_observe_batch(memory, [1.0f32, 2.0].as_ptr(), null(), 1, 2, &mut out), DAB_OK);
        let needed = statistics(memory).saved_bytes as usize;
        let mut saved = vec![0u8; needed];
        let place = saved.as_mut_ptr().cast::<c_void>();
        assert_eq!(dab_memory_save(memory, place, needed - 1), DAB_ERR_TOO_SMALL);
        assert_eq!(dab_memory_save(memory, place, needed), DAB_OK);
        assert_eq!(dab_memory_restore(memory, place, needed), DAB_OK);
    }
}

#[test]
fn a_model_that_changed_in_memory_is_found() {
    assert_eq!(dab_model_bytes(), DAB_MODEL_BYTES);
    let model = parts(MLP).join();
    let len = model.as_slice().len();
    let mut words = vec![0u128; len.div_ceil(16)];
    let artifact = words.as_mut_ptr().cast::<u8>();
    let (mut storage, mut handle) = ([0u64; DAB_MODEL_BYTES / 8], null_mut());
    // SAFETY: storage and artifact have their bytes; the artifact is changed between two calls, as a fault of the memory would.
    unsafe {
        artifact.copy_from_nonoverlapping(model.as_slice().as_ptr(), len);
        let to = storage.as_mut_ptr().cast();
        assert_eq!(dab_model_init(to, DAB_MODEL_BYTES, artifact.cast(), len, &mut handle), DAB_OK);
        assert_eq!(dab_model_check(handle), DAB_OK);
        *artifact.wrapping_add(len - 1) ^= 4;
        assert_eq!(dab_model_check(handle), DAB_ERR_BODY_CHECKSUM);
    }
}

#[test]
fn a_monitor_says_each_of_its_states_and_a_file_has_its_settings() {
    let started = started(AlignedBytes::from(&*with_monitor()));
    let whole = started.artifact.model().expect("a model").monitor_config().expect("a monitor");
    let mut config = sized(|out: &mut MonitorConfig| out.size = size_of::<MonitorConfig>() as u32);
    let mut tick = 0.0;
    let mut monitor = core::mem::MaybeUninit::<Monitor>::zeroed();
    // SAFETY: every pointer has the memory that its size says.
    unsafe {
        assert_eq!(dab_model_monitor(started.handle, &mut config, &mut tick), DAB_OK);
        assert!(!whole.drift.restart, "the capital is kept");
        assert_eq!((config.drift_keeps, config.window, tick), (1, whole.window, 0.01));
        (config.window, config.enter_votes, config.exit_votes, config.reject_votes) = (1, 1, 1, 0);
        (config.min_dwell, config.timeout) = (0, 5);
        let monitor = monitor.as_mut_ptr();
        assert_eq!(dab_monitor_init(monitor, &config), DAB_OK);
        assert_eq!(dab_monitor_poll(monitor, 0), DAB_STALE);
        assert_eq!(dab_monitor_observe(monitor, 1, 1e3), DAB_FALLBACK);
        assert_eq!(dab_monitor_observe(monitor, 2, 0.0), DAB_NOMINAL);
        assert_eq!(dab_monitor_poll(monitor, 8), DAB_STALE);
    }
}

#[test]
fn every_status_has_its_words() {
    // SAFETY: the words are static and end with a NUL.
    let words = |status| unsafe { CStr::from_ptr(dab_status_string(status)) }.to_str().expect("UTF-8");
    assert_eq!(words(DAB_OK), "success");
    assert!(words(DAB_ERR_NULL).contains("NULL"), "{}", words(DAB_ERR_NULL));
    assert_eq!((words(1), words(-9999)), ("unknown status", "unknown status"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_model_is_read_from_a_file_or_a_pipe_to_its_end() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    let model = parts(MLP).join();
    let open = |path: &str| {
        let path = std::ffi::CString::new(path).expect("no NUL");
        let mut handle = null_mut();
        // SAFETY: the path ends with a NUL.
        (unsafe { dab_model_open(path.as_ptr(), &mut handle) }, handle)
    };
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls.dab");
    std::fs::write(&file, model.as_slice()).expect("space");
    let (status, handle) = open(file.to_str().expect("UTF-8"));
    let mut shape = sized(|out: &mut Shape| out.size = size_of::<Shape>() as u32);
    // SAFETY: the handle is that of an open model, which is closed once.
    unsafe {
        assert_eq!((status, dab_model_shape(handle, &mut shape), shape.inputs), (DAB_OK, DAB_OK, 4));
        dab_model_close(handle);
    }
    for (more, expected) in [(&b""[..], DAB_OK), (b"x", DAB_ERR_TRAILING_BYTES)] {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let bytes = [model.as_slice(), more].concat();
        let written = std::thread::spawn(move || writer.write_all(&bytes));
        let (status, handle) = open(&format!("/proc/self/fd/{}", reader.as_raw_fd()));
        drop(reader);
        // A refused file may not be read to its end.
        let _ = written.join();
        assert_eq!(status, expected);
        // SAFETY: NULL, or the handle of an open model.
        unsafe { dab_model_close(handle) };
    }
}
