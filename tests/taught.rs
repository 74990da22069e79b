//! "This is normal now", in the artifact: the bits of a memory beside the model, only ever more familiar, and a fault still
//! alarms.

use dab_core::artifact::schema::{CovarianceKind, TAUGHT};
use dab_core::artifact::taught::add_taught;
use dab_core::artifact::{AlignedBytes, ArtifactError, Part};
use dab_core::codebook::{CodebookView, PrecisionLayout};
use dab_core::memory::{Config, Head, MemoryError, MemoryView, Width, storage_len};
use dab_core::teach::TeachError;
use dab_core::{Model, Verdict};
use dab_tests::patch::{seal, word};
use dab_tests::repository;
use dab_tests::specs::{Random, any, bare};

const PLACES: usize = 8;

/// A model's file with what `rows` teach it; `check` sees both models and the memory that was taught the same.
fn taught(
    bytes: &[u8],
    rows: &[Vec<f32>],
    spawn: f32,
    check: impl FnOnce(&Model<'_>, &Model<'_>, &mut MemoryView<'_>),
) -> Vec<u8> {
    let before = AlignedBytes::from(bytes);
    let model = before.model().expect("a model");
    let dim = model.shape().dim;
    let mut head = Head::new(Config { spawn, ..Config::DEFAULT }).expect("settings");
    let mut storage = vec![0.0; storage_len(PLACES, dim)];
    let mut memory = MemoryView::new(&mut head, PLACES, dim, &mut storage).expect("a memory");
    let mut scratch = vec![0.0; model.scratch_len()];
    for row in rows {
        model.teach(&mut memory, row, &mut scratch).expect("a place");
    }
    let more = [("taught".to_owned(), "rows".to_owned())];
    let bytes = add_taught(bytes, &memory.codes(), &more).expect("taught codes");
    let after = AlignedBytes::from(&*bytes);
    let after = after.model().expect("a taught model");
    after.self_test(&mut vec![0.0; after.scratch_len()]).expect("its own known answers");
    check(&model, &after, &mut memory);
    bytes
}

#[test]
fn taught_codes_in_the_file_give_the_bits_of_a_memory_and_only_lower() {
    let mut random = Random(16);
    let mut lowered = 0;
    for round in 0..120 {
        let kind = random.pick(&CovarianceKind::ALL);
        let spec = any(&mut random, kind, 1.0);
        let bytes = spec.to_bytes().expect("a model");
        let rows: Vec<Vec<f32>> = (0..PLACES).map(|_| random.floats(spec.inputs, 20.0)).collect();
        let other: Vec<Vec<f32>> = (0..20).map(|_| random.floats(spec.inputs, 20.0)).collect();
        taught(&bytes, &rows, 1.0, |model, after, memory| {
            let mut scratch = vec![f32::NAN; after.scratch_len()];
            for input in rows.iter().chain(&other) {
                let alone = model.assess(input, &mut scratch).expect("an input");
                let beside = model.assess_taught(memory, input, &mut scratch).expect("an input");
                scratch.fill(f32::NAN);
                let found = after.assess(input, &mut scratch).expect("an input");
                assert_eq!(found, beside, "round {round}");
                assert_eq!(found.uncertainty.to_bits(), beside.uncertainty.to_bits());
                assert!(found.uncertainty <= alone.uncertainty && found.score() <= alone.score());
                assert!(found.p_value >= alone.p_value, "a p-value can only rise");
                lowered += u32::from(found.score() < alone.score());
                let mut outputs = vec![0.0; after.shape().outputs];
                let predicted = after.predict_into(input, &mut outputs, &mut scratch);
                assert_eq!(predicted, Ok(found), "every entry point says the same");
            }
        });
    }
    assert!(lowered > 500, "{lowered}");
}

#[test]
fn what_lies_at_the_end_of_the_domain_is_not_taught() {
    const END: f32 = (1u64 << 50) as f32;
    let mut random = Random(30);
    for round in 0..60 {
        let kind = random.pick(&CovarianceKind::ALL);
        let spec = any(&mut random, kind, 1.0);
        let bytes = AlignedBytes::from(&*spec.to_bytes().expect("a model"));
        let model = bytes.model().expect("a model");
        let (dim, mut scratch) = (model.shape().dim, vec![0.0; model.scratch_len()]);
        let mut head = Head::new(Config::DEFAULT).expect("settings");
        let mut storage = vec![0.0; storage_len(PLACES, dim)];
        let mut memory = MemoryView::new(&mut head, PLACES, dim, &mut storage).expect("a memory");
        let sound = random.floats(spec.inputs, 2.0);
        model.teach(&mut memory, &sound, &mut scratch).expect("a place");
        let before = memory.assess_taught(&vec![0.0; dim], Width::EveryStd(1.0)).expect("a Gaussian");
        for value in [1e30, -1e30, f32::MAX, END, -END] {
            let mut broken = sound.clone();
            broken[round % spec.inputs] = value;
            let refused = model.teach(&mut memory, &broken, &mut scratch);
            assert_eq!(refused, Err(TeachError::Memory(MemoryError::Saturated)), "round {round}, {value}");
        }
        // The same of a memory alone, for a mean and for a deviation.
        let mut mean = vec![0.5; dim];
        mean[round % dim] = -END;
        assert_eq!(memory.teach(&mean, Width::EveryStd(1.0), None), Err(MemoryError::Saturated));
        assert_eq!(memory.teach(&vec![0.5; dim], Width::EveryStd(1e8), None), Err(MemoryError::Saturated));
        let wide = vec![END; dim];
        let base = memory.teach(&vec![0.5; dim], Width::EveryStd(1.0), Some(&wide));
        assert_eq!(base, Err(MemoryError::Saturated));
        let after = memory.assess_taught(&vec![0.0; dim], Width::EveryStd(1.0)).expect("a Gaussian");
        assert_eq!((memory.pinned(), after), (1, before), "a refused call changes nothing");
        // One step inside the domain it is taught: the line is drawn there and nowhere else.
        mean[round % dim] = -END.next_down();
        memory.teach(&mean, Width::EveryStd(1.0), None).expect("a place");
        assert_eq!(memory.pinned(), 2);
    }
}

/// Samples of the current in a window of the motor task; one of the voltage follows.
const WINDOW: usize = 24;

/// The windows of examples/motor/taught.bin as inputs: a pump from 30 to 139, an open winding from 160 to 199.
fn windows() -> Vec<Vec<f32>> {
    let stream = std::fs::read(repository().join("examples/motor/taught.bin")).expect("the recorded stream");
    let window = |bytes: &[u8]| {
        let counts: Vec<i32> = bytes.chunks(2).map(|c| i32::from(u16::from_le_bytes([c[0], c[1]]))).collect();
        let mean = counts[..WINDOW].iter().sum::<i32>() / WINDOW as i32;
        let inputs = counts[..WINDOW].iter().map(|c| c - mean).chain([mean, counts[WINDOW]]);
        inputs.map(|x| x as f32).collect()
    };
    stream.chunks(2 * (WINDOW + 1)).map(window).collect()
}

#[test]
fn a_taught_load_alarms_no_more_and_an_open_winding_still_does() {
    let bytes = std::fs::read(repository().join("examples/motor/model.dab")).expect("the motor's model");
    let windows = windows();
    taught(&bytes, &windows[60..110], 4.0, |model, after, _| {
        let share = |model: &Model<'_>, windows: &[Vec<f32>]| {
            let mut scratch = vec![0.0; model.scratch_len()];
            let alarms = windows.iter().filter(|w| {
                model.assess(w, &mut scratch).expect("an input").verdict == Some(Verdict::Unfamiliar)
            });
            alarms.count() as f64 / windows.len() as f64
        };
        let (pump, winding) = (&windows[110..140], &windows[160..200]);
        println!("pump: {} before, {} after", share(model, pump), share(after, pump));
        println!("open winding: {} before, {} after", share(model, winding), share(after, winding));
        assert!(share(model, pump) > 0.5 && share(after, pump) < 0.2);
        assert!(share(after, winding) > 0.8 * share(model, winding) && share(after, winding) > 0.5);
        assert_eq!(share(model, &windows[..30]), share(after, &windows[..30]), "what was familiar stays so");
    });
}

