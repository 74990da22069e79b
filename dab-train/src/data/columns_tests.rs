//! Claims about columns: what is refused, what is suspected, and what a user is told to do.

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Forty rows of two classes (squares are 0 or 1 modulo 3): a column of these values, and one that nobody suspects.
fn warned(name: Option<&str>, value: impl Fn(usize) -> f32) -> Vec<String> {
    let rows: Vec<[f32; 2]> = (0..40).map(|i| [value(i), (i * i % 17) as f32]).collect();
    let targets = Targets::Classes { labels: (0..40).map(|i| i * i % 3).collect(), count: 2 };
    let names = name.map_or_else(Vec::new, |name| names(&[name, "speed"]));
    no_inputs(&Table::from_rows(&rows).unwrap(), &names, &targets)
}

#[test]
fn a_column_that_counts_rows_is_told() {
    let counts = |name| warned(name, |i| i as f32 + 1.0).join("\n");
    assert_eq!(
        counts(Some("id")),
        "column `id` counts rows and says nothing about them: leave it out with --without id"
    );
    assert!(counts(Some("")).starts_with("column 1, which has no name, counts rows"), "{}", counts(Some("")));
    assert!(counts(Some("")).ends_with("--without ''"), "{}", counts(Some("")));
    assert!(
        counts(None).ends_with("column 1 counts rows and says nothing about them: leave it out of the file")
    );
    // Every row has a number of its own, in any order: an index if it has no name.
    let mixed = |name| warned(name, |i| (7 * i % 40) as f32);
    assert_eq!((mixed(Some("Unnamed: 0")).len(), mixed(Some("load")).len()), (1, 0));
    assert!(
        warned(Some("time"), |i| 0.5 * i as f32).is_empty()
            && warned(Some("step"), |i| 2.0 * i as f32).is_empty()
    );
    let few = Table::column((0..19).map(|i| i as f32).collect());
    assert!(no_inputs(&few, &names(&["id"]), &Targets::Regression(few.clone())).is_empty());
}

#[test]
fn a_column_that_says_the_answer_is_told() {
    let label = |i: usize| (i * i % 3) as f32;
    assert_eq!(warned(Some("y"), label), ["column `y` gives the class away: leave it out with --without y"]);
    assert_eq!(warned(Some("y"), |i| 5.0 - 8.0 * label(i)).len(), 1, "under other numbers");
    // One row that differs, and a value of its own in a class.
    assert!(warned(Some("y"), |i| if i == 9 { 1.0 - label(i) } else { label(i) }).is_empty());
    assert!(warned(Some("y"), |i| if i == 9 { 7.0 } else { label(i) }).is_empty());
    let rows: Vec<[f32; 2]> = (0..40).map(|i| [(i * i % 17) as f32, (i * i % 23) as f32]).collect();
    let inputs = Table::from_rows(&rows).unwrap();
    let told = |target: Table| no_inputs(&inputs, &names(&["x", "mm"]), &Targets::Regression(target));
    assert_eq!(
        told(inputs.columns(&[1])),
        ["column `mm` gives the target away: leave it out with --without mm"]
    );
    assert!(told(Table::column((0..40).map(|i| (i % 5) as f32).collect())).is_empty());
}

#[test]
fn an_option_is_written_as_a_shell_takes_it() {
    let option = |all: &[&str]| without(all);
    assert_eq!(option(&["a", "b_2"]).unwrap(), "--without a,b_2");
    assert_eq!(option(&["mean area"]).unwrap(), "--without 'mean area'");
    assert_eq!(option(&["driver's"]).unwrap(), "--without 'driver'\\''s'");
    assert_eq!(option(&["x, y"]), None);
}

#[test]
fn names_that_are_not_there_and_names_twice_are_told() {
    let columns = names(&["age", "sex", "bmi", "diag"]);
    let said = |part| no_column(Path::new("t.csv"), part, &columns).to_string();
    assert_eq!(
        said("dig"),
        "`t.csv` has no column `dig`; its columns are age, sex, bmi, diag; did you mean `diag`?"
    );
    assert!(said("target").ends_with("age, sex, bmi, diag"), "{}", said("target"));
    assert!(
        said("bmi,age")
            .ends_with("name one column, or give several targets as a file that holds nothing else")
    );
    assert!(check_once(Path::new("t.csv"), columns.iter()).is_ok());
    let twice = names(&["a", "b", "a", "c", "b", "a"]);
    let said = check_once(Path::new("t.csv"), twice.iter()).unwrap_err().to_string();
    assert!(
        said.contains("`t.csv` has more than one column called `a`, `b`: give each a name of its own"),
        "{said}"
    );
}
