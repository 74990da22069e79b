//! The one-page report: the answer in words, tables, figures, examples, settings, in one file that needs nothing else.
//!
//! ```text
//! model.dab + rows → Subject (as a device judges them) ┐
//! baselines, selection, settings → Extras ─────────────┴→ Report → html → report.html
//! ```
//!
//! `dab fit` and `dab train` make it of their test rows, `dab report` of any rows, by the same code. Styles and SVGs are
//! inside the page: it opens from a mail attachment as well as from a server, in light and in dark.

pub mod contest;
pub mod examples;
pub mod figures;
pub mod folder;
mod html;
pub mod numbers;
pub mod origin;
pub mod plot;
mod promise;
pub mod subject;
pub mod words;

pub use html::timeline_page;

use anyhow::Result;
use dab_core::{Model, Verdict};

use self::{
    contest::{Contest, Method, Role, contests},
    examples::{Examples, examples},
    figures::Figure,
    origin::Origin,
    subject::Subject,
    words::{Answer, Facts, Skill},
};
use crate::{
    choose::Choice,
    data::Targets,
    measure::{
        alarms::elsewhere,
        assessed::alarms,
        metrics::{Regression, ScoreReport},
        worth::{self, Classifier},
    },
};

/// What a training knows beside the model and its rows; a report without it is shorter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Baselines and the model's own scores over all seeds; without them, the model's scores on the given rows alone.
    pub methods: Vec<Method>,
    /// Why the model is of its kind, in sentences.
    pub reasons: Vec<String>,
    /// What was tried before this model was chosen.
    pub choice: Option<Choice>,
    /// Where the rows come from.
    pub origin: Origin,
    /// A figure that goes first: the curve of a regression.
    pub first: Option<Figure>,
    /// What the band of a regression holds.
    pub band: Option<words::Band>,
    /// What is odd about the data.
    pub notes: Vec<String>,
    /// Numbers over all seeds.
    pub numbers: Vec<(String, String)>,
    pub settings: Vec<(String, String)>,
    /// Where the numbers of rows, counted from 1, are used again.
    pub rows: &'static str,
}

/// Everything on the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub title: String,
    /// Questions and answers, the most important first.
    pub answers: Vec<Answer>,
    /// Tables against the baselines.
    pub contests: Vec<Contest>,
    /// Histograms of the scores, promised and actual alarms, the curve of a regression.
    pub figures: Vec<Figure>,
    /// Size and work against quality, and why this model was chosen.
    pub sizes: Option<(Vec<Figure>, Vec<String>)>,
    pub examples: Vec<Examples>,
    pub latent: Option<Figure>,
    /// Figures behind a click.
    pub details: Vec<Figure>,
    /// What the model's file and its training say.
    pub extras: Extras,
}

impl Report {
    pub fn new(title: &str, subject: &Subject, mut extras: Extras) -> Result<Self> {
        let model = subject.model.model()?;
        if extras.methods.is_empty() {
            extras.methods = own([subject])?;
        }
        let contests = contests(&extras.methods)?;
        let facts = facts(subject, &model, contests, &extras)?;
        let mut figures: Vec<Figure> = extras.first.take().into_iter().collect();
        figures.extend(figures::histograms(subject, &model)?);
        figures.extend(figures::promises(subject, &model)?);
        let (mut drawn, mut reasons) = (Vec::new(), std::mem::take(&mut extras.reasons));
        if let Some(choice) = extras.choice.take() {
            drawn = figures::sizes(&choice)?;
            reasons.extend(choice.reasons);
        }
        let sizes = (!reasons.is_empty()).then_some((drawn, reasons));
        let drawable = !subject.test.rows.is_empty();
        Ok(Self {
            title: title.to_owned(),
            answers: words::answers(&facts),
            contests: facts.contests,
            figures,
            sizes,
            examples: examples(subject),
            latent: if drawable { Some(figures::latent(subject, &model)?) } else { None },
            details: if drawable { figures::details(subject, &model)? } else { Vec::new() },
            extras,
        })
    }