#[test]
fn a_model_can_be_taught_again_and_damage_is_refused() {
    let bytes = std::fs::read(repository().join("examples/motor/model.dab")).expect("the motor's model");
    let windows = windows();
    let once = taught(&bytes, &windows[60..70], 4.0, |_, _, _| ());
    let codes = |bytes: &[u8]| {
        let bytes = AlignedBytes::from(bytes);
        bytes.model().expect("a model").taught().map_or(0, |taught| taught.len())
    };
    let twice = taught(&once, &windows[160..170], 4.0, |model, after, _| {
        let (a, b) = (model.taught().expect("codes"), after.taught().expect("codes"));
        assert!(b.len() > a.len() && b.means.starts_with(a.means), "those of before come first");
    });
    assert!(codes(&bytes) == 0 && codes(&once) > 0 && codes(&twice) > codes(&once));
    assert_eq!(word(&once, 16) & TAUGHT, TAUGHT);
    let info = dab_core::artifact::info::read_info(&once).expect("an info section");
    assert_eq!(info[0].0, "taught");

    let end = word(&once, 40) as usize;
    let refused = |at: usize, bytes: [u8; 4]| {
        let mut damaged = once.clone();
        damaged[at..at + 4].copy_from_slice(&bytes);
        seal(&mut damaged);
        AlignedBytes::from(&*damaged).model().err()
    };
    let count = codes(&once);
    let limit = |value| Some(ArtifactError::Limit { field: "taught.codes", value, max: 65536 });
    assert_eq!(refused(end - 4, 0u32.to_le_bytes()), limit(0));
    assert_eq!(refused(end - 4, 70_000u32.to_le_bytes()), limit(70_000));
    let many = refused(end - 4, 60_000u32.to_le_bytes());
    assert!(matches!(many, Some(ArtifactError::ParamCount { expected: 600_002, .. })), "{many:?}");
    let other = refused(end - 4, (count as u32 + 1).to_le_bytes());
    assert!(matches!(other, Some(ArtifactError::ParamCount { .. })), "{other:?}");
    let range = |index| Some(ArtifactError::OutOfRange { part: Part::Taught, index });
    assert_eq!(refused(end - 8, (-1f32).to_le_bytes()), range(0), "alpha");
    assert_eq!(refused(end - 12, 0f32.to_le_bytes()), range(count - 1), "a count");
    let precision = end - 8 - 4 * (2 * count + 4 * count);
    assert_eq!(refused(precision, (-2f32).to_le_bytes()), range(0), "a precision");
    let mean = precision - 16 * count;
    let nan = refused(mean, f32::NAN.to_le_bytes());
    assert_eq!(nan, Some(ArtifactError::NonFinite { part: Part::Taught, index: 0 }));
    // Without its bit the file has more parameters than it says.
    let mut bare = once.clone();
    bare[16] &= !(TAUGHT as u8);
    seal(&mut bare);
    assert!(matches!(AlignedBytes::from(&*bare).model().err(), Some(ArtifactError::Schema { .. })));
}

#[test]
fn a_model_is_taught_65536_codes_and_not_one_more() {
    const MOST: usize = 65_536;
    let bytes = bare(&mut Random(18), CovarianceKind::Diagonal, 1, 1, 1.0).to_bytes().expect("a model");
    let (means, ones, zeros) = ([0.5; MOST + 1], [1.0; MOST + 1], [0.0; MOST + 1]);
    let teach = |bytes: &[u8], count: usize| {
        let codes = CodebookView {
            dim: 1,
            means: &means[..count],
            precisions: &ones[..count],
            layout: PrecisionLayout::Diagonal,
            log_dets: &zeros[..count],
            priors: &ones[..count],
            alpha: 1.0,
        };
        add_taught(bytes, &codes, &[])
    };
    let full = teach(&bytes, MOST).expect("room");
    assert_eq!(
        AlignedBytes::from(&*full).model().expect("a model").taught().map(CodebookView::len),
        Some(MOST)
    );
    let limit = ArtifactError::Limit { field: "taught.codes", value: MOST as u32 + 1, max: MOST as u32 };
    assert_eq!(teach(&bytes, MOST + 1), Err(limit));
    assert_eq!(teach(&full, 1), Err(limit), "with those of before");
}
