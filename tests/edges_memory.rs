//! Where the rules of a memory end: what it keeps, moves, forgets and refuses, also of its saved bytes.

use dab_core::artifact::ArtifactError;
use dab_core::artifact::taught::add_taught;
use dab_core::gaussian::Spread;
use dab_core::memory::{self, Head, MemoryError, MemoryView, Width, std_of, stds_into};
use dab_tests::patch::crc32c;
use dab_tests::specs::real;

/// The ends of the numeric domain.
const LARGEST: f32 = (1u64 << 50) as f32;
const SMALLEST: f32 = 1.0 / LARGEST;

#[test]
fn a_memory_counts_its_codes_and_removes_the_one_that_is_meant() {
    let config = memory::Config { spawn: 1.0, ..memory::Config::DEFAULT };
    let mut head = Head::new(config).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(5, 1)];
    let mut memory = MemoryView::new(&mut head, 5, 1, &mut floats).expect("memory");
    assert!(memory.is_empty() && memory.capacity() == 5 && memory.dim() == 1 && memory.total() == 0.0);
    let mean = |memory: &MemoryView<'_>| memory.codes().means.to_vec();
    for x in [10.0, 20.0, 30.0] {
        let novelty = memory.teach(&[x], Width::Std(&[1.0]), None).expect("room");
        assert!(novelty.spawned, "{novelty:?}");
    }
    let again = memory.teach(&[20.0], Width::Std(&[1.0]), None).expect("room");
    assert!(!again.spawned && again.nearest == 1, "{again:?}");
    memory.observe(&[-10.0], Width::Std(&[1.0])).expect("finite");
    memory.observe(&[-20.0], Width::Std(&[1.0])).expect("finite");
    assert!(!memory.is_empty() && memory.len() == 5 && memory.pinned() == 3);
    assert_eq!(mean(&memory), [10.0, 20.0, 30.0, -10.0, -20.0]);
    assert_eq!(memory.total(), 6.0);
    // The last taught code gets the number; what was observed closes the gap.
    memory.remove(0).expect("a taught code");
    assert_eq!(mean(&memory), [30.0, 20.0, -20.0, -10.0]);
    assert_eq!((memory.len(), memory.pinned()), (4, 2));
    assert_eq!(memory.remove(2), Err(MemoryError::Index { index: 2, pinned: 2 }));
    memory.remove(1).expect("a taught code");
    assert_eq!(mean(&memory), [30.0, -10.0, -20.0]);
    memory.clear();
    assert_eq!(mean(&memory), [30.0]);
    // Codes of more than one number are moved whole.
    let mut head = Head::new(config).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(4, 2)];
    let mut memory = MemoryView::new(&mut head, 4, 2, &mut floats).expect("memory");
    for x in [10.0, 20.0, 30.0, 40.0] {
        memory.teach(&[x, -x], Width::Std(&[1.0; 2]), None).expect("room");
    }
    memory.remove(0).expect("a taught code");
    assert_eq!(mean(&memory), [40.0, -40.0, 20.0, -20.0, 30.0, -30.0]);
}

#[test]
fn deviations_are_those_of_the_spread() {
    assert_eq!([std_of(4.0), std_of(0.25)], [0.5, 2.0]);
    let stds = |spread: Spread<'_>| {
        let mut out = [f32::NAN; 2];
        stds_into(spread, &mut out);
        out
    };
    assert_eq!(stds(Spread::Identity), [1.0; 2]);
    assert_eq!(stds(Spread::Diagonal(&[9.0, 0.25])), [3.0, 0.5]);
    assert_eq!(stds(Spread::Full { factor: &[3.0, 0.0, 3.0, 4.0], lower: true }), [3.0, 5.0]);
    // The ends of the numeric domain: 2^±25 is the root of 2^±50.
    let (large, small) = ((1u64 << 25) as f32, 1.0 / (1u64 << 25) as f32);
    assert_eq!(stds(Spread::Diagonal(&[f32::MAX, 0.0])), [large, small]);
}

