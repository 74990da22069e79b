//! `dab explain`: why is this input as far as it is, and what would change the verdict?

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use dab_core::{Assessment, Model, Verdict};
use serde_json::{Value, json};

use super::{
    input::{InputArgs, RateArgs},
    text::{self, bar, number, rounded},
};
use crate::{data::rows::RowError, export::model_file::ModelFile};

/// Explain the verdict on one input.
///
/// Which codes the input was compared with (assignment: the weight of each, sum 1; distance: nats), which latent
/// dimensions make it far (they sum to the uncertainty; a negative one makes it nearer), and at which
/// uncertainty the verdict would be another. Takes the first row, or the one that --row names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab explain model.dab input.csv
  dab explain model.dab inputs.npy --row 17
  dab explain model.dab inputs.csv --json | jq '.dimensions[0]'")]
pub struct Args {
    /// The model file
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    rates: RateArgs,

    /// Which row of data, counting from 1
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    row: u64,

    /// How many codes and dimensions to show
    #[arg(long, default_value_t = 8, value_name = "N")]
    top: usize,

    /// Write JSON, complete and in full precision
    #[arg(long)]
    json: bool,
}

/// All that is known about one input.
struct Explanation {
    assessment: Assessment,
    distances: Vec<f32>,
    assignment: Vec<f32>,
    dimensions: Vec<f32>,
    /// Uncertainties above which the input is doubtful, and unfamiliar.
    doubtful_above: Option<f32>,
    unfamiliar_above: Option<f32>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let artifact = ModelFile::open(&args.model)?;
    let mut model = artifact.model()?;
    args.rates.apply(&mut model)?;
    let input = read_row(args, &artifact, &model)?;
    let explanation = explain(&model, &input)?;
    if args.json {
        super::print(&format!("{:#}\n", describe_json(args, &explanation)))
    } else {
        super::print(&describe(args, &model, &explanation)?)
    }
}

fn read_row(args: &Args, artifact: &ModelFile, model: &Model<'_>) -> Result<Vec<f32>> {
    let mut rows = args.input.open(artifact, model)?;
    let mut input = vec![0.0; model.shape().inputs];
    for row in 1.. {
        match rows.next_into(&mut input) {
            Ok(true) if row == args.row => break,
            Ok(true) => {}
            Ok(false) => {
                let rows = text::plural(row - 1, "row");
                bail!("{} has {rows}, there is no row {}", args.input.source(), args.row);
            }
            Err(RowError::Bad(bad)) if row == args.row => bail!("{}: {bad}", args.input.source()),
            Err(RowError::Bad(_)) => {}
            Err(RowError::End(error)) => return Err(error).with_context(|| args.input.source()),
        }
    }
    Ok(input)
}

fn explain(model: &Model<'_>, input: &[f32]) -> Result<Explanation> {
    let shape = model.shape();
    let mut scratch = vec![0.0; model.scratch_len()];
    let (mut distances, mut assignment) = (vec![0.0; shape.codes], vec![0.0; shape.codes]);
    let mut dimensions = vec![0.0; shape.dim];
    let assessment =
        model.explain_into(input, &mut distances, &mut assignment, &mut dimensions, &mut scratch)?;
    let threshold = |rate| model.calibration().and_then(|table| table.threshold(rate));
    Ok(Explanation {
        assessment,
        distances,
        assignment,
        dimensions,
        doubtful_above: threshold(model.rates().doubtful()),
        unfamiliar_above: threshold(model.rates().unfamiliar()),
    })
}

/// Indices of the largest values first.
fn descending(values: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order
}

