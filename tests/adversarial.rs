//! Files with valid checksums whose header or meta section is impossible: each is refused with the error
//! that names the fault, or gives finite answers. Nothing panics.

use dab_core::artifact::ArtifactError as E;
use dab_core::artifact::schema::{
    CalibrationMeta, DecoderMeta, LayerMeta, MAX_CODES, MAX_DIM_DIAGONAL, MAX_DIM_FULL, MAX_WIDTH, Residual,
    SCHEMA_KEY, Task,
};
use dab_tests::attack::{CHOLESKY, MLP, SPECTRAL, changed, parts, patched, read};
use dab_tests::patch::{HEADER, Parts, word};
use dab_tests::specs::real;

fn put(at: usize, value: u32) -> impl FnOnce(&mut Vec<u8>) {
    move |bytes| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes())
}

#[test]
fn the_unchanged_parts_make_the_same_file() {
    for (name, spec) in real() {
        let bytes = spec.to_bytes().expect("a model");
        let joined = Parts::of(&bytes).join();
        assert_eq!(
            joined.as_slice(),
            bytes,
            "{name}: the layout and the checksums of the tests are the core's"
        );
        assert_eq!(read(&joined), None, "{name}");
    }
}

#[test]
fn header_fields() {
    let found = parts(MLP).join().as_slice().len();
    // Versions: another major is refused, any minor is read.
    for major in [0u16, 2, u16::MAX] {
        let error = patched(|b| b[8..10].copy_from_slice(&major.to_le_bytes()));
        assert_eq!(error, Some(E::Version { major, minor: 0 }));
    }
    for minor in [1u16, u16::MAX] {
        assert_eq!(patched(|b| b[10..12].copy_from_slice(&minor.to_le_bytes())), None);
    }
    // Seven bits are known, but say that the schema is another one.
    for bits in 1..128 {
        assert_eq!(patched(put(16, bits)), Some(E::Schema { found: SCHEMA_KEY }));
    }
    for bit in 0..32 {
        assert_eq!(patched(put(20, 1 << bit)), None, "an unknown compatible feature is ignored");
    }
    for bit in 7..32 {
        assert_eq!(patched(put(16, 1 << bit)), Some(E::IncompatibleFeatures { bits: 1 << bit }));
    }
    for key in [0, 1, u64::MAX, SCHEMA_KEY ^ 1] {
        let error = patched(|b| b[48..56].copy_from_slice(&key.to_le_bytes()));
        assert_eq!(error, Some(E::Schema { found: key }));
    }
    for expected in [0, 1, found - 1] {
        assert_eq!(patched(put(12, expected as u32)), Some(E::TrailingBytes { expected, found }));
    }
    for expected in [found + 1, u32::MAX as usize] {
        assert_eq!(patched(put(12, expected as u32)), Some(E::Truncated { expected, found }));
    }
    // Sections: anywhere but in their one place.
    let sound = parts(MLP).join();
    for field in (24..48).step_by(4) {
        let value = word(sound.as_slice(), field);
        for other in
            [0, 1, 63, 64, value - 1, value + 1, value + 4, value + 16, 1 << 31, u32::MAX - 15, u32::MAX]
        {
            let found = patched(put(field, other));
            match found {
                // Within its padding the meta section may end earlier or later; then its bytes do not fit.
                Some(E::Padding { .. }) => assert_eq!((field, other), (28, value - 1)),
                Some(E::MetaTrailingBytes { left: 1 }) => assert_eq!((field, other), (28, value + 1)),
                _ if other == value => assert_eq!(found, None),
                _ => assert_eq!(found, Some(E::SectionLayout), "{field} = {other}"),
            }
        }
    }
    // Sections that overlap consistently: the meta section swallowed by the parameters, and so on.
    let exchange = |a: usize, b: usize| {
        patched(|bytes| {
            for i in 0..8 {
                bytes.swap(a + i, b + i);
            }
        })
    };
    for (a, b) in [(24, 32), (32, 40), (24, 40)] {
        assert_eq!(exchange(a, b), Some(E::SectionLayout));
    }
    // A header alone.
    let empty = |b: &mut Vec<u8>| {
        b.truncate(HEADER);
        for (at, value) in [(12, 64), (24, 64), (28, 0), (32, 64), (36, 0), (40, 64), (44, 0)] {
            put(at, value)(b);
        }
    };
    assert_eq!(patched(empty), Some(E::MetaEncoding));
}

