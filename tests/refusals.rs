//! Damage: every truncation, every one-byte extension and every single-bit flip of three real artifacts is
//! refused, each with the error that says what happened.

use dab_core::artifact::{self, AlignedBytes, ArtifactError};
use dab_core::{InputError, Model};
use dab_tests::patch::{HEADER, crc32c};
use dab_tests::specs::real;

/// The bytes of the three artifacts, each proven sound first.
fn artifacts() -> Vec<(&'static str, Vec<u8>)> {
    let build = |(name, spec): (&'static str, dab_core::artifact::writer::Spec)| {
        let bytes = spec.to_bytes().expect("a model");
        assert_eq!(bytes, spec.to_bytes().expect("a model"), "{name}: the same spec gives the same bytes");
        let aligned = AlignedBytes::from(&*bytes);
        let model = aligned.model().expect("a model");
        let mut scratch = vec![f32::NAN; model.scratch_len()];
        assert_eq!(model.self_test(&mut scratch), Ok(()), "{name}");
        let short = &mut scratch[1..];
        let (needed, found) = (short.len() + 1, short.len());
        assert_eq!(
            model.assess(&vec![0.0; spec.inputs], short).err(),
            Some(InputError::Scratch { needed, found })
        );
        (name, bytes)
    };
    real().into_iter().map(build).collect()
}

#[test]
fn every_truncation_is_refused() {
    for (name, bytes) in artifacts() {
        for found in 0..bytes.len() {
            let cut = AlignedBytes::from(&bytes[..found]);
            let expected = if found < HEADER { HEADER } else { bytes.len() };
            assert_eq!(
                cut.model().err(),
                Some(ArtifactError::Truncated { expected, found }),
                "{name} cut at {found}"
            );
        }
    }
}

#[test]
fn every_extension_is_refused() {
    for (name, bytes) in artifacts() {
        let (expected, found) = (bytes.len(), bytes.len() + 1);
        for byte in 0..=u8::MAX {
            let mut longer = bytes.clone();
            longer.push(byte);
            let longer = AlignedBytes::from(&*longer);
            assert_eq!(
                longer.model().err(),
                Some(ArtifactError::TrailingBytes { expected, found }),
                "{name} + {byte}"
            );
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for (name, bytes) in artifacts() {
        let (header_crc, body_crc) = (crc32c(&bytes[..60]), crc32c(&bytes[HEADER..]));
        let mut damaged = bytes.clone();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                damaged[at] ^= 1 << bit;
                let copy = AlignedBytes::from(&*damaged);
                let found = copy.model().err();
                // What a device repeats while it runs finds the same.
                assert_eq!(artifact::check(&damaged).err(), found);
                let sound = match found {
                    Some(ArtifactError::NotAnArtifact) => at < 8,
                    // The stored checksum and the computed one: one is the sound file's, the other is not.
                    Some(ArtifactError::HeaderChecksum { stored, computed }) => {
                        stored != computed
                            && match at {
                                8..60 => stored == header_crc && computed == crc32c(&damaged[..60]),
                                60..HEADER => computed == header_crc,
                                _ => false,
                            }
                    }
                    Some(ArtifactError::BodyChecksum { stored, computed }) => {
                        at >= HEADER && stored == body_crc && computed != body_crc
                    }
                    _ => false,
                };
                assert!(sound, "{name}: byte {at} bit {bit}: {found:?}");
                damaged[at] ^= 1 << bit;
            }
        }
        assert_eq!(damaged, bytes);
    }
}

#[test]
fn a_misaligned_buffer_is_refused() {
    for (name, bytes) in artifacts() {
        for shift in 0..4 {
            let mut moved = vec![0; shift];
            moved.extend_from_slice(&bytes);
            let moved = AlignedBytes::from(&*moved);
            let found = Model::from_bytes(&moved.as_slice()[shift..]).err();
            let expected = (shift != 0).then_some(ArtifactError::Misaligned);
            assert_eq!(found, expected, "{name} at {shift}");
        }
    }
}

#[test]
fn other_files_are_not_artifacts() {
    for other in [&b"PK\x03\x04"[..], b"\x89PNG\r\n\x1a\n", b"\x89DAB\n\x1a\n\0\0", b"{", b"\0"] {
        let bytes = AlignedBytes::from(other);
        assert_eq!(bytes.model().err(), Some(ArtifactError::NotAnArtifact), "{other:?}");
    }
}
