//! `dab inspect`: what is in a model file, what it costs, and when it raises an alarm.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;
use dab_core::artifact::info::{INPUT_MEANS, OUTPUT_BANDS};
use dab_core::artifact::schema::{LayerMeta, MAJOR, Residual};
use dab_core::{Activation, Model};
use serde::Serialize;
use serde_json::{Value, json};

use super::place::Place;
use super::text::{self, bar, grouped, number, plural, rounded};
use crate::export::{band, model_file::ModelFile};
use crate::measure::stream::file::MonitorFile;

/// A codebook of up to this many codes is shown whole.
const SMALL: usize = 16;
/// Codes that are shown of a larger one.
const FEW: usize = 8;

/// Show what is in a model file.
///
/// Shape and layers, flash and scratch bytes, multiply-adds per call, the codes with their priors and volumes
/// (half the log-determinant of their covariance, nats: the larger, the wider), the views of an input with their
/// forms and bytes, the scores at which the verdict changes, the monitor, and the strings that travel in the file. The identity is a checksum of the model: two
/// files with the same one hold the same model and strings.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  dab inspect model.dab
  dab inspect model.dab --all                    # every code
  dab inspect model.dab --json | jq .calibration")]
pub struct Args {
    /// The model file, or the folder of a run
    #[arg(value_name = "MODEL.dab")]
    model: PathBuf,

    /// Write JSON, complete and in full precision
    #[arg(long)]
    json: bool,

    /// Show every code
    #[arg(long)]
    all: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let artifact = Place::open(&args.model)?;
    let model = artifact.model()?;
    if args.json {
        return super::print(&format!("{:#}\n", describe_json(&artifact, &model)));
    }
    super::print(&describe(args, &artifact, &model)?)
}

/// Half the log-determinant: ln of the volume of a code, up to a constant of the dimension.
fn volume(log_det: f32) -> f32 {
    0.5 * log_det
}

/// The format that the file says it has.
fn format(artifact: &ModelFile) -> String {
    let minor =
        artifact.bytes().get(10..12).and_then(<[u8]>::first_chunk).map_or(0, |&b| u16::from_le_bytes(b));
    format!("{MAJOR}.{minor}")
}

fn describe(args: &Args, artifact: &ModelFile, model: &Model<'_>) -> Result<String> {
    let mut t = String::new();
    let bytes = artifact.bytes().len();
    writeln!(t, "{}: {}", args.model.display(), text::flow(model))?;
    writeln!(t, "\nsize         {}", text::cost(model, bytes))?;
    writeln!(t, "identity     {:08x} (CRC-32C), format {}", artifact.identity(), format(artifact))?;
    if model.meta().int8 {
        writeln!(t, "weights      one byte each, a scale for each row; everything else in 4 bytes")?;
    }
    describe_flow(&mut t, model)?;
    describe_codes(&mut t, model, args.all)?;
    describe_views(&mut t, model)?;
    if let Some(taught) = model.taught() {
        writeln!(t, "taught       {}", plural(taught.len() as u64, "code"))?;
    }
    describe_calibration(&mut t, model)?;
    if let Some(monitor) = MonitorFile::of_model(model) {
        describe_monitor(&mut t, &monitor)?;
    }
    writeln!(t, "self-test    {}", plural(model.meta().self_test.vectors.into(), "known answer"))?;
    for (i, (key, value)) in artifact.info.iter().enumerate() {
        // Hexadecimal words, one for each input: nobody reads those.
        let means = || format!("those of the training rows, {} words", value.split(' ').count());
        let value = match key.as_str() {
            INPUT_MEANS => means(),
            OUTPUT_BANDS => band_words(artifact, model).unwrap_or_else(|| text::printable(value)),
            _ => text::printable(value),
        };
        let key = text::printable(key);
        writeln!(t, "{:<12} {key} = {value}", if i == 0 { "info" } else { "" })?;
    }
    Ok(t)
}

/// The bands of all outputs; `None` where the text is damaged, so that no device has them.
fn band_words(artifact: &ModelFile, model: &Model<'_>) -> Option<String> {
    let widths = band::widths(model)?;
    let names = artifact.output_names(widths.len());
    let each = names.iter().zip(widths).map(|(name, width)| format!("{name} ±{}", rounded(width)));
    Some(format!("{} for each nat of u", each.collect::<Vec<_>>().join(", ")))
}

