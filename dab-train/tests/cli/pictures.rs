//! Pictures in, verdicts out: `dab score`, `dab explain`, `dab features` and `dab compare` on runs that were trained on images.

use std::io::Write;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::light::insects;
use crate::npy::npy;
use crate::{column, dab, folder, refusal, table, text};

fn say(folder: &Path, words: &str) -> Output {
    dab(folder, &words.split(' ').collect::<Vec<_>>())
}

/// The lines of a table without their names.
fn nameless(text: &str) -> Vec<Vec<String>> {
    table(text).into_iter().map(|row| row[1..].to_vec()).collect()
}

/// Writes pictures as an array of images.
fn array(folder: &Path, files: &[String]) {
    let pixels: Vec<u8> = files
        .iter()
        .flat_map(|file| image::open(folder.join(file)).unwrap().into_rgb8().into_raw())
        .collect();
    let mut archive = zip::ZipWriter::new(std::fs::File::create(folder.join("images.npz")).unwrap());
    archive.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(&npy("|u1", false, &[files.len(), 32, 32, 3], &pixels)).unwrap();
    archive.finish().unwrap();
}

#[test]
fn a_run_on_pictures_scores_pictures_and_keeps_the_names_of_classes() {
    let folder = folder("pictures");
    insects(&folder);
    for (out, seed) in [("run", "0"), ("other", "1")] {
        text(say(&folder, &format!("train insects.toml --no-baselines --quiet --seed {seed} --out {out}")));
    }
    let page = std::fs::read_to_string(folder.join("run/report.html")).unwrap();
    let named = |class: &str| (0..6).any(|i| page.contains(&format!("<small>{class}/{i}.jpg</small>")));
    assert!(["ant", "bee", "cat"].iter().any(|class| named(class)), "rows to look at have names");
    let scored = text(say(&folder, "score run train/ant/0.png test/bee/1.jpg odd"));
    let rows = table(&scored);
    assert_eq!(rows[0].join(" "), "name uncertainty p_value verdict nearest class ant bee cat");
    let names: Vec<&str> = rows[1..].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names[..3], ["train/ant/0.png", "test/bee/1.jpg", "odd/0.JPG"]);
    assert_eq!(names.len(), 8);
    assert!(rows[1..].iter().all(|row| ["ant", "bee", "cat"].contains(&row[5].as_str())), "{scored}");
    assert!(column(&scored, "p_value").iter().all(|p| (0.0..=1.0).contains(p)), "{scored}");
    // The same from two files, from the model in its folder, and to a file.
    std::fs::copy(folder.join("run/model.dab"), folder.join("model.dab")).unwrap();
    for words in [
        "score model.dab train/ant/0.png test/bee/1.jpg odd --backbone run/backbone.safetensors",
        "score run/model.dab train/ant/0.png test/bee/1.jpg odd/",
    ] {
        assert_eq!(nameless(&text(say(&folder, words))), nameless(&scored), "{words}");
    }
    text(say(&folder, "score run train/ant/0.png test/bee/1.jpg odd -o scores.csv"));
    assert_eq!(std::fs::read_to_string(folder.join("scores.csv")).unwrap(), scored);
    let json: Vec<Value> = (text(say(&folder, "score run odd --json --probabilities")).lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(json.len() == 6 && json[5]["name"] == "odd/5.JPG" && json[0]["class"].is_string(), "{json:?}");

    // The same pixels from an array.
    let files: Vec<String> = (0..4).map(|i| format!("train/cat/{i}.png")).collect();
    array(&folder, &files);
    let of_files = text(say(&folder, &format!("score run {}", files.join(" "))));
    let of_array = text(say(&folder, "score run images.npz:x"));
    assert_eq!(nameless(&of_files), nameless(&of_array));
    assert!(of_array.contains("\nimages.npz:x:4,"), "{of_array}");

    // Features are what the model takes.
    let said = text(say(&folder, "features train --run run -o features.npz"));
    assert_eq!(said, "features.npz (features, names, labels): 18 rows of 64 features\n");
    let of_features = text(say(&folder, "score run features.npz:features"));
    let of_pictures = text(say(&folder, "score run train"));
    assert_eq!(column(&of_features, "uncertainty"), column(&of_pictures, "uncertainty"));
    text(say(
        &folder,
        "features odd --network cifar-resnet-8 --backbone run/backbone.safetensors -o odd.npy",
    ));
    assert_eq!(
        column(&text(say(&folder, "score run odd.npy")), "uncertainty"),
        column(&scored, "uncertainty")[2..]
    );

    let said = refusal(&say(&folder, "features odd --run run -o odd.txt"), 1);
    assert!(said.contains("-o odd.txt: expected a name that ends in .npy, .npz or .parquet"), "{said}");
    if cfg!(not(feature = "parquet")) {
        let said = refusal(&say(&folder, "features odd --run run -o odd.parquet"), 1);
        assert!(
            said.contains("this dab was built without Parquet: install it with `cargo install"),
            "{said}"
        );
    }

    // Names in all other places.
    let class = &rows[1][5];
    assert!(
        text(say(&folder, "explain run train/ant/0.png"))
            .contains(&format!("class {class}, between {class} and "))
    );
    text(say(&folder, "export run/model.dab --c model.c"));
    let c = std::fs::read_to_string(folder.join("model.c")).unwrap();
    assert!(c.contains("#define DAB_ARTIFACT_CLASS_NAMES { \"ant\", \"bee\", \"cat\" }"), "{c}");
    let report = std::fs::read_to_string(folder.join("run/report.html")).unwrap();
    assert!(
        report.contains("would be called ant")
            || report.contains("would be called bee")
            || report.contains("called cat")
    );
    let shown = text(say(&folder, "inspect run/model.dab --json"));
    let info = &serde_json::from_str::<Value>(&shown).unwrap()["info"];
    let words = info["preprocessing_in_words"].as_str().unwrap();
    assert!(
        words.contains("the shorter side is resized to 32 (bilinear, antialiased), unless it is 32 × 32"),
        "{words}"
    );
    assert!(info["preprocessing"].as_str().unwrap().contains("\"side\":32"), "{shown}");

    // Another network, another size, another kind of file.
    let said = refusal(&say(&folder, "score model.dab odd --backbone other/backbone.safetensors"), 1);
    assert!(said.contains("other/backbone.safetensors is not the image network of this model"), "{said}");
    let said = refusal(&say(&folder, "score model.dab odd"), 1);
    assert!(said.contains("where are the numbers of the image network? give --backbone FILE"), "{said}");
    let said = refusal(&say(&folder, "score run rows.csv rows.csv"), 1);
    assert!(said.contains("2 files of rows: give one at a time"), "{said}");
    let said = refusal(&say(&folder, "score train odd"), 1);
    assert!(
        said.contains("train is a folder without model.dab: name a model file, or a run's folder"),
        "{said}"
    );
    let said = refusal(&say(&folder, "score run odd/9.JPG"), 1);
    assert!(said.contains("cannot read `odd/9.JPG`: there is no such file or folder"), "{said}");
    std::fs::write(folder.join("odd/3.JPG"), b"\xff\xd8\xff no picture").unwrap();
    let said = refusal(&say(&folder, "score run odd"), 1);
    assert!(said.contains("cannot read the picture odd/3.JPG") && said.contains("--skip-bad"), "{said}");
    let output = say(&folder, "score run odd --skip-bad");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("marked 1 of 6 pictures as invalid; the first is odd/3.JPG"), "{told}");
    let marked = text(output);
    assert!(marked.contains("\nodd/3.JPG,,,invalid,,,,,\n"), "{marked}");
    assert_eq!(table(&marked)[1], rows[3], "the others are as they were");

    // Both runs beside each other.
    let said = text(say(&folder, "compare run other --csv runs.csv"));
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("run ") && lines[0].contains("accuracy") && lines[0].ends_with("multiply-adds"),
        "{said}"
    );
    assert!(
        lines[1].starts_with("run ") && lines[2].starts_with("other ") && lines[3] == "plot in compare.svg",
        "{said}"
    );
    assert!(std::fs::read_to_string(folder.join("compare.svg")).unwrap().contains("accuracy"));
    assert_eq!(table(&std::fs::read_to_string(folder.join("runs.csv")).unwrap()).len(), 3);
    assert!(refusal(&say(&folder, "compare run odd"), 1).contains("odd has no metrics.json"));
}
