//! What data and settings that cannot be used are told: what is wrong, where, and what to do.

use std::path::{Path, PathBuf};

use crate::light::{insects, light};
use crate::{dab, folder, refusal, text};

fn say(folder: &Path, words: &str) -> std::process::Output {
    dab(folder, &words.split(' ').collect::<Vec<_>>())
}

/// x, y and a class of 80 rows, each line as `change` makes it.
fn with_rows(test: &str, change: impl Fn(usize, [f64; 2]) -> [f64; 2]) -> PathBuf {
    let folder = folder(test);
    let line = |i: usize| {
        let x = (i * 37 % 101) as f64 / 50.0;
        let [a, b] = change(i, [x, 3.0 * x]);
        format!("{a:e},{b:e},{}\n", ["cat", "dog"][i % 2])
    };
    let rows: String = std::iter::once("x,y,kind\n".to_owned()).chain((0..80).map(line)).collect();
    std::fs::write(folder.join("rows.csv"), rows).unwrap();
    folder
}

const CLASSES: &str = "fit --features rows.csv --labels rows.csv:kind --out out";
const NUMBERS: &str = "fit --features rows.csv:x --targets rows.csv:y --out out";

#[test]
fn a_row_of_1e30_is_named_and_so_are_targets_of_1e30() {
    let folder = with_rows("message-row", |i, [x, y]| if i == 16 { [1e30; 2] } else { [x, y] });
    for learn in ["", " --learn"] {
        let said = refusal(&say(&folder, &format!("{CLASSES}{learn}")), 1);
        assert!(said.contains("rows.csv: 1e30 in row 17, column 1 is beyond ±1.1e15"), "{said}");
        assert!(said.contains("correct or remove this row, or give the column in another unit"), "{said}");
    }
    let folder = with_rows("message-targets", |_, [x, y]| [x, (1.0 + y) * 1e30]);
    let said = refusal(&say(&folder, NUMBERS), 1);
    assert!(said.contains("rows.csv:y: 1e30 in row 1, column 1 is beyond ±1.1e15"), "{said}");
    assert!(said.contains("give the column in another unit"), "{said}");
    let folder = with_rows("message-outlier", |i, [x, y]| if i == 16 { [1e14; 2] } else { [x, y] });
    let told = say(&folder, &format!("{CLASSES} --fast --no-baselines --set data.test=0.5"));
    let told = String::from_utf8_lossy(&told.stderr).into_owned() + &String::from_utf8_lossy(&told.stdout);
    let whole = std::fs::read_to_string(folder.join("out/scores.csv")).unwrap_or_default();
    assert!(told.contains("is it a broken row?") || whole.contains("rows.csv:17,"), "{told}");
}

#[test]
fn targets_that_never_change_are_refused() {
    let folder = with_rows("message-constant", |_, [x, _]| [x, 7.0]);
    let said = refusal(&say(&folder, NUMBERS), 1);
    assert!(
        said.contains("the target is 7 in all of ") && said.contains("is it the right column?"),
        "{said}"
    );
}

#[test]
fn early_stopping_is_a_table_and_a_dry_run_looks_for_the_weights() {
    let folder = folder("message-settings");
    light(&folder, 3);
    let said = refusal(&say(&folder, "train light.toml --set training.early_stopping=20"), 1);
    assert!(
        said.contains("training.early_stopping") && said.contains("{ patience = 20, share = 0.1 }"),
        "{said}"
    );
    let weights = "train light.toml --dry-run --set backbone.images.weights=no/such.pth";
    let said = refusal(&say(&folder, weights), 1);
    assert!(said.contains("backbone.images.weights: missing data file no/such.pth: looked for "), "{said}");
    text(say(&folder, "train light.toml --dry-run"));
}

#[test]
fn folders_of_pictures_that_do_not_fit_are_named() {
    let folder = folder("message-pictures");
    insects(&folder);
    let train = "train insects.toml --no-baselines --quiet --out out";
    std::fs::create_dir(folder.join("train/dog")).unwrap();
    let said = refusal(&say(&folder, train), 1);
    assert!(
        said.contains("train/dog holds no .jpg, .jpeg or .png file: put pictures into it, or remove it"),
        "{said}"
    );
    std::fs::remove_dir(folder.join("train/dog")).unwrap();
    std::fs::rename(folder.join("train/cat"), folder.join("cat")).unwrap();
    let said = refusal(&say(&folder, train), 1);
    assert!(
        said.contains("/test has classes that ") && said.contains("/train has not: cat (6 images); add them"),
        "{said}"
    );
    std::fs::rename(folder.join("cat"), folder.join("train/cat")).unwrap();
    let said = refusal(&say(&folder, &format!("{train} --set data.classes=['ant','bee']")), 1);
    assert!(
        said.contains("data.classes has 2 names (ant, bee)")
            && said.contains("has 3 classes (ant, bee, cat)"),
        "{said}"
    );
    let at = folder.display();
    let said = refusal(&say(&folder, &format!("{train} --set data.train={at}/odd")), 1);
    assert!(
        said.contains("6 pictures, but no folder with pictures: give every class a folder of its own"),
        "{said}"
    );
    assert!(!folder.join("out").exists(), "a refusal leaves nothing behind");
    // A flat folder of strangers is a list, and its .JPG files count. Sizes that the network was not made for are told.
    let output = say(&folder, &format!("{train} --set data.ood.odd={at}/odd --set data.side=36"));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("images are 36 × 36, cifar-resnet-8 was made for 32 × 32: ")
            && told.contains("data.side = 32"),
        "{told}"
    );
    assert!(text(output).contains("AUROC odd"));
    let scores = std::fs::read_to_string(folder.join("out/scores.csv")).unwrap();
    assert!(
        scores.contains("odd/5.JPG,") && scores.contains("test/cat/") && scores.contains(",cat,"),
        "{scores}"
    );
    let resolved = std::fs::read_to_string(folder.join("out/experiment.toml")).unwrap();
    assert!(resolved.contains("side = 36") && resolved.contains("resize = 36"), "{resolved}");
}