fn describe_flow(t: &mut String, model: &Model<'_>) -> Result<()> {
    let (shape, meta) = (model.shape(), model.meta());
    let normalized = if meta.normalized { "normalised" } else { "not normalised" };
    writeln!(t, "input        {}, {normalized}", plural(shape.inputs as u64, "value"))?;
    let mut width = shape.inputs;
    for (i, layer) in meta.layers.iter().enumerate() {
        let norm = if meta.is_norm(i) { "layernorm, " } else { "" };
        writeln!(t, "layer {i:<6} {width} → {norm}{}", layer_words(layer))?;
        width = layer.outputs as usize;
    }
    let (raw, kind) = (shape.covariance.raw_len(shape.dim), shape.covariance.name());
    let first = match meta.head.activation {
        Activation::Identity => String::new(),
        activation => format!("{} first, ", activation.name()),
    };
    let bias = bias_words(meta.head.bias);
    let dims = if shape.dim == 1 { "dimension" } else { "dimensions" };
    writeln!(t, "head         {width} → {raw}, {first}{bias}: {} {kind} {dims}", shape.dim)?;
    if let Some(decoder) = meta.decoder {
        let task = text::task(shape.task);
        let bias = bias_words(decoder.bias);
        writeln!(t, "decoder      {} → {}, {bias}: {task}", shape.dim, shape.outputs)?;
    }
    Ok(())
}

const fn bias_words(bias: bool) -> &'static str {
    if bias { "with bias" } else { "no bias" }
}

fn layer_words(layer: &LayerMeta) -> String {
    let mut words = format!("{}, {}, {}", layer.outputs, layer.activation.name(), bias_words(layer.bias));
    if let Some(residual) = layer.residual {
        let when = if residual.before_activation { "before" } else { "after" };
        words.push_str(&format!(", adds {} {when} the activation", residual_source(residual)));
    }
    words
}

/// The earlier activation, as `dab pack` names it.
fn residual_source(residual: Residual) -> String {
    match residual.source.checked_sub(1) {
        None => "input".into(),
        Some(layer) => format!("layers.{layer}"),
    }
}

fn describe_codes(t: &mut String, model: &Model<'_>, all: bool) -> Result<()> {
    let codes = model.codebook();
    let (priors, log_dets) = (codes.priors, codes.log_dets);
    let dead = priors.iter().filter(|&&p| p == 0.0).count();
    let count = plural(priors.len() as u64, "code");
    let dead = if dead > 0 { format!(", {dead} of prior 0 (never chosen)") } else { String::new() };
    writeln!(t, "codebook     {count}{dead}; alpha {}", codes.alpha)?;
    let range = |values: &mut dyn Iterator<Item = f32>| {
        let (low, high) = values.fold((f32::MAX, f32::MIN), |(low, high), x| (low.min(x), high.max(x)));
        format!("{} to {}", rounded(low), rounded(high))
    };
    writeln!(t, "             prior {}", range(&mut priors.iter().copied()))?;
    if !log_dets.is_empty() {
        writeln!(t, "             volume {} nats", range(&mut log_dets.iter().map(|&l| volume(l))))?;
    }

    let mut order: Vec<usize> = (0..priors.len()).collect();
    let whole = all || order.len() <= SMALL;
    if !whole {
        order.sort_by(|&a, &b| priors[b].total_cmp(&priors[a]));
        order.truncate(FEW);
    }
    let largest = priors.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    writeln!(t, "              code     prior    volume")?;
    for k in order {
        // Codes of constant covariance have the volume of a unit ball.
        let (prior, volume) = (rounded(priors[k]), rounded(log_dets.get(k).map_or(0.0, |&l| volume(l))));
        writeln!(t, "             {k:>5} {prior:>9} {volume:>9}  {}", bar(priors[k] / largest))?;
    }
    if !whole {
        writeln!(
            t,
            "               … the {FEW} of largest prior; --all shows {}",
            grouped(priors.len() as u64)
        )?;
    }
    Ok(())
}

/// A view of an input, as people think of it.
#[derive(Serialize)]
struct ViewWords {
    norm: &'static str,
    dim: usize,
    codes: usize,
    form: &'static str,
    bytes: usize,
    /// Whether its last dimension is what the others leave out.
    rest: bool,
    /// Whether distances count in units of how densely training rows lie around a code.
    local: bool,
}

