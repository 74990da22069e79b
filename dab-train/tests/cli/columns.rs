//! `dab fit` on tables as people have them: names twice, names with a mistake, gaps, words, columns that are no inputs.

use std::path::Path;

use crate::runs::say;
use crate::{dab, folder, refusal, text};

/// Two classes of 150 rows in `name`: the columns a, `mean area` and more; `cells` gives those, `kind` is the class.
fn save(folder: &Path, name: &str, more: &str, cells: impl Fn(usize) -> String) {
    let line = |i: usize| {
        let (class, x) = (i % 2, (i * 37 % 101) as f64 / 50.0);
        format!("{},{},{}{}\n", x + 5.0 * class as f64, 1.5 - x * x, cells(i), ["left", "right"][class])
    };
    let text =
        std::iter::once(format!("a,mean area,{more}kind\n")).chain((0..300).map(line)).collect::<String>();
    std::fs::write(folder.join(name), text).unwrap();
}

/// What `dab fit` says of a file on standard error.
fn fit(folder: &Path, args: &str) -> std::process::Output {
    let usual = "fit --fast --no-baselines --quiet --force --set data.held_out=0.45 --out out";
    say(folder, format!("{usual} {args}").trim_end())
}

fn refused(folder: &Path, args: &str) -> String {
    let said = refusal(&fit(folder, args), 1).trim_end().to_owned();
    assert!(!folder.join("out").exists(), "{args} left something behind");
    said
}

#[test]
fn a_name_that_two_columns_have_is_refused() {
    let folder = folder("columns-twice");
    save(&folder, "twice.csv", "a,", |i| format!("{i},"));
    let said = refused(&folder, "--features twice.csv --labels twice.csv:kind");
    assert!(
        said.contains("twice.csv` has more than one column called `a`: give each a name of its own"),
        "{said}"
    );
    assert!(
        refused(&folder, "--features twice.csv --targets twice.csv:a")
            .contains("more than one column called `a`")
    );
    // What is left out may have any name.
    text(fit(&folder, "--features twice.csv --labels twice.csv:kind --without a"));
}

#[test]
fn a_name_that_is_not_there_is_told_with_those_that_are() {
    let folder = folder("columns-missing");
    save(&folder, "rows.csv", "", |_| String::new());
    for (args, words) in [
        (
            "--targets rows.csv:mean_area",
            "rows.csv` has no column `mean_area`; its columns are a, mean area, kind; did you mean `mean area`?",
        ),
        ("--targets rows.csv:a,b", "`a,b`; its columns are a, mean area, kind; name one column"),
        ("--labels rows.csv:kind --without kinds", "it has a, mean area, kind; did you mean `kind`?"),
        (
            "--labels rows.csv:kind --ood wide=wide.csv",
            "OOD set wide has no column `a`, `mean area`, which the training rows have; its columns are x, y, z",
        ),
    ] {
        std::fs::write(folder.join("wide.csv"), "x,y,z\n1,2,3\n").unwrap();
        let said = refused(&folder, &format!("--features rows.csv {args}"));
        assert!(said.contains(words), "{args}: {said}");
    }
}

#[test]
fn a_value_that_is_no_number_comes_with_what_to_do() {
    let folder = folder("columns-gaps");
    save(&folder, "gap.csv", "day,", |i| format!("{},", if i == 7 { "" } else { "3" }));
    save(&folder, "dates.csv", "last day,", |_| "2026-01-31,".to_owned());
    let said = refused(&folder, "--features gap.csv --labels gap.csv:kind");
    assert!(
        said.ends_with(
            "`day`: the value is missing: fill it in, drop the row, or leave the column out: --without day"
        ),
        "{said}"
    );
    let said = refused(&folder, "--features dates.csv --labels dates.csv:kind");
    let advice = "`2026-01-31` is not a number: give a number for each word or date, drop the row, or leave the column out: \
                  --without 'last day'";
    assert!(said.ends_with(advice), "{said}");
    // Of what is to be predicted, no column can be left out.
    save(&folder, "rows.csv", "", |_| String::new());
    let said = refused(&folder, "--features rows.csv --targets gap.csv:day");
    assert!(said.ends_with("the value is missing: fill it in, or drop the row"), "{said}");
}

#[test]
fn columns_that_are_no_inputs_are_told_and_can_be_left_out() {
    let folder = folder("columns-odd");
    save(&folder, "odd.csv", "id,y,site,", |i| format!("{},{},4,", i + 1, i % 2));
    let warned = |args: &str| {
        let output = fit(&folder, &format!("--features odd.csv --labels odd.csv:kind {args}"));
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        text(output);
        said
    };
    let said = warned("");
    for line in [
        "column `id` counts rows and says nothing about them: leave it out with --without id",
        "column `y` gives the class away: leave it out with --without y",
        "constant input column 5 `site` carries no information: leave it out with --without site",
    ] {
        assert!(said.contains(line), "no `{line}` in {said}");
    }
    let said = warned("--without id,y,site");
    assert!(!said.contains("--without"), "{said}");
    // The index of pandas has no name.
    let table = std::fs::read_to_string(folder.join("odd.csv")).unwrap();
    std::fs::write(folder.join("odd.csv"), table.replacen("id", "", 1)).unwrap();
    assert!(warned("").contains(
        "column 3, which has no name, counts rows and says nothing about them: leave it out with --without ''"
    ));
    let args = [
        "fit",
        "--features",
        "odd.csv",
        "--labels",
        "odd.csv:kind",
        "--fast",
        "--no-baselines",
        "--quiet",
        "--force",
    ];
    let output = dab(&folder, &[&args[..], &["--without", "", "--out", "out"]].concat());
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    text(output);
    assert!(!said.contains("counts rows") && said.contains("gives the class away"), "{said}");
}
