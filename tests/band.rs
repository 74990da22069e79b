//! The band around a regression's prediction, as a device reads it from the file (docs/format.md, "Info").

use dab_core::artifact::AlignedBytes;
use dab_core::artifact::info::{OUTPUT_BANDS, numbers_text, read_info, set_info};
use dab_core::artifact::monitor::set_monitor;
use dab_core::artifact::quantise::{HeldOut, quantise};
use dab_core::artifact::schema::Task;
use dab_core::artifact::writer::DecoderSpec;
use dab_core::band::half_width;
use dab_core::parts::{LARGEST, SMALLEST};
use dab_core::{ArtifactError, CovarianceKind};
use dab_tests::specs::{Random, bare, monitors};

/// A model with two outputs and this text of bands.
fn model(task: Task, bands: Option<&str>) -> Vec<u8> {
    let mut random = Random(3);
    let mut spec = bare(&mut random, CovarianceKind::Diagonal, 2, 3, 1.0);
    let weight = random.floats(2 * 2, 1.0);
    spec.decoder = Some(DecoderSpec { weight, bias: None, outputs: 2, task });
    spec.info = vec![("licence".into(), "CC0".into())];
    spec.info.extend(bands.map(|bands| (OUTPUT_BANDS.into(), bands.into())));
    spec.to_bytes().expect("a model")
}

/// What a device reads.
fn read(bytes: &[u8]) -> Option<Vec<f32>> {
    let file = AlignedBytes::from(bytes);
    let model = file.model().expect("a model");
    let bands = model.bands()?;
    assert_eq!(bands.get(2), None, "there are two outputs");
    Some((0..2).map(|output| bands.get(output).expect("a width")).collect())
}

#[test]
fn every_output_has_a_width_of_its_own_and_other_models_have_none() {
    let widths = [0.25, 3e4];
    let text = numbers_text(&widths);
    assert_eq!(read(&model(Task::Regression, Some(&text))), Some(widths.to_vec()));
    assert_eq!(read(&model(Task::Classification, Some(&text))), None, "logits have no band");
    assert_eq!(read(&model(Task::Regression, None)), None, "a file from before");
    let bare = bare(&mut Random(1), CovarianceKind::Diagonal, 2, 3, 1.0).to_bytes().expect("a model");
    assert!(AlignedBytes::from(&*bare).model().expect("a model").bands().is_none(), "no decoder");
}

#[test]
fn damaged_widths_are_none() {
    let of = |text: &str| read(&model(Task::Regression, Some(text)));
    for damaged in [
        "",
        "3f800000",
        "3f800000 ",
        "3f800000 3f80000",
        "3f800000 3f80000x",
        "3f800000 3f800000 3f800000",
        "3f800000 é800000",
        "1.0, 2.0",
    ] {
        assert_eq!(of(damaged), None, "{damaged:?}");
    }
    for width in [SMALLEST, LARGEST, 0.0] {
        assert_eq!(of(&numbers_text(&[1.0, width])), Some(vec![1.0, width]));
    }
    for width in [-1.0, SMALLEST.next_down(), LARGEST.next_up(), f32::NAN, f32::INFINITY] {
        assert_eq!(of(&numbers_text(&[1.0, width])), None, "{width}");
    }
}

#[test]
fn half_a_band_is_its_width_times_u_and_always_finite() {
    assert_eq!(half_width(0.75, 4.0), 3.0);
    assert_eq!((half_width(0.0, f32::MAX), half_width(LARGEST, f32::MAX)), (0.0, f32::MAX));
}

#[test]
fn other_info_leaves_every_bit_of_an_answer() {
    let before = model(Task::Regression, None);
    let info = [("a".to_owned(), "b".to_owned()), (OUTPUT_BANDS.to_owned(), numbers_text(&[1.0, 2.0]))];
    let after = set_info(&before, &info).expect("a model");
    assert_eq!((read_info(&after).expect("info"), read(&after)), (info.to_vec(), Some(vec![1.0, 2.0])));
    let answers = |bytes: &[u8]| {
        let file = AlignedBytes::from(bytes);
        let model = file.model().expect("a model");
        let (mut scratch, mut outputs) = (vec![0.0; model.scratch_len()], [0.0; 2]);
        assert!(model.self_test(&mut scratch).is_ok());
        let mut random = Random(9);
        let answer = |_| {
            let input = random.floats(model.shape().inputs, 3.0);
            let said = model.predict_into(&input, &mut outputs, &mut scratch).expect("an input");
            (said, outputs.map(f32::to_bits))
        };
        (0..20).map(answer).collect::<Vec<_>>()
    };
    assert_eq!(answers(&before), answers(&after));
    assert_eq!(
        set_info(&after, &read_info(&before).expect("info")).expect("a model"),
        before,
        "there and back"
    );
    assert_eq!(set_info(&before[1..], &[]), Err(ArtifactError::NotAnArtifact));
}

#[test]
fn a_file_that_is_written_anew_keeps_its_bands() {
    let bytes = model(Task::Regression, Some(&numbers_text(&[1.5, 2.5])));
    let kept = Some(vec![1.5, 2.5]);
    assert_eq!(read(&quantise(&bytes, &HeldOut::default()).expect("a model")), kept);
    let [(_, config), _] = monitors();
    let info = read_info(&bytes).expect("info");
    assert_eq!(read(&set_monitor(&bytes, &config, 0.5, &info).expect("a monitor")), kept);
}