#[test]
fn what_a_memory_keeps_forgets_and_refuses_has_ends() {
    let config = |change: fn(&mut memory::Config)| {
        let mut config = memory::Config::DEFAULT;
        change(&mut config);
        Head::new(config).is_ok()
    };
    assert!(config(|c| c.keep = 1.0) && config(|c| c.keep = SMALLEST));
    assert!(
        !config(|c| c.keep = 0.0) && !config(|c| c.keep = -0.5) && !config(|c| c.keep = 1.0f32.next_up())
    );
    assert!(!config(|c| c.keep = SMALLEST.next_down()));

    // Half of a count is forgotten with every observation; below 1/1024 the place is free.
    let head = memory::Config { keep: 0.5, spawn: 1.0, ..memory::Config::DEFAULT };
    let mut head = Head::new(head).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(2, 1)];
    let mut memory = MemoryView::new(&mut head, 2, 1, &mut floats).expect("memory");
    memory.observe(&[0.0], Width::Std(&[1.0])).expect("finite");
    for _ in 0..10 {
        memory.observe(&[100.0], Width::Std(&[1.0])).expect("finite");
    }
    assert_eq!(memory.codes().priors[0], 1.0 / 1024.0, "at 1/1024 it is still known");
    memory.observe(&[100.0], Width::Std(&[1.0])).expect("finite");
    assert_eq!(memory.codes().priors[0], 0.0);
    // The free place is used again.
    assert!(memory.observe(&[-100.0], Width::Std(&[1.0])).expect("finite").spawned);
    assert_eq!(memory.codes().means, [-100.0, 100.0]);

    // A full memory: what is far from a taught code moves the nearest observed one.
    let config = memory::Config { spawn: 1.0, ..memory::Config::DEFAULT };
    for (observed, expected) in
        [([100.0, -100.0], [0.0, 100.0, -55.0]), ([-100.0, 100.0], [0.0, -55.0, 100.0])]
    {
        let mut head = Head::new(config).expect("a configuration");
        let mut floats = vec![0.0; memory::storage_len(3, 1)];
        let mut memory = MemoryView::new(&mut head, 3, 1, &mut floats).expect("memory");
        memory.teach(&[0.0], Width::Std(&[1.0]), None).expect("room");
        for x in observed {
            memory.observe(&[x], Width::Std(&[1.0])).expect("finite");
        }
        let found = memory.observe(&[-10.0], Width::Std(&[1.0])).expect("finite");
        assert!(found.nearest == 0 && !found.spawned, "{found:?}");
        assert_eq!(memory.codes().means, expected);
    }
    // Of two that are equally near, the first moves.
    let mut head = Head::new(config).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(3, 2)];
    let mut memory = MemoryView::new(&mut head, 3, 2, &mut floats).expect("memory");
    memory.teach(&[0.0, 0.0], Width::Std(&[1.0; 2]), None).expect("room");
    for x in [[100.0, 0.0], [-100.0, 0.0], [0.0, 10.0]] {
        memory.observe(&x, Width::Std(&[1.0; 2])).expect("finite");
    }
    assert_eq!(memory.codes().means, [0.0, 0.0, 50.0, 5.0, -100.0, 0.0]);
    // A distance of `spawn` to the bit is not far: ½ x² = 1 for x = √2 is not exact, 2 nats for x = 2 are.
    let config = memory::Config { spawn: 2.0, ..memory::Config::DEFAULT };
    let mut head = Head::new(config).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(3, 1)];
    let mut memory = MemoryView::new(&mut head, 3, 1, &mut floats).expect("memory");
    memory.observe(&[0.0], Width::Std(&[1.0])).expect("finite");
    assert!(!memory.observe(&[2.0], Width::Std(&[1.0])).expect("finite").spawned);
}

#[test]
fn the_place_of_a_forgotten_code_is_used_again_behind_those_that_were_taught() {
    let config = memory::Config { keep: 0.5, spawn: 1.0, ..memory::Config::DEFAULT };
    let mut head = Head::new(config).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(4, 1)];
    let mut memory = MemoryView::new(&mut head, 4, 1, &mut floats).expect("memory");
    for x in [0.0, 1000.0] {
        memory.teach(&[x], Width::Std(&[1.0]), None).expect("room");
    }
    let mut observe = |x: f32, times: usize| {
        for _ in 0..times {
            memory.observe(&[x], Width::Std(&[1.0])).expect("finite");
        }
        memory.codes().means.to_vec()
    };
    assert_eq!(observe(100.0, 1), [0.0, 1000.0, 100.0]);
    assert_eq!(observe(200.0, 12), [0.0, 1000.0, 100.0, 200.0]);
    // 100 was not seen for 12 observations, 200 for another 12.
    assert_eq!(observe(300.0, 12), [0.0, 1000.0, 300.0, 200.0]);
    assert_eq!(observe(400.0, 1), [0.0, 1000.0, 300.0, 400.0]);
}

#[test]
fn a_saved_memory_needs_its_room_and_taught_codes_the_dimension() {
    let mut head = Head::new(memory::Config::DEFAULT).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(2, 2)];
    let mut memory = MemoryView::new(&mut head, 2, 2, &mut floats).expect("memory");
    memory.teach(&[1.0; 2], Width::Std(&[1.0; 2]), None).expect("room");
    let needed = memory.saved_len();
    let short = memory.save(&mut vec![0; needed - 2]);
    assert_eq!(short, Err(MemoryError::Storage { needed: needed / 4, found: needed / 4 - 1 }));
    let bytes = real()[0].1.to_bytes().expect("a model");
    let error = ArtifactError::Limit { field: "taught.codes", value: 1, max: 65_536 };
    assert_eq!(add_taught(&bytes, &memory.codes(), &[]).err(), Some(error));
}

#[test]
fn each_number_of_a_saved_memory_has_ends() {
    let mut head = Head::new(memory::Config::DEFAULT).expect("a configuration");
    let mut floats = vec![0.0; memory::storage_len(2, 1)];
    let mut memory = MemoryView::new(&mut head, 2, 1, &mut floats).expect("memory");
    memory.teach(&[1.0], Width::Std(&[1.0]), None).expect("room");
    memory.observe(&[99.0], Width::Std(&[1.0])).expect("finite");
    let mut saved = vec![0; memory.saved_len()];
    memory.save(&mut saved).expect("room");
    // Behind a head of 40 bytes: what was taught and what was observed.
    let [taught, observed, mean, precision] = [40, 44, 48, 56];
    let mut restored = |at: usize, value: f32| {
        let mut bytes = saved.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let crc = crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        memory.restore(&bytes).is_ok()
    };
    let horizon = memory::Config::DEFAULT.horizon as f32;
    for (at, taken, refused) in [
        (taught, &[1.0, horizon][..], &[0.0, 0.5, horizon + 1.0][..]),
        (observed, &[0.0, 1.0, horizon], &[-1.0, SMALLEST / 2.0, horizon + 1.0, f32::NAN]),
        (mean, &[-LARGEST, 0.0, LARGEST], &[f32::MAX, SMALLEST / 2.0]),
        (precision, &[SMALLEST, LARGEST], &[0.0, -1.0, 2.0 * LARGEST, SMALLEST / 2.0]),
    ] {
        for value in taken {
            assert!(restored(at, *value), "{value} at {at}");
        }
        for value in refused {
            assert!(!restored(at, *value), "{value} at {at}");
        }
    }
}
