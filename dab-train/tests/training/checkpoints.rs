//! Runs that were killed, checkpoints of other runs, and damaged ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dab_train::{
    config::{EarlyStopping, Training},
    internals::learn::{
        epoch::Epoch,
        run::{self, Observer, Setting},
    },
};

use super::{experiment, points, setting, train};

/// Stops a run after some epochs, as a kill would.
struct Killer(usize);

impl Observer for Killer {
    fn epoch(&mut self, epoch: &Epoch, _: usize, _: std::time::Duration) {
        assert!(epoch.number <= self.0, "killed");
    }
}

fn checkpoint(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder.join("checkpoint.safetensors")
}

#[test]
fn a_finished_run_is_restored_and_an_unfinished_one_is_not() {
    let split = points(50, true);
    let mut experiment = experiment("diagonal", "training = { epochs = 6 }");
    for stopping in [None, Some(EarlyStopping { patience: 2, share: 0.2 })] {
        experiment.training.early_stopping = stopping;
        let kept = setting(Some(checkpoint("restored")), false);
        assert!(run::restore(&experiment, &split, &kept).is_err());
        let run = run::train(&experiment, &split, &kept, &mut ()).unwrap();
        let restored = run::restore(&experiment, &split, &kept).unwrap();
        assert_eq!((restored.trained, restored.kept_epoch), (run.trained, run.kept_epoch));
    }
    experiment.training = Training { early_stopping: None, checkpoint_every: 1, ..experiment.training };
    let kept = setting(Some(checkpoint("unfinished")), false);
    let killed = catch_unwind(AssertUnwindSafe(|| run::train(&experiment, &split, &kept, &mut Killer(3))));
    assert!(killed.is_err());
    let error = run::restore(&experiment, &split, &kept).unwrap_err();
    assert!(error.to_string().contains("after epoch 3 of 6"), "{error:#}");
}

#[test]
fn the_checkpoint_before_the_last_one_stays_until_the_run_ends() {
    let split = points(50, true);
    let experiment = experiment("diagonal", "training = { epochs = 6, checkpoint_every = 1 }");
    let path = checkpoint("before");
    let before = path.with_extension("before.safetensors");
    let kept = setting(Some(path.clone()), false);
    let killed = catch_unwind(AssertUnwindSafe(|| run::train(&experiment, &split, &kept, &mut Killer(3))));
    assert!(killed.is_err());
    let last = std::fs::read(&path).unwrap();
    std::fs::write(&path, &last[..last.len() - 1]).unwrap();
    let error = format!("{:#}", run::restore(&experiment, &split, &kept).unwrap_err());
    assert!(error.contains("it is damaged") && error.contains(&before.display().to_string()), "{error}");
    std::fs::rename(&before, &path).unwrap();
    let error = format!("{:#}", run::restore(&experiment, &split, &kept).unwrap_err());
    assert!(error.contains("after epoch 2 of 6"), "{error}");
    let resumed = run::train(&experiment, &split, &setting(Some(path), true), &mut ()).unwrap();
    assert_eq!(resumed.trained, train(&experiment, &split).trained);
    assert!(!before.exists());
}

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let split = points(50, true);
    for (index, kind) in ["diagonal", "spectral", "cholesky"].into_iter().enumerate() {
        let extra = "codebook = { warmup = 3, mean_learning_rate = 0.01 }
            training = { epochs = 12, batch = 16, input_noise = 0.1, checkpoint_every = 1 }";
        let mut experiment = experiment(kind, extra);
        if index == 1 {
            experiment.training.early_stopping = Some(EarlyStopping { patience: 20, share: 0.2 });
        }
        let whole = train(&experiment, &split);
        assert_eq!(whole.trained, train(&experiment, &split).trained, "the same seed gives the same model");
        for kill_after in [1, 3, 8] {
            let path = checkpoint(&format!("resume-{kind}-{kill_after}"));
            let killed = catch_unwind(AssertUnwindSafe(|| {
                let setting = setting(Some(path.clone()), false);
                run::train(&experiment, &split, &setting, &mut Killer(kill_after))
            }));
            assert!(killed.is_err());
            let run =
                run::train(&experiment, &split, &setting(Some(path), true), &mut Killer(usize::MAX)).unwrap();
            assert_eq!(run.trained, whole.trained, "{kind} killed after {kill_after}");
            assert_eq!(run.history.len(), 12);
        }
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let split = points(50, true);
    let path = checkpoint("refused");
    let extra = "training = { epochs = 4, checkpoint_every = 1 }";
    let mut experiment = experiment("diagonal", extra);
    run::train(&experiment, &split, &setting(Some(path.clone()), false), &mut ()).unwrap();
    let resume = setting(Some(path.clone()), true);
    let other = Setting { seed: 5, ..resume.clone() };
    let error = run::train(&experiment, &split, &other, &mut ()).unwrap_err();
    assert!(format!("{error:#}").contains("seed 4"), "{error:#}");
    experiment.objective.beta = 0.5;
    let error = run::train(&experiment, &split, &resume, &mut ()).unwrap_err();
    assert!(format!("{error:#}").contains("another version"), "{error:#}");
    std::fs::write(&path, b"not a checkpoint").unwrap();
    assert!(run::train(&experiment, &split, &resume, &mut ()).is_err());
}

#[test]
fn a_damaged_checkpoint_and_a_full_disk_are_told() {
    let split = points(50, true);
    let path = checkpoint("damaged");
    let experiment = experiment("diagonal", "training = { epochs = 4, checkpoint_every = 1 }");
    run::train(&experiment, &split, &setting(Some(path.clone()), false), &mut ()).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in [whole.len() - 1, whole.len() - 400] {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let error = run::train(&experiment, &split, &setting(Some(path.clone()), true), &mut ()).unwrap_err();
        assert!(format!("{error:#}").contains("it is damaged"), "{error:#}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "a refused checkpoint stays as it is");
    }
    let full = Path::new("/dev/full");
    if !full.exists() {
        println!("SKIPPED a_damaged_checkpoint_and_a_full_disk_are_told: no /dev/full");
        return;
    }
    let error = run::train(&experiment, &split, &setting(Some(full.into()), false), &mut ()).unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("cannot write /dev/full") && text.contains("space"), "{text}");
}