/// Every view of a model with channels, the base first.
fn view_words(model: &Model<'_>) -> Vec<ViewWords> {
    const NUMBER: usize = size_of::<f32>();
    let (Some(channels), shape, meta) = (model.channels_meta(), model.shape(), model.meta()) else {
        return Vec::new();
    };
    // A mean alone centres an input, as views that leave axes out do.
    let norm = |view: usize, l2: bool| match (model.scales_columns(view), l2) {
        (false, false) => "raw",
        (true, false) => "columns",
        (false, true) => "length 1",
        (true, true) => "columns, length 1",
    };
    let values = meta.param_counts(Some(channels)).map_or(0, |counts| {
        let decoder = counts.decoder_weight + counts.decoder_bias;
        2 * counts.normalize
            + counts.head_weight
            + counts.head_bias
            + counts.code_means
            + counts.codes
            + decoder
    });
    // Local precisions lie apart from the other parameters of a view.
    let precisions = |view: usize, codes: usize| if model.is_local(view) { NUMBER * codes } else { 0 };
    let base = ViewWords {
        norm: norm(0, channels.base.l2),
        dim: shape.dim,
        codes: shape.codes,
        form: channels.base.form.name(),
        bytes: NUMBER * values + precisions(0, shape.codes),
        rest: model.has_rest(0),
        local: model.is_local(0),
    };
    let more = channels.views.iter().enumerate().map(|(index, view)| ViewWords {
        rest: model.has_rest(index + 1),
        local: model.is_local(index + 1),
        norm: norm(index + 1, view.l2),
        dim: view.dim as usize,
        codes: view.codes as usize,
        form: view.form.name(),
        bytes: NUMBER
            * view.param_counts(meta.inputs, meta.has_bytes()).and_then(|counts| counts.total()).unwrap_or(0)
            + precisions(index + 1, view.codes as usize),
    });
    std::iter::once(base).chain(more).collect()
}

fn describe_views(t: &mut String, model: &Model<'_>) -> Result<()> {
    for (index, view) in view_words(model).iter().enumerate() {
        let ViewWords { norm, dim, codes, form, bytes, rest, local } = view;
        let local = if *local { " with local distances" } else { "" };
        let dims = if *rest { "dimensions, the last is what the others leave out" } else { "dimensions" };
        let (codes, bytes) = (plural(*codes as u64, "code"), grouped(*bytes as u64));
        writeln!(t, "view {index:<7} {norm} → {dim} {dims}, {codes}{local}; score: {form}; {bytes} bytes")?;
    }
    Ok(())
}

fn describe_calibration(t: &mut String, model: &Model<'_>) -> Result<()> {
    let Some(table) = model.calibration() else {
        writeln!(t, "calibration  none: no p-values and verdicts (add calibration.scores and pack anew)")?;
        return Ok(());
    };
    let held_out = plural(table.held_out.into(), "held-out score");
    writeln!(t, "calibration  {held_out}, {} kept", grouped(table.scores.len() as u64))?;
    let rates = model.rates();
    let unit = if model.channels_meta().is_some() { "" } else { " nats" };
    for (verdict, rate) in [("doubtful", rates.doubtful()), ("unfamiliar", rates.unfamiliar())] {
        match table.threshold(rate) {
            Some(score) => {
                writeln!(t, "             {verdict:<10} above {}{unit} (rate {rate})", rounded(score))?;
            }
            None => {
                let needed = grouped(held_out_for(rate));
                writeln!(t, "             {verdict:<10} never: rate {rate} needs {needed} held-out scores")?;
            }
        }
    }
    if let Some((table, rate)) = model.ambiguity_calibration()
        && let Some(above) = table.threshold(rate)
    {
        writeln!(t, "             ambiguous  above {} (rate {rate}), of the ambiguity", rounded(above))?;
    }
    Ok(())
}

