//! The metadata strings of a safetensors file: what they say about the model, and what is left for people.

use std::collections::BTreeMap;

use dab_core::artifact::schema::Residual;
use dab_core::{Activation, CovarianceKind, Rates, Task};

use super::{error::PackError, names, tensors::layer_number};
use crate::support::text::meant;

/// Prefixes of keys that describe the model. An unknown key under one of them is a typing error, not a
/// remark: it would silently change the model.
const RESERVED: [&str; 5] = ["layers.", "head.", "codes.", "rates.", "normalize."];

/// Metadata strings, sorted by key; each is taken out by whoever understands it.
pub struct Metadata {
    strings: BTreeMap<String, String>,
}

impl Metadata {
    pub fn new(strings: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { strings: strings.into_iter().collect() }
    }

    /// A string that is there, without taking it.
    pub fn peek(&self, key: &str) -> Option<&str> {
        self.strings.get(key).map(String::as_str)
    }

    fn take(&mut self, key: &str) -> Option<String> {
        self.strings.remove(key)
    }

    /// Takes `key` as one of `known` by its name; `None` when the key is missing.
    fn choice<T: Copy>(&mut self, key: &str, known: &[(&str, T)]) -> Result<Option<T>, PackError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let names: Vec<&str> = known.iter().map(|&(name, _)| name).collect();
        match names.iter().position(|name| *name == value) {
            Some(place) => Ok(Some(known[place].1)),
            None => Err(wrong(key, value, &format!("use one of {}", names.join(", ")))),
        }
    }

    fn number(&mut self, key: &str, advice: &str) -> Result<Option<f32>, PackError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.trim().parse::<f32>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(wrong(key, value, advice)),
        }
    }

    pub fn covariance(&mut self) -> Result<Option<CovarianceKind>, PackError> {
        // A constant covariance needs channels, which are fitted, not packed.
        let kinds = [CovarianceKind::Diagonal, CovarianceKind::Spectral, CovarianceKind::Cholesky];
        self.choice("covariance", &kinds.map(|kind| (kind.name(), kind)))
    }

    /// `alpha`; 1, the usual temperature, when it is missing.
    pub fn alpha(&mut self) -> Result<f32, PackError> {
        Ok(self.given_alpha()?.unwrap_or(1.0))
    }

    pub fn given_alpha(&mut self) -> Result<Option<f32>, PackError> {
        let advice = "write the temperature of the assignment as a number, 0 or more (usually 1)";
        let value = self.peek("alpha").unwrap_or_default().to_owned();
        match self.number("alpha", advice)? {
            Some(alpha) if alpha < 0.0 => Err(wrong("alpha", value, advice)),
            alpha => Ok(alpha),
        }
    }

    /// `task`: `None` when it is missing, `Some(None)` for `none`.
    pub fn task(&mut self) -> Result<Option<Option<Task>>, PackError> {
        let known = [
            ("regression", Some(Task::Regression)),
            ("classification", Some(Task::Classification)),
            ("none", None),
        ];
        self.choice("task", &known)
    }

    /// An activation's key; identity when it is missing.
    pub fn activation(&mut self, key: &str) -> Result<Activation, PackError> {
        let known = Activation::ALL.map(|activation| (activation.name(), activation));
        Ok(self.choice(key, &known)?.unwrap_or_default())
    }

    /// The activation of layer `layer`, which must be there: an identity that nobody asked for changes every answer.
    pub fn layer_activation(&mut self, layer: usize) -> Result<Activation, PackError> {
        let key = format!("layers.{layer}.activation");
        if self.peek(&key).is_none() {
            // A misspelt key explains why this one is missing.
            self.check_spelling()?;
            let names: Vec<&str> = Activation::ALL.iter().map(|activation| activation.name()).collect();
            let advice = format!("say what follows layers.{layer}.weight: {}", names.join(", "));
            return Err(missing(&key, &advice));
        }
        self.activation(&key)
    }

    /// ε of layer `layer` if it is a LayerNorm, whose kind and epsilon are said together; `None` for a dense layer.
    pub fn norm(&mut self, layer: usize) -> Result<Option<f32>, PackError> {
        let (kind, epsilon) = (format!("layers.{layer}.kind"), format!("layers.{layer}.epsilon"));
        let is_norm = self.choice(&kind, &[("dense", false), ("layernorm", true)])?.unwrap_or(false);
        let advice = "write what a layernorm adds to the variance, a small positive number (PyTorch: 1e-5)";
        let value = self.peek(&epsilon).unwrap_or_default().to_owned();
        match (is_norm, self.number(&epsilon, advice)?) {
            (true, Some(number)) if number > 0.0 => Ok(Some(number)),
            (true, Some(_)) => Err(wrong(&epsilon, value, advice)),
            (true, None) => Err(missing(&epsilon, advice)),
            (false, None) => Ok(None),
            (false, Some(_)) => {
                Err(wrong(&epsilon, value, &format!("only a layernorm has it: set `{kind}`")))
            }
        }
    }

    pub fn residual(&mut self, layer: usize) -> Result<Option<Residual>, PackError> {
        let key = format!("layers.{layer}.residual");
        let before_key = format!("{key}_before_activation");
        let before = self.choice(&before_key, &[("true", true), ("false", false)])?;
        let Some(value) = self.take(&key) else {
            let advice = format!("`{before_key}` needs it: input, or layers.M with M < {layer}");
            return if before == Some(true) { Err(missing(&key, &advice)) } else { Ok(None) };
        };
        let earlier = |value: &str| {
            let number: usize = value.strip_prefix("layers.")?.parse().ok()?;
            (number < layer).then_some(number + 1)
        };
        let source = if value == "input" { Some(0) } else { earlier(&value) };
        match source.and_then(|source| u8::try_from(source).ok()) {
            Some(source) => Ok(Some(Residual { source, before_activation: before.unwrap_or(false) })),
            None => {
                let advice = format!("name an earlier activation: input, or layers.M with M < {layer}");
                Err(wrong(&key, value, &advice))
            }
        }
    }

    /// `rates.doubtful` and `rates.unfamiliar`; `None` when both are missing.
    pub fn rates(&mut self) -> Result<Option<Rates>, PackError> {
        let advice = "rates are probabilities with 0 < unfamiliar <= doubtful < 1";
        let doubtful = self.number("rates.doubtful", advice)?;
        let unfamiliar = self.number("rates.unfamiliar", advice)?;
        if doubtful.is_none() && unfamiliar.is_none() {
            return Ok(None);
        }
        let doubtful = doubtful.unwrap_or(Rates::DEFAULT.doubtful());
        let unfamiliar = unfamiliar.unwrap_or(Rates::DEFAULT.unfamiliar().min(doubtful));
        let given = || format!("{doubtful} (unfamiliar {unfamiliar})");
        Rates::new(doubtful, unfamiliar).map(Some).map_err(|_| wrong("rates.doubtful", given(), advice))
    }

    /// No key is nearly one that describes the model.
    fn check_spelling(&self) -> Result<(), PackError> {
        for (key, value) in &self.strings {
            if let Some(meant) = nearly(key) {
                let advice = format!("no such setting; did you mean `{meant}`? Rename it if it is a remark");
                return Err(wrong(key, value.clone(), &advice));
            }
        }
        Ok(())
    }

    /// What is left, sorted by key: the artifact's info section.
    pub fn rest(self) -> Result<Vec<(String, String)>, PackError> {
        self.check_spelling()?;
        for (key, value) in &self.strings {
            if RESERVED.iter().any(|prefix| key.starts_with(prefix)) {
                let advice = match layer_number(key) {
                    Some((
                        number,
                        "activation" | "kind" | "epsilon" | "residual" | "residual_before_activation",
                    )) => {
                        format!("there is no layer {number}; remove it or add layers.{number}.weight")
                    }
                    _ => "no such setting: correct the key, or rename it if it is a remark".into(),
                };
                return Err(wrong(key, value.clone(), &advice));
            }
        }
        Ok(self.strings.into_iter().collect())
    }
}

/// Every key that describes the model, `N` standing for the number of a layer, and the two that name columns.
const KEYS: [&str; 13] = [
    "covariance",
    "alpha",
    "task",
    "layers.N.activation",
    "layers.N.kind",
    "layers.N.epsilon",
    "layers.N.residual",
    "layers.N.residual_before_activation",
    "head.activation",
    "rates.doubtful",
    "rates.unfamiliar",
    names::INPUTS,
    names::OUTPUTS,
];

/// The setting that `key` was probably meant to be; `None` for a setting itself, and for a remark.
fn nearly(key: &str) -> Option<String> {
    let number: String =
        key.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let shape = if number.is_empty() { key.to_owned() } else { key.replacen(&number, "N", 1) };
    if KEYS.contains(&&*shape) {
        return None;
    }
    meant(&shape, KEYS).map(|known| known.replace('N', &number))
}

pub(super) fn wrong(key: &str, value: String, advice: &str) -> PackError {
    PackError::Metadata { key: key.into(), value: Some(value), advice: advice.into() }
}

pub(super) fn missing(key: &str, advice: &str) -> PackError {
    PackError::Metadata { key: key.into(), value: None, advice: advice.into() }
}