#[test]
fn sizes() {
    let limit = |field, value, max| Some(E::Limit { field, value, max });
    for value in [0, MAX_WIDTH + 1, u32::MAX] {
        assert_eq!(changed(MLP, |p| p.meta.inputs = value), limit("inputs", value, MAX_WIDTH));
        assert_eq!(
            changed(MLP, |p| p.meta.layers[1].outputs = value),
            limit("layers.outputs", value, MAX_WIDTH)
        );
        assert_eq!(changed(MLP, |p| p.meta.codes = value), limit("codes", value, MAX_CODES));
        let decoder = |p: &mut Parts| {
            p.meta.decoder = Some(DecoderMeta { task: Task::Regression, outputs: value, bias: true });
        };
        assert_eq!(changed(MLP, decoder), limit("decoder.outputs", value, MAX_WIDTH));
    }
    for value in [0, MAX_DIM_DIAGONAL + 1, u32::MAX] {
        assert_eq!(changed(MLP, |p| p.meta.dim = value), limit("dim", value, MAX_DIM_DIAGONAL));
    }
    for value in [0, MAX_DIM_FULL + 1, u32::MAX] {
        assert_eq!(changed(SPECTRAL, |p| p.meta.dim = value), limit("dim", value, MAX_DIM_FULL));
        assert_eq!(changed(CHOLESKY, |p| p.meta.dim = value), limit("dim", value, MAX_DIM_FULL));
    }
    let calibration = |points, held_out| {
        changed(MLP, |p| {
            let c = p.meta.calibration.expect("a table");
            p.meta.calibration = Some(CalibrationMeta { points, held_out, ..c });
        })
    };
    for points in [0, 257, u16::MAX] {
        assert_eq!(calibration(points, 30), limit("calibration.points", points.into(), 256));
    }
    assert_eq!(calibration(30, 0), limit("calibration.held_out", 0, u32::MAX));
    for held_out in [1, 29, 31, u32::MAX] {
        assert_eq!(calibration(30, held_out), Some(E::CalibrationOrder { index: 29 }));
    }
    for vectors in [0, 9, u8::MAX] {
        assert_eq!(
            changed(MLP, |p| p.meta.self_test.vectors = vectors),
            limit("self_test.vectors", vectors.into(), 8)
        );
    }
}

#[test]
fn sizes_within_the_limits_that_do_not_fit_the_parameters() {
    let found = parts(MLP).params.len();
    let miscounted = |change: fn(&mut Parts)| match changed(MLP, change) {
        Some(E::ParamCount { expected, found: f }) => assert!(f == found && expected != found),
        other => panic!("{other:?}"),
    };
    miscounted(|p| p.meta.inputs = 1);
    miscounted(|p| p.meta.inputs = MAX_WIDTH);
    miscounted(|p| p.meta.codes = 1);
    miscounted(|p| p.meta.codes = MAX_CODES);
    miscounted(|p| p.meta.dim = 1);
    miscounted(|p| p.meta.dim = MAX_DIM_DIAGONAL);
    miscounted(|p| p.meta.normalized = false);
    miscounted(|p| p.meta.head.bias = false);
    miscounted(|p| p.meta.layers[0].bias = false);
    miscounted(|p| p.meta.decoder = None);
    miscounted(|p| p.meta.calibration = None);
    miscounted(|p| p.meta.self_test.vectors = 1);
    miscounted(|p| p.meta.head.covariance = dab_core::CovarianceKind::Spectral);
    miscounted(|p| {
        p.params.pop();
        p.meta.inputs = 5;
        p.params.push(0.0);
    });
    // The largest products that the limits allow: 17 matrices of 2³² values, on a machine of 32 bits too.
    miscounted(|p| {
        p.meta.inputs = MAX_WIDTH;
        for layer in &mut p.meta.layers {
            (layer.outputs, layer.residual) = (MAX_WIDTH, None);
        }
        p.meta.codes = MAX_CODES;
        p.meta.dim = MAX_DIM_DIAGONAL;
    });
    assert_eq!(
        changed(MLP, |p| p.params.push(0.0)),
        Some(E::ParamCount { expected: found, found: found + 1 })
    );
}