fn describe_monitor(t: &mut String, monitor: &MonitorFile) -> Result<()> {
    let MonitorFile { config: c, tick, .. } = monitor;
    writeln!(
        t,
        "monitor      spike: {} of the last {} above {}; ticks of {tick:?} s",
        c.enter_votes,
        plural(c.window.into(), "score"),
        rounded(c.enter)
    )?;
    let dwell = plural(c.min_dwell.into(), "tick");
    let exit = rounded(c.exit);
    writeln!(
        t,
        "             trust again when {} are at or below {exit}, after {dwell} at least",
        c.exit_votes
    )?;
    let timeout = match c.timeout {
        0 => "never stale".into(),
        ticks => format!("stale after {}", plural(ticks.into(), "tick")),
    };
    match c.drift.block {
        0 => writeln!(t, "             no drift channel; {timeout}")?,
        block => writeln!(
            t,
            "             drift: blocks of {} scores, alarm at a capital of e^{:.2}; {timeout}",
            grouped(block.into()),
            c.drift.alarm
        )?,
    }
    Ok(())
}

/// The monitor of a file, with the names and numbers of monitor.toml.
fn monitor_json(monitor: &MonitorFile) -> Value {
    let mut settings: Value = toml::from_str(&monitor.settings()).unwrap_or_default();
    settings["tick_seconds"] = monitor.tick.into();
    settings
}

/// Fewest held-out scores n whose smallest p-value, 1 / (n + 1) in f32, reaches `rate`.
fn held_out_for(rate: f32) -> u64 {
    let about = (1.0 / f64::from(rate)) as u64;
    let reaches = |n: &u64| (1.0 / (*n as f64 + 1.0)) as f32 <= rate;
    (about.saturating_sub(2)..=about + 1).find(reaches).unwrap_or(about)
}

fn describe_json(artifact: &ModelFile, model: &Model<'_>) -> Value {
    let (shape, meta, codes) = (model.shape(), model.meta(), model.codebook());
    let layers = meta.layers.iter().map(|layer| {
        json!({
            "outputs": layer.outputs,
            "bias": layer.bias,
            "activation": layer.activation.name(),
            "residual": layer.residual.map(residual_source),
            "residual_before_activation": layer.residual.is_some_and(|r| r.before_activation),
        })
    });
    let code = |(k, &prior): (usize, &f32)| {
        let log_det = codes.log_dets.get(k).copied().unwrap_or(0.0);
        json!({ "prior": number(prior), "volume": number(volume(log_det)) })
    };
    let ambiguity = model.ambiguity_calibration().map(|(table, rate)| {
        let above = table.threshold(rate).map(number);
        json!({ "held_out": table.held_out, "points": table.scores.len(), "rate": number(rate), "above": above })
    });
    let rates = model.rates();
    let calibration = model.calibration().map(|table| {
        let verdict = |rate| json!({ "rate": number(rate), "above": table.threshold(rate).map(number) });
        json!({
            "held_out": table.held_out,
            "points": table.scores.len(),
            "doubtful": verdict(rates.doubtful()),
            "unfamiliar": verdict(rates.unfamiliar()),
        })
    });
    json!({
        "format": format(artifact),
        "identity": format!("{:08x}", artifact.identity()),
        "inputs": shape.inputs,
        "normalized": meta.normalized,
        "layers": layers.collect::<Vec<_>>(),
        "features": shape.features,
        "head": { "activation": meta.head.activation.name(), "bias": meta.head.bias },
        "covariance": shape.covariance.name(),
        "dim": shape.dim,
        "alpha": number(codes.alpha),
        "codes": codes.priors.iter().enumerate().map(code).collect::<Vec<_>>(),
        "views": view_words(model),
        "taught": model.taught().map_or(0, |taught| taught.len()),
        "task": text::task(shape.task),
        "outputs": shape.outputs,
        "calibration": calibration,
        "ambiguity": ambiguity,
        "bands": band::widths(model).map(|widths| widths.into_iter().map(number).collect::<Vec<_>>()),
        "monitor": MonitorFile::of_model(model).as_ref().map(monitor_json),
        "self_test_vectors": meta.self_test.vectors,
        "flash_bytes": artifact.bytes().len(),
        "scratch_bytes": 4 * model.scratch_len(),
        "multiply_adds": model.multiply_adds(),
        "input_names": artifact.input_names(shape.inputs),
        "output_names": artifact.output_names(shape.outputs),
        "info": artifact.info.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ninety_nine_scores_support_one_in_a_hundred() {
        assert_eq!(held_out_for(0.01), 99);
        assert_eq!(held_out_for(0.05), 19);
        assert_eq!(held_out_for(0.5), 1);
        assert_eq!(held_out_for(0.3), 3);
    }
}
