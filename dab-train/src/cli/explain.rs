//! `dab explain`: why is this input as far as it is, and what would change the verdict?

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use dab_core::channels::ViewScore;
use dab_core::{Assessment, Model, Task, Verdict};
use serde_json::{Value, json};

use super::{
    input::{InputArgs, RateArgs},
    pictures::{NetworkArgs, are_pictures},
    place::Place,
    sensors::{SensorArgs, Sensors},
    text::{self, bar, number, rounded},
};
use crate::{data::rows::RowError, export::model_file::ModelFile};

/// Explain the verdict on one input.
///
/// Which inputs make it far (how much less the score is with each at its mean in the training rows; a broken sensor is the
/// first), which codes the input was compared with (assignment: the weight of each, sum 1; distance: nats), which latent
/// dimensions make it far (they sum to the uncertainty; a negative one makes it nearer), and at which
/// score the verdict would be another. A model of `dab fit` also says which view of the input was alarmed, and
/// between which two classes an ambiguous input lies. Takes the first row, or the one that --row names. Pictures
/// are taken as `dab score` takes them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab explain model.dab input.csv
  dab explain model.dab inputs.npy --row 17
  dab explain model.dab log.csv --row 3 --group 'front imu=ax,ay,az' --group battery=12-14
  dab explain model.dab inputs.csv --json | jq '.inputs[0].name'
  dab explain runs/insects cat.png")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    rates: RateArgs,

    #[command(flatten)]
    sensors: SensorArgs,

    #[command(flatten)]
    network: NetworkArgs,

    /// Which row of data, counting from 1
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = row)]
    row: u64,

    /// How many inputs, codes and dimensions to show
    #[arg(long, default_value_t = 8, value_name = "N")]
    top: usize,

    /// Write JSON, complete and in full precision
    #[arg(long)]
    json: bool,
}

/// The number of a row.
fn row(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|&row| row > 0).ok_or_else(|| "a whole number; rows count from 1".to_owned())
}

/// All that is known about one input.
struct Explanation<'a> {
    model: &'a Model<'a>,
    assessment: Assessment,
    distances: Vec<f32>,
    assignment: Vec<f32>,
    dimensions: Vec<f32>,
    /// What every input adds; none without training means.
    sensors: Option<Sensors>,
    /// What every view says; one without a surprise in a model without channels.
    views: Vec<ViewScore>,
    classes: Vec<String>,
}

pub fn run(args: &Args) -> Result<()> {
    let place = Place::new(&args.model)?;
    let artifact = args.rates.apply(ModelFile::open(&place.model)?)?;
    let model = artifact.model()?;
    let input = match are_pictures(&args.input.inputs)? {
        true => see_picture(args, &place, &artifact, &model)?,
        false => read_row(args, &artifact, &model)?,
    };
    let mut explanation = explain(&artifact, &model, &input)?;
    explanation.sensors = args.sensors.look(&args.input, &artifact, &model, &input)?;
    if args.json {
        super::print(&format!("{:#}\n", describe_json(args, &explanation)))
    } else {
        super::print(&describe(args, &explanation)?)
    }
}