impl Explanation {
    /// Codes of the largest assignment, the nearer ones first among equals.
    fn codes(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.distances.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = ((self.assignment[a], self.distances[a]), (self.assignment[b], self.distances[b]));
            b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1))
        });
        order
    }

    /// What the verdict means, and what would change it.
    fn verdict_words(&self) -> String {
        let u = self.assessment.uncertainty;
        let (Some(verdict), Some(p)) = (self.assessment.verdict, self.assessment.p_value) else {
            return "no verdict: the model has no calibration table\n".into();
        };
        let meaning = match verdict {
            Verdict::Familiar => "like the training data",
            Verdict::Ambiguous => "like the training data, but between two classes",
            Verdict::Doubtful => "rare among the training data",
            Verdict::Unfamiliar => "unlike the training data",
        };
        let percent = rounded(100.0 * p);
        let mut words = format!(
            "{}: {meaning}; at most {percent} % of familiar inputs are this far (p = {})\n",
            text::verdict(verdict),
            rounded(p)
        );
        let limit = |name: &str, above: Option<f32>| match above {
            Some(limit) if u > limit => {
                format!("{name} above {} (exceeded by {})", rounded(limit), rounded(u - limit))
            }
            Some(limit) => format!("{name} above {} ({} more)", rounded(limit), rounded(limit - u)),
            None => format!("{name} never (too few held-out scores for its rate)"),
        };
        let limits =
            [limit("doubtful", self.doubtful_above), limit("unfamiliar", self.unfamiliar_above)].join(", ");
        words.push_str(&format!("the verdict changes with the uncertainty: {limits}\n"));
        words
    }
}

fn describe(args: &Args, model: &Model<'_>, explanation: &Explanation) -> Result<String> {
    let mut t = String::new();
    let assessment = &explanation.assessment;
    let saturated = if assessment.saturated { " (the largest that there is)" } else { "" };
    let (source, row) = (args.input.source(), args.row);
    writeln!(t, "{source}, row {row}: uncertainty {} nats{saturated}", rounded(assessment.uncertainty))?;
    t.push_str(&explanation.verdict_words());

    let (codes, nearest) = (explanation.codes(), assessment.nearest);
    let distance = rounded(assessment.nearest_distance);
    writeln!(
        t,
        "\nnearest code {nearest} at {distance} nats; {} of {} codes:",
        codes.len().min(args.top),
        codes.len()
    )?;
    writeln!(t, "   code  assignment    distance")?;
    for &k in codes.iter().take(args.top) {
        let (weight, distance) = (explanation.assignment[k], rounded(explanation.distances[k]));
        let dead = if model.codebook().priors[k] == 0.0 { " prior 0" } else { "" };
        writeln!(t, "  {k:>5}  {:>10}  {distance:>10}  {}{dead}", rounded(weight), bar(weight))?;
    }

    let (order, u) = (descending(&explanation.dimensions), assessment.uncertainty);
    let largest = order.first().map_or(0.0, |&i| explanation.dimensions[i]).max(f32::MIN_POSITIVE);
    writeln!(
        t,
        "\n{} of {} latent dimensions, by what they add to the uncertainty:",
        order.len().min(args.top),
        order.len()
    )?;
    writeln!(t, "  dimension        nats   share")?;
    for &i in order.iter().take(args.top) {
        let nats = explanation.dimensions[i];
        let share = if u > 0.0 { 100.0 * (nats / u) } else { 0.0 };
        writeln!(t, "  {i:>9}  {:>10}  {share:>4.0} %  {}", rounded(nats), bar(nats / largest))?;
    }
    Ok(t)
}

fn describe_json(args: &Args, explanation: &Explanation) -> Value {
    let assessment = &explanation.assessment;
    let code = |k: usize| {
        let (assignment, distance) = (number(explanation.assignment[k]), number(explanation.distances[k]));
        json!({ "code": k, "assignment": assignment, "distance": distance })
    };
    let dimension = |i: usize| json!({ "dimension": i, "nats": number(explanation.dimensions[i]) });
    json!({
        "row": args.row,
        "uncertainty": number(assessment.uncertainty),
        "saturated": assessment.saturated,
        "p_value": assessment.p_value.map(number),
        "verdict": assessment.verdict.map(text::verdict),
        "doubtful_above": explanation.doubtful_above.map(number),
        "unfamiliar_above": explanation.unfamiliar_above.map(number),
        "nearest": assessment.nearest,
        "nearest_distance": number(assessment.nearest_distance),
        "codes": explanation.codes().into_iter().map(code).collect::<Vec<_>>(),
        "dimensions": descending(&explanation.dimensions).into_iter().map(dimension).collect::<Vec<_>>(),
    })
}
