//! Prints what the simple baselines reach on a data set.
//!
//! ```text
//! cargo run --release -p dab-train --example baselines -- 'kind = "clinc150"' [seeds]
//! ```

use anyhow::{Context, Result};
use dab_train::{
    data::{DataConfig, Targets, data_root, load},
    internals::measure::{
        baselines::{on_features, on_logits},
        metrics::{Classification, ScoreReport, Summary, classification, softmax},
    },
};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let text = arguments.next().context("usage: baselines 'kind = \"clinc150\"' [seeds]")?;
    let config: DataConfig = toml::from_str(&text)?;
    let seeds: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let mut runs = Vec::new();
    for seed in 0..seeds {
        runs.push(measure(&config, seed)?);
    }
    println!("AUROC; positive: out-of-distribution input, or misclassified input (last column)");
    let first = runs.first().context("no seeds")?;
    for (i, report) in first.iter().enumerate() {
        let mut line = format!("{:<24}", report.name);
        for (j, (set, detection)) in report.ood.iter().enumerate() {
            let values: Vec<[f64; 3]> = runs
                .iter()
                .map(|r| [r[i].ood[j].1.auroc, r[i].ood[j].1.aupr_out, r[i].ood[j].1.fpr95])
                .collect();
            let [auroc, aupr, fpr] = [0, 1, 2].map(|m| show(values.iter().map(|v| v[m]).collect()));
            line += &format!(
                "  {set} {auroc} (AUPR-out {aupr}, FPR95 {fpr}, prevalence {:.2})",
                detection.prevalence
            );
        }
        let wrong = runs.iter().filter_map(|r| r[i].misclassification.as_ref().map(|d| d.auroc)).collect();
        let aurc = runs.iter().filter_map(|r| r[i].selective.as_ref().map(|s| s.aurc)).collect();
        println!("{line}  misclassified {} AURC {}", show(wrong), show(aurc));
    }
    Ok(())
}

fn show(values: Vec<f64>) -> String {
    Summary::of(&values).map_or("–".into(), |s| s.show(4))
}

fn measure(config: &DataConfig, seed: u64) -> Result<Vec<ScoreReport>> {
    let root = data_root();
    let task = load(config, seed, &root)?;
    task.warnings().iter().for_each(|w| eprintln!("warning: {w}"));
    let baselines = on_features(&task)?;
    let labels = if let Targets::Classes { labels, .. } = &task.test.targets { Some(labels) } else { None };
    let verdict = |logits: &dab_train::data::Table| {
        labels.map(|l| (classification::correct(logits, l), Classification::new(&softmax(logits), l)))
    };
    let own = baselines.test_logits.as_ref().and_then(verdict);
    let mut reports = Vec::new();
    for scored in &baselines.scored {
        reports.push(scored.report(own.as_ref().map(|v| v.0.as_slice()))?);
    }
    if let Some((_, quality)) = own {
        println!("softmax regression: {:?}", quality?);
    }
    if let DataConfig::Cifar10(images) = config {
        let (test, ood) = images.backbone_logits(seed, &root)?;
        let backbone = verdict(&test);
        for scored in on_logits(" (backbone)", &test, &ood) {
            reports.push(scored.report(backbone.as_ref().map(|v| v.0.as_slice()))?);
        }
        if let Some((_, quality)) = backbone {
            println!("backbone: {:?}", quality?);
        }
    }
    Ok(reports)
}