/// Features of the picture that --row names.
fn see_picture(args: &Args, place: &Place, artifact: &ModelFile, model: &Model<'_>) -> Result<Vec<f32>> {
    let eye = args.network.open(Some(&artifact.info), Some(&place.folder))?;
    let (takes, gives) = (model.shape().inputs, eye.features());
    ensure!(takes == gives, "the model takes {takes} numbers, the image network gives {gives}");
    let mut row = args.row as usize - 1;
    for set in eye.sets(&args.input.inputs)? {
        if row < set.len() {
            let (features, mut faults) = eye.see(&set, &[row]);
            return faults.pop().flatten().map_or(Ok(features), Err);
        }
        row -= set.len();
    }
    bail!("there is no picture {}: fewer were named", args.row)
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

fn explain<'a>(artifact: &ModelFile, model: &'a Model<'a>, input: &[f32]) -> Result<Explanation<'a>> {
    let shape = model.shape();
    let mut scratch = vec![0.0; model.scratch_len()];
    let (mut distances, mut assignment) = (vec![0.0; shape.codes], vec![0.0; shape.codes]);
    let mut dimensions = vec![0.0; shape.dim];
    let mut assessment =
        model.explain_into(input, &mut distances, &mut assignment, &mut dimensions, &mut scratch)?;
    let mut views = vec![ViewScore::default(); shape.views];
    model.views_into(input, &mut views, &mut scratch)?;
    // A model without channels has logits all the same.
    let mut outputs = vec![0.0; shape.outputs];
    if shape.task == Some(Task::Classification) && assessment.class.is_none() {
        model.predict_into(input, &mut outputs, &mut scratch)?;
        let order = descending(&outputs);
        (assessment.class, assessment.runner_up) = (order.first().copied(), order.get(1).copied());
    }
    let classes = artifact.class_names(shape.outputs);
    Ok(Explanation { model, assessment, distances, assignment, dimensions, sensors: None, views, classes })
}

/// Indices of the largest values first.
fn descending(values: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order
}

impl Explanation<'_> {
    /// Scores above which the input is doubtful, and unfamiliar.
    fn limits(&self) -> [Option<f32>; 2] {
        let rates = [self.model.rates().doubtful(), self.model.rates().unfamiliar()];
        rates.map(|rate| self.model.calibration()?.threshold(rate))
    }

    /// The ambiguity above which it is ambiguous.
    fn ambiguous_above(&self) -> Option<f32> {
        self.model.ambiguity_calibration().and_then(|(table, rate)| table.threshold(rate))
    }

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
        let u = self.assessment.score();
        let (Some(verdict), Some(p)) = (self.assessment.verdict, self.assessment.p_value) else {
            return "no verdict: the model has no calibration table\n".into();
        };
        let between = self.between();
        let meaning = match verdict {
            Verdict::Familiar => "like the training data",
            Verdict::Ambiguous => between.as_str(),
            Verdict::Doubtful => "rare among the training data",
            Verdict::Unfamiliar => "unlike the training data",
        };
        let percent = rounded(100.0 * p);
        let mut words = format!(
            "{}: {meaning}; at most {percent} % of familiar inputs are this {} (p = {})\n",
            verdict.name(),
            if self.assessment.unfamiliarity.is_some() { "strange" } else { "far" },
            rounded(p)
        );
        let limit = |name: &str, above: Option<f32>| match above {
            Some(limit) if u > limit => {
                format!("{name} above {} (exceeded by {})", rounded(limit), rounded(u - limit))
            }
            Some(limit) => format!("{name} above {} ({} more)", rounded(limit), rounded(limit - u)),
            None => format!("{name} never (too few held-out scores for its rate)"),
        };
        let [doubtful, unfamiliar] = self.limits();
        let limits = [limit("doubtful", doubtful), limit("unfamiliar", unfamiliar)].join(", ");
        let score = if self.assessment.unfamiliarity.is_some() { "unfamiliarity" } else { "uncertainty" };
        words.push_str(&format!("the verdict changes with the {score}: {limits}\n"));
        if let (Some(ambiguity), Some(p)) = (self.assessment.ambiguity, self.assessment.ambiguity_p) {
            let percent = rounded(100.0 * p);
            let limit = self.ambiguous_above().map_or_else(String::new, |above| {
                format!("; ambiguous above {} ({} now)", rounded(above), rounded(ambiguity))
            });
            let (class, p) = (self.class(self.assessment.class).unwrap_or_default(), rounded(p));
            words.push_str(&format!(
                "class {class}, {between}: at most {percent} % of familiar inputs are this ambiguous (p = {p}){limit}\n"
            ));
        } else if let Some(class) = self.class(self.assessment.class) {
            words.push_str(&format!("class {class}, {between}\n"));
        }
        words
    }

    fn class(&self, class: Option<usize>) -> Option<&str> {
        class.and_then(|class| self.classes.get(class)).map(String::as_str)
    }

    /// The two likeliest classes, in words.
    fn between(&self) -> String {
        match (self.class(self.assessment.class), self.class(self.assessment.runner_up)) {
            (Some(class), Some(other)) => format!("between {class} and {other}"),
            _ => "between two classes".to_owned(),
        }
    }

    /// What each view says of the input, the alarmed one marked; nothing for a model without channels.
    fn view_words(&self) -> String {
        let (Some(alarmed), Some(channels)) = (self.assessment.view, self.model.channels_meta()) else {
            return String::new();
        };
        let mut words = String::from("\n   view        form    distance      energy    surprise\n");
        let forms = std::iter::once(channels.base.form).chain(channels.views.iter().map(|view| view.form));
        for (index, (view, form)) in self.views.iter().zip(forms).enumerate() {
            let energy = view.energy.map_or_else(|| "-".to_owned(), rounded);
            let mark = if index == alarmed { "  the most surprised" } else { "" };
            words.push_str(&format!(
                "  {index:>5}  {:>10}  {:>10}  {energy:>10}  {:>10}{mark}\n",
                form.name(),
                rounded(view.distance),
                rounded(view.surprise)
            ));
        }
        words
    }
}

