//! Columns of tables by their names: what is not there, what is there twice, and what is no input although it stands among
//! the inputs.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Error, Result, anyhow, bail};

use super::{
    Table, Targets, listed,
    rows::{BadRow, Fault},
};
use crate::support::text::meant;

/// In fewer rows than this, a column may look like a count or like the classes by chance.
const FEWEST: usize = 20;

/// The first of some names, each in quotes, and how many more there are.
pub(crate) fn quoted<T: AsRef<str>>(names: &[T]) -> String {
    listed(&names.iter().map(|name| format!("`{}`", name.as_ref())).collect::<Vec<_>>())
}

/// Why `part` is no column of a file that has columns of these names.
pub(super) fn no_column(path: &Path, part: &str, names: &[String]) -> Error {
    let several = match part.contains(',') {
        true => "; name one column, or give several targets as a file that holds nothing else",
        false => "",
    };
    anyhow!(
        "`{}` has no column `{part}`; its columns are {}{}{several}",
        path.display(),
        listed(names),
        did_you_mean(part, names)
    )
}

/// A question after the name that was probably meant; empty where none is near.
pub(super) fn did_you_mean(part: &str, names: &[String]) -> String {
    let name = meant(part, names.iter().map(String::as_str));
    name.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Refuses columns of which two have one name: nobody could tell which of them is an input.
pub(super) fn check_once<'a>(path: &Path, names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = HashSet::new();
    let mut twice: Vec<&String> = names.filter(|name| !seen.insert(*name)).collect();
    twice.sort_unstable();
    twice.dedup();
    if !twice.is_empty() {
        bail!(
            "`{}` has more than one column called {}: give each a name of its own, because a model finds its inputs by name",
            path.display(),
            quoted(&twice)
        );
    }
    Ok(())
}

/// The option of `dab fit` that leaves columns out, as a shell takes it. `None` for a name with a comma, which separates names.
pub(super) fn without<T: AsRef<str>>(names: &[T]) -> Option<String> {
    if names.iter().any(|name| name.as_ref().contains(',')) {
        return None;
    }
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(",");
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ',');
    Some(match !names.is_empty() && names.chars().all(plain) {
        true => format!("--without {names}"),
        false => format!("--without '{}'", names.replace('\'', "'\\''")),
    })
}

/// What a user can do about a value that cannot be read; `input` says that it stands in a column that could be left out.
pub(super) fn remedy(bad: &BadRow, input: bool) -> Option<String> {
    let mend = match bad.fault {
        Fault::Missing => "fill it in",
        Fault::Text(_) => "give a number for each word or date",
        Fault::NonFinite(_) => "correct it",
        Fault::Width { .. } => return None,
    };
    let option = bad.name.as_ref().filter(|_| input).and_then(|name| without(&[name]));
    Some(match option {
        Some(option) => format!("{mend}, drop the row, or leave the column out: {option}"),
        None => format!("{mend}, or drop the row"),
    })
}

/// Warnings about columns that are probably no inputs: those that count the rows, and those that say what is to be predicted.
/// The rows are in the order of their file.
pub(super) fn no_inputs(inputs: &Table, names: &[String], targets: &Targets) -> Vec<String> {
    if inputs.rows < FEWEST {
        return Vec::new();
    }
    let warn = |column: usize| {
        let name = names.get(column).map(String::as_str);
        let wrong = if counts_rows(inputs, column, name) {
            "counts rows and says nothing about them"
        } else if gives_away(inputs, column, targets) {
            match targets {
                Targets::Classes { .. } => "gives the class away",
                Targets::Regression(_) => "gives the target away",
            }
        } else {
            return None;
        };
        let called = match name {
            Some(name) if !name.is_empty() => format!("column `{name}`"),
            Some(_) => format!("column {}, which has no name,", column + 1),
            None => format!("column {}", column + 1),
        };
        let option = name.and_then(|name| without(&[name]));
        let how = option.map_or_else(|| "of the file".to_owned(), |option| format!("with {option}"));
        Some(format!("{called} {wrong}: leave it out {how}"))
    };
    (0..inputs.cols).filter_map(warn).collect()
}

/// Whether a column goes up by 1 from row to row. In one without a name, as pandas writes its index, it is enough that every row
/// has a whole number of its own: rows may have been mixed.
fn counts_rows(inputs: &Table, column: usize, name: Option<&str>) -> bool {
    let values = || inputs.iter().map(|row| row[column]);
    if !values().all(|x| x.fract() == 0.0) {
        return false;
    }
    let unnamed = name.is_some_and(|name| name.is_empty() || name.starts_with("Unnamed: "));
    let apart = || values().map(|x| x as i64).collect::<HashSet<_>>().len() == inputs.rows;
    values().zip(values().skip(1)).all(|(a, b)| b - a == 1.0) || (unnamed && apart())
}

/// Whether a column says the answer: each of its values stands for a class, and each class has one value; or it is a target.
fn gives_away(inputs: &Table, column: usize, targets: &Targets) -> bool {
    let values = || inputs.iter().map(|row| row[column] + 0.0);
    match targets {
        Targets::Classes { labels, .. } => {
            let mut classes = HashMap::new();
            let same =
                values().zip(labels).all(|(x, label)| classes.entry(x.to_bits()).or_insert(label) == &label);
            same && classes.len() == labels.iter().collect::<HashSet<_>>().len()
        }
        Targets::Regression(table) => {
            (0..table.cols).any(|target| values().eq(table.iter().map(|row| row[target])))
        }
    }
}

#[cfg(test)]
#[path = "columns_tests.rs"]
mod tests;