    /// The first sentence of the page.
    pub fn headline(&self) -> String {
        words::headline(&self.answers)
    }

    pub fn drawn(&self) -> impl Iterator<Item = &Figure> {
        let sizes = self.sizes.iter().flat_map(|sizes| &sizes.0);
        self.figures.iter().chain(sizes).chain(&self.latent).chain(&self.details)
    }
}

/// The model's own scores, seed by seed.
pub fn own<'a>(subjects: impl IntoIterator<Item = &'a Subject>) -> Result<Vec<Method>> {
    let mut methods: Vec<Method> = Vec::new();
    for subject in subjects.into_iter().filter(|subject| !subject.test.rows.is_empty()) {
        let mut add = |name: &str, role: Role, report: ScoreReport| match methods
            .iter_mut()
            .find(|method| method.role == role)
        {
            Some(method) => method.seeds.push(report),
            None => methods.push(Method { name: name.to_owned(), role, seeds: vec![report] }),
        };
        let channels = subject.model.model()?.channels_meta().is_some();
        let name = if channels { "dab: unfamiliarity U" } else { "dab: uncertainty u" };
        add(name, Role::Unfamiliarity, subject.measured("dab", |row| Some(row.said.score()))?);
        if subject.test.rows.iter().all(|row| row.said.ambiguity.is_some()) {
            add("dab: ambiguity A", Role::Ambiguity, subject.measured("dab", |row| row.said.ambiguity)?);
        }
        if channels {
            add("distance u alone", Role::Part, subject.measured("dab", |row| Some(row.said.uncertainty))?);
        }
    }
    Ok(methods)
}

fn facts(subject: &Subject, model: &Model<'_>, contests: Vec<Contest>, extras: &Extras) -> Result<Facts> {
    let rows = &subject.test.rows;
    let held_out = model.calibration().map(|table| table.held_out as usize);
    let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    let found = subject.ood.iter().map(|set| {
        (set.name.clone(), share(set.rows.iter().filter(|row| row.alarms()).count(), set.rows.len()))
    });
    let correct = subject.correct();
    let flagged = correct.as_ref().filter(|_| held_out.is_some()).and_then(|correct| {
        let marked: Vec<bool> = rows.iter().map(|row| row.said.verdict != Some(Verdict::Familiar)).collect();
        let wrong = correct.iter().filter(|&&right| !right).count();
        let caught = marked.iter().zip(correct).filter(|(marked, right)| **marked && !**right).count();
        let all = marked.iter().filter(|&&marked| marked).count();
        (wrong > 0).then(|| (caught, share(all, rows.len())))
    });
    let alarms = alarms(model, &subject.test);
    let elsewhere = elsewhere(&alarms);
    let skill = match (&subject.targets, correct, subject.regression()) {
        (Some(Targets::Classes { labels, count }), Some(correct), _) if !rows.is_empty() => {
            let right = correct.iter().filter(|&&right| right).count();
            let (worth, commonest) = worth::of_classes(labels, *count, &correct);
            Some(Skill::Accuracy(
                share(right, rows.len()),
                share(commonest, rows.len()),
                worth.unless_from(elsewhere),
            ))
        }
        (_, _, Some((predicted, targets))) if !rows.is_empty() => {
            let rmse = Regression::new(&predicted, targets, None)?.rmse;
            let (worth, trivial) = worth::of_numbers(&predicted, targets);
            Some(Skill::Error(rmse, trivial, extras.band, worth.unless_from(elsewhere)))
        }
        _ => None,
    };
    let classifier = match extras.origin.own_head {
        true => Classifier::Own,
        false if subject.classifies() && model.shape().layers == 0 => Classifier::Linear,
        false => Classifier::Learnt,
    };
    Ok(Facts {
        held_out,
        rows: rows.len(),
        alarms,
        found: found.collect(),
        flagged,
        contests,
        skill,
        classifier,
        origin: extras.origin,
        cost: (subject.model.bytes().len(), model.multiply_adds()),
    })
}