fn describe(args: &Args, explanation: &Explanation<'_>) -> Result<String> {
    let mut t = String::new();
    let (assessment, model) = (&explanation.assessment, explanation.model);
    let saturated = if assessment.saturated { " (the largest that there is)" } else { "" };
    let (source, row) = (args.input.source(), args.row);
    let unfamiliarity =
        assessment.unfamiliarity.map_or_else(String::new, |u| format!("unfamiliarity {}, ", rounded(u)));
    let nats = rounded(assessment.uncertainty);
    writeln!(t, "{source}, row {row}: {unfamiliarity}uncertainty {nats} nats{saturated}")?;
    t.push_str(&explanation.verdict_words());
    t.push_str(&explanation.view_words());
    if model.taught().is_some() {
        t.push_str("the model was taught more: codes and dimensions below are those of the model before\n");
    }
    match &explanation.sensors {
        Some(sensors) => t.push_str(&sensors.describe(args.top)?),
        None => t.push_str(
            "\nwhich inputs: the model has no training means, give training rows with --means FILE\n",
        ),
    }

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

fn describe_json(args: &Args, explanation: &Explanation<'_>) -> Value {
    let assessment = &explanation.assessment;
    let [doubtful, unfamiliar] = explanation.limits();
    let code = |k: usize| {
        let (assignment, distance) = (number(explanation.assignment[k]), number(explanation.distances[k]));
        json!({ "code": k, "assignment": assignment, "distance": distance })
    };
    let dimension = |i: usize| json!({ "dimension": i, "nats": number(explanation.dimensions[i]) });
    let view = |view: &ViewScore| {
        json!({ "distance": number(view.distance), "energy": view.energy.map(number), "score": number(view.score),
            "surprise": number(view.surprise) })
    };
    let (inputs, groups) = explanation.sensors.as_ref().map(Sensors::json).unwrap_or_default();
    json!({
        "row": args.row,
        "uncertainty": number(assessment.uncertainty),
        "saturated": assessment.saturated,
        "p_value": assessment.p_value.map(number),
        "verdict": assessment.verdict.map(Verdict::name),
        "unfamiliarity": assessment.unfamiliarity.map(number),
        "ambiguity": assessment.ambiguity.map(number),
        "ambiguity_p": assessment.ambiguity_p.map(number),
        "ambiguous_above": explanation.ambiguous_above().map(number),
        "class": explanation.class(assessment.class),
        "runner_up": explanation.class(assessment.runner_up),
        "alarmed_view": assessment.view,
        "views": explanation.views.iter().map(view).collect::<Vec<_>>(),
        "doubtful_above": doubtful.map(number),
        "unfamiliar_above": unfamiliar.map(number),
        "nearest": assessment.nearest,
        "nearest_distance": number(assessment.nearest_distance),
        "inputs": inputs,
        "groups": groups,
        "codes": explanation.codes().into_iter().map(code).collect::<Vec<_>>(),
        "dimensions": descending(&explanation.dimensions).into_iter().map(dimension).collect::<Vec<_>>(),
    })
}
