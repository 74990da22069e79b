//! `dab data`: where data sets come from, how they are made, and whether they are here.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::print;
use crate::data::{
    data_root,
    sets::{KNOWN, Known, State},
};

/// Tell where data sets come from, and verify those that are here
///
/// A data file that an experiment names is looked for in the data folder: the one that the environment
/// variable DAB_DATA names, else data/ in the current folder. The repository holds no data sets.
///
/// Without a name all sets are listed, each with its state. With names, those that are not here come with
/// the commands to type in the top folder of the repository, and the exit code is 1 unless all of them
/// are here and undamaged.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  dab data
  dab data uci
  dab data clinc150 text-ood && dab train dab-train/experiments/clinc150.toml"
)]
pub struct Args {
    /// The sets; `dab data` lists their names
    names: Vec<String>,
    /// Another data folder [default: the one that DAB_DATA names, else data/ in the current folder]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let root = args.to.clone().unwrap_or_else(data_root);
    if args.names.is_empty() {
        return list(&root);
    }
    let find = |name: &String| {
        let all: Vec<&str> = KNOWN.iter().map(|known| known.name.as_str()).collect();
        Known::named(name).with_context(|| format!("no set is called `{name}`; there are {}", all.join(", ")))
    };
    let named = args.names.iter().map(find).collect::<Result<Vec<_>>>()?;
    let mut absent = Vec::new();
    for known in named {
        let state = known.state(&root);
        print(&describe(known, &state, &root))?;
        if !here(&state) {
            absent.push(known.name.as_str());
        }
    }
    ensure!(absent.is_empty(), "not usable: {}", absent.join(", "));
    Ok(())
}

fn here(state: &State) -> bool {
    matches!(state, State::Verified | State::There)
}

/// All sets, one line each.
fn list(root: &Path) -> Result<()> {
    let widest = KNOWN.iter().map(|known| known.name.len()).max().unwrap_or(0);
    print(&format!("data folder: {}\n", root.display()))?;
    for known in KNOWN.iter() {
        let state = match known.state(root) {
            State::Verified => "verified",
            State::There => "here",
            State::Missing(_) => "missing",
            State::Differs(..) => "differs",
        };
        print(&format!("{:widest$}  {state:8}  {}\n", known.name, known.about))?;
    }
    print("`dab data NAME` tells how to get a set\n")
}

/// How a set stands, and what to do about it.
fn describe(known: &Known, state: &State, root: &Path) -> String {
    let folder = root.display().to_string();
    let mut text = match state {
        State::Verified => format!("{}: here, verified\n", known.name),
        State::There => format!("{}: here\n", known.name),
        State::Missing(path) => format!("{}: missing {}\n", known.name, path.display()),
        State::Differs(path, what) => format!("{}: {} differs: {what}\n", known.name, path.display()),
    };
    if here(state) {
        return text;
    }
    let before: Vec<String> = known.after.iter().map(|name| format!("`dab data {name}`")).collect();
    let after = if before.is_empty() { String::new() } else { format!("after {}, ", before.join(", ")) };
    text += &format!("{}\n\nTo get it, {after}type in the top folder of the repository\n\n", known.about);
    for step in &known.steps {
        text += &format!("    {}\n", step.replace("DATA", &folder));
    }
    if !known.note.is_empty() {
        text += &format!("\n{}\n", known.note.trim().replace("DATA", &folder));
    }
    text + "\n"
}
