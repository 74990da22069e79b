//! docs/method.md explains the method: every equation that the repository cites is on it, every file that it
//! names exists, and its calculation by hand is what dab-core computes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dab_core::codebook::Codebook;
use dab_core::gaussian::{Diagonal, Gaussian};
use dab_core::{Rates, Verdict};
use dab_tests::markdown::names;
use dab_tests::repository;
use nalgebra::Vector1;

const PAGE: &str = include_str!("../docs/method.md");

/// Kinds of files that cite the method.
const KINDS: [&str; 7] = ["rs", "md", "toml", "c", "h", "py", "sh"];

/// Numbers of the page have six digits behind the point, and dab-core computes in f32.
const DIGITS: f32 = 1e-6;

/// Every text file of the repository that could cite something; no build products, no results of runs.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !(name.starts_with('.') || name.starts_with("target") || name == "runs") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|kind| KINDS.iter().any(|&known| kind == known))
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            found.push((path, text));
        }
    }
}

fn headings() -> impl Iterator<Item = &'static str> {
    PAGE.lines().filter_map(|line| line.strip_prefix("## "))
}

/// Equation tags in a text: E and one or two digits, as a word.
fn tags(text: &str) -> BTreeSet<&str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let number = |word: &&str| {
        let digits = word.strip_prefix('E').unwrap_or_default();
        (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text.split(|c| !word(c)).filter(number).collect()
}

/// What stands behind each `before` in a text, up to the next `end`.
fn behind<'a>(text: &'a str, before: &'a str, end: &'a [char]) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(move |rest| rest.split(end).next())
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_equation_that_is_cited_is_on_the_page() {
    let defined: Vec<&str> =
        headings().filter_map(|heading| heading.split_once(". ")).map(|(e, _)| e).collect();
    assert_eq!(defined, (1..=17).map(|n| format!("E{n}")).collect::<Vec<_>>(), "in order, each once");
    let mut all = Vec::new();
    sources(repository(), &mut all);
    all.retain(|(path, _)| !path.ends_with("docs/method.md") && !path.ends_with(file!()));
    let mut cited = BTreeMap::<&str, usize>::new();
    for (path, text) in &all {
        let path = path.display();
        for tag in tags(text) {
            assert!(defined.contains(&tag), "{path} cites {tag}, which docs/method.md does not have");
            *cited.entry(tag).or_default() += 1;
        }
        for section in behind(text, "method.md, \"", &['"']) {
            let found = headings().any(|heading| heading.eq_ignore_ascii_case(section));
            assert!(found, "{path} cites the section {section:?}, which docs/method.md does not have");
        }
        for link in behind(text, "method.md#", &[')', ']', '`', '"', ' ', '\n']) {
            assert!(headings().any(|heading| anchor(heading) == link), "{path} links to method.md#{link}");
        }
    }
    println!("{} files; how many cite each equation: {cited:?}", all.len());
    let missing: Vec<&&str> = defined.iter().filter(|tag| !cited.contains_key(**tag)).collect();
    assert!(missing.is_empty(), "nothing cites {missing:?}: were the files found?");
}

#[test]
fn links_within_the_page_lead_somewhere() {
    for link in behind(PAGE, "](#", &[')']) {
        assert!(headings().any(|heading| anchor(heading) == link), "#{link}");
    }
}

#[test]
fn every_file_and_function_that_it_names_exists() {
    let prose: Vec<&str> = PAGE.split("```").step_by(2).collect();
    let prose = prose.concat().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut functions = 0;
    for (i, name) in names(&prose).enumerate() {
        if name.contains('/') {
            let path = repository().join(name);
            assert!(path.exists(), "{name}");
            // In brackets behind a file: what in it.
            let after = prose.split('`').nth(2 * i + 2).unwrap_or_default();
            if after.starts_with(" (") && !after.contains(')') {
                let text = std::fs::read_to_string(path).expect("a source file");
                let inside = prose.split('`').skip(2 * i + 2).collect::<Vec<_>>().join("`");
                for function in names(inside.split(')').next().unwrap_or_default()) {
                    assert!(text.contains(function), "{function} in {name}");
                    functions += 1;
                }
            }
        } else if name.ends_with(".md") || name.ends_with(".toml") {
            let folders = ["", "docs", "dab-train/experiments"];
            assert!(folders.iter().any(|folder| repository().join(folder).join(name).exists()), "{name}");
        }
    }
    assert!(functions > 10, "{functions} functions found on the page");
}

#[test]
fn the_calculation_by_hand() {
    let (_, after) = PAGE.split_once("## A calculation by hand").expect("the section");
    let (_, block) = after.split_once("```text\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    // `name = formula = number unit`
    let stated: BTreeMap<&str, f32> = block
        .lines()
        .map(|line| {
            let (name, _) = line.split_once(" = ").expect("a name");
            let (_, number) = line.rsplit_once("= ").expect("a number");
            (name, number.split(' ').next().unwrap_or_default().parse().expect("a number"))
        })
        .collect();
    let gaussian = |mean: f32, std: f32| {
        Gaussian::<1, Diagonal>::new(Vector1::new(mean), Vector1::new(std)).expect("a Gaussian")
    };
    let mut codebook = Codebook::<2, 1>::new(1.0).expect("a temperature");
    codebook.push(&gaussian(0.0, 1.0), 0.75).expect("room");
    codebook.push(&gaussian(3.0, 1.0), 0.25).expect("room");
    let x = gaussian(2.0, 0.5);
    let distances = codebook.distances(&x);
    let mut assignment = [0.0; 2];
    codebook.view().assignment_into(&distances, &mut assignment);
    let weight = 0.75 * (distances[1] - distances[0]).exp();
    let computed = [
        ("D_A", distances[0]),
        ("D_B", distances[1]),
        ("w_A", weight),
        ("w_B", 0.25),
        ("π_x(A)", assignment[0]),
        ("π_x(B)", assignment[1]),
        ("u", codebook.assess(&x).uncertainty),
    ];
    assert_eq!(stated.len(), computed.len());
    for (name, value) in computed {
        assert!((stated[name] - value).abs() <= DIGITS, "{name}: {} stated, {value} computed", stated[name]);
    }
    assert_eq!(Rates::DEFAULT.verdict(1.0 / 20.0), Verdict::Doubtful);
}
