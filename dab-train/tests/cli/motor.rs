//! The model that the firmware carries is what its data and its experiment give.

use std::path::Path;
use std::process::Command;

use crate::{column, dab, folder, text};

#[test]
fn the_firmwares_model_is_what_training_gives() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let motor = repository.join("examples/motor");
    let folder = folder("motor");
    let data = folder.join("runs/motor-data");
    std::fs::create_dir_all(&data).unwrap();
    match Command::new("python3").arg(motor.join("simulate.py")).arg(&data).status() {
        Ok(status) => assert!(status.success()),
        Err(e) => return println!("\nSKIPPED the_firmwares_model_is_what_training_gives: python3: {e}"),
    }
    let stream = std::fs::read(data.join("stream.bin")).unwrap();
    assert!(stream == std::fs::read(motor.join("stream.bin")).unwrap(), "the stream is another");

    let experiment = repository.join("dab-train/experiments/motor.toml");
    text(dab(&folder, &["train", experiment.to_str().unwrap()]));
    // Another processor may round the training otherwise; the committed model must still say the same of every window.
    let committed = motor.join("model.dab");
    for file in ["winding.csv", "train.csv"] {
        let file = format!("runs/motor-data/{file}");
        let score = |model: &str| column(&text(dab(&folder, &["score", model, &file])), "uncertainty");
        let (trained, committed) = (score("runs/motor/model.dab"), score(committed.to_str().unwrap()));
        assert!(!trained.is_empty());
        for (row, (t, c)) in trained.iter().zip(&committed).enumerate() {
            assert!((t - c).abs() <= 1e-3 * c.max(1.0), "{file}, row {row}: {t} nats, committed {c}");
        }
    }
}