#[test]
fn residuals() {
    let residual = |layer: usize, source: u8| {
        changed(MLP, |p| {
            p.meta.layers[layer].residual = Some(Residual { source, before_activation: false });
        })
    };
    // Layer 2 adds the output of layer 1 in the sound model; widths are 4 → 6 → 6 → 6.
    for (layer, source) in [(0, 1), (0, 255), (1, 2), (2, 3), (2, 4), (2, 255)] {
        assert_eq!(residual(layer, source), Some(E::Residual { layer }), "later: {layer} from {source}");
    }
    for layer in 0..3 {
        assert_eq!(residual(layer, 0), Some(E::Residual { layer }), "another width: {layer}");
    }
    for (layer, source) in [(1, 1), (2, 1), (2, 2)] {
        assert_eq!(residual(layer, source), None, "{layer} from {source}");
    }
    // One slot of memory: layer 1 adds 1, layer 2 may add 1 again or its own input 2.
    let two = |first, second| {
        changed(MLP, |p| {
            p.meta.layers[1].residual = Some(Residual { source: first, before_activation: true });
            p.meta.layers[2].residual = Some(Residual { source: second, before_activation: true });
        })
    };
    assert_eq!(two(1, 1), None);
    assert_eq!(two(1, 2), None);
    // A fourth layer may not add what layer 2 overwrote while it held activation 1.
    let third = |source| {
        changed(MLP, |p| {
            let residual = Some(Residual { source, before_activation: true });
            let layer = LayerMeta { residual, ..p.meta.layers[2] };
            p.meta.layers.push(layer).expect("room for a layer");
        })
    };
    assert_eq!(third(2), Some(E::Residual { layer: 3 }));
    for source in [1, 3] {
        assert!(
            matches!(third(source), Some(E::ParamCount { .. })),
            "a sound residual, and no weights for it"
        );
    }
}

#[test]
fn meta_encodings() {
    let sound = parts(MLP);
    let meta = postcard::to_allocvec(&sound.meta).expect("memory");
    assert_eq!(read(&sound.join_with(&meta)), None);
    for cut in 0..meta.len() {
        assert_eq!(read(&sound.join_with(&meta[..cut])), Some(E::MetaEncoding), "cut at {cut}");
    }
    for byte in 0..=u8::MAX {
        let longer = [&meta[..], &[byte]].concat();
        assert_eq!(read(&sound.join_with(&longer)), Some(E::MetaTrailingBytes { left: 1 }));
    }
    // Byte 0 is inputs = 4, byte 1 normalized, byte 2 the number of layers; then outputs, bias, activation.
    assert_eq!(meta[..7], [4, 1, 3, 6, 1, 1, 0]);
    let spliced =
        |at: usize, with: &[u8]| read(&sound.join_with(&[&meta[..at], with, &meta[at + 1..]].concat()));
    for at in [0, 2, 3] {
        let canonical = meta[at];
        assert_eq!(spliced(at, &[canonical | 0x80, 0]), Some(E::MetaNotCanonical), "varint at {at}");
        assert_eq!(spliced(at, &[canonical | 0x80, 0x80, 0]), Some(E::MetaNotCanonical), "varint at {at}");
    }
    assert_eq!(spliced(5, &[0x81, 0]), Some(E::MetaNotCanonical), "a long enum");
    assert_eq!(spliced(0, &[0xff, 0xff, 0xff, 0xff, 0x7f]), Some(E::MetaEncoding), "more than 32 bits");
    assert_eq!(spliced(0, &[0xff; 6]), Some(E::MetaEncoding), "a varint without end");
    for (at, wrong) in [(1, 2), (1, 255), (4, 2), (5, 6), (5, 127), (6, 2), (6, 255), (2, 17), (2, 127)] {
        assert_eq!(spliced(at, &[wrong]), Some(E::MetaEncoding), "{wrong} at {at}");
    }
    // Every value of every byte of the meta section: refused or sound, never a panic.
    let mut accepted = 0;
    for at in 0..meta.len() {
        for byte in 0..=u8::MAX {
            accepted += u32::from(spliced(at, &[byte]).is_none());
        }
    }
    assert!(accepted > meta.len() as u32, "the sound file at least is accepted at every place");
    // Padding.
    let start = HEADER + meta.len();
    assert!(!start.is_multiple_of(16));
    for offset in start..start.next_multiple_of(16) {
        for byte in [1, 255] {
            assert_eq!(patched(|b| b[offset] = byte), Some(E::Padding { offset }));
        }
    }
}
