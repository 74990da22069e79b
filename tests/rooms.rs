//! The rooms of dab-train use one another in one direction, in the order that ARCHITECTURE.md states.

use std::path::{Path, PathBuf};

use dab_tests::repository;

/// Folders and files of dab-train/src: each uses only itself and those before it.
const ORDER: [&str; 14] = [
    "support",
    "error",
    "data",
    "model",
    "config",
    "learn",
    "export",
    "measure",
    "choose",
    "run",
    "report",
    "experiment",
    "fit",
    "cli",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

fn word(text: &str) -> &str {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default()
}

/// What stands behind each `crate::` of a source, tests left out: the first name, or those of a group.
fn used(text: &str) -> Vec<&str> {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut names = Vec::new();
    for behind in code.split("crate::").skip(1) {
        let Some(group) = behind.strip_prefix('{') else {
            names.push(word(behind));
            continue;
        };
        let (mut depth, mut first) = (0, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => first = true,
                _ if first && c.is_alphanumeric() => {
                    names.push(word(&group[at..]));
                    first = false;
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn a_room_uses_only_those_before_it() {
    let root = repository().join("dab-train/src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let place = |name: &str| ORDER.iter().position(|&room| room == name);
    let mut seen = 0;
    for file in files {
        let inside = file.strip_prefix(&root).expect("a file of the crate");
        let room = inside.iter().next().unwrap_or_default().to_string_lossy();
        let room = room.trim_end_matches(".rs");
        if ["lib", "main"].contains(&room) {
            continue;
        }
        let own = place(room).unwrap_or_else(|| panic!("{room} has no place in the order"));
        let text = std::fs::read_to_string(&file).expect("a source");
        for name in used(&text) {
            let Some(other) = place(name) else { continue };
            assert!(other <= own, "{} uses {name}, which comes after {room}", inside.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} uses found");
}

#[test]
fn the_order_is_the_documented_one() {
    let page = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the page");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&ORDER.map(|room| format!("`{room}`")).join(", ")));
}
