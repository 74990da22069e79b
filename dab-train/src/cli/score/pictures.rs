//! Pictures through an image network and a model: one line each.

use anyhow::{Context, Result, bail};
use dab_core::Model;

use super::{
    super::pictures::Eye,
    Args, Count, Output,
    lines::{Scorer, write_names},
};
use crate::{data::rows::ReadProgress, export::model_file::ModelFile};

/// Pictures through the image network and the model, some at a time: one line each, in the order in which they were named.
pub fn run(args: &Args, eye: &Eye, artifact: &ModelFile, model: &Model<'_>) -> Result<()> {
    let (takes, gives) = (model.shape().inputs, eye.features());
    if takes != gives {
        bail!("`{}` takes {takes} numbers, the image network gives {gives}", args.model.display());
    }
    let sets = eye.sets(&args.input.inputs)?;
    let classes = artifact.class_names(model.shape().outputs);
    let mut scorer = Scorer::new(model, &classes, args.json, args.probabilities);
    scorer.named = true;
    let mut output = Output::open(args)?;
    if !args.json {
        write_names(&scorer.columns(artifact), output.writer()).with_context(|| args.write_error())?;
    }
    let total = sets.iter().map(|set| set.len() as u64).sum();
    let start = ReadProgress { done: 0, total: Some(total), bytes: false };
    let progress = super::progress_bar(matches!(output, Output::File(_)), start);
    let mut count = Count { rows: total, ..Count::default() };
    for set in &sets {
        let indices: Vec<usize> = (0..set.len()).collect();
        for indices in indices.chunks(if args.flush { 1 } else { eye.chunk() }) {
            let (features, faults) = eye.see(set, indices);
            scorer.lines.clear();
            for ((&index, row), fault) in indices.iter().zip(features.chunks_exact(gives)).zip(faults) {
                let name = set.name(index);
                match fault {
                    None => scorer.named_line(&name, Ok(row))?,
                    Some(fault) if args.skip_bad => {
                        scorer.named_line(&name, Err(&format!("{fault:#}")))?;
                        count.bad(&name);
                    }
                    Some(fault) => {
                        bail!("{fault:#}: leave it out, or use --skip-bad to mark such files and go on")
                    }
                }
            }
            output.writer().write_all(&scorer.lines).with_context(|| args.write_error())?;
            if args.flush {
                output.writer().flush().with_context(|| args.write_error())?;
            }
            progress.inc(indices.len() as u64);
        }
    }
    output.finish().with_context(|| args.write_error())?;
    progress.finish_and_clear();
    if count.bad > 0 {
        count.tell("", "picture");
    }
    Ok(())
}
