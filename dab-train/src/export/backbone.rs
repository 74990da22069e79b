//! What a model says about the image network in front of it: which one, and what happens to a picture before it.
//!
//! ```text
//! model.dab's info: backbone = {"network":{…},"sha256":"…"}    preprocessing = {"side":32,"resize":32,…} and in words
//! ```

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{data::Preprocessing, model::resnet::Architecture};

/// Info key of the network.
pub const BACKBONE: &str = "backbone";
/// Info key of what comes before it.
pub const PREPROCESSING: &str = "preprocessing";
/// Info key of the same in words.
const WORDS: &str = "preprocessing_in_words";

/// The image network in front of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backbone {
    pub network: Architecture,
    /// Of its names and numbers.
    pub sha256: String,
}

/// What an artifact says about its image network.
pub fn info(
    network: Architecture,
    sha256: &str,
    preprocessing: Preprocessing,
) -> Result<Vec<(String, String)>> {
    let backbone = Backbone { network, sha256: sha256.to_owned() };
    Ok(vec![
        (BACKBONE.to_owned(), serde_json::to_string(&backbone)?),
        (PREPROCESSING.to_owned(), serde_json::to_string(&preprocessing)?),
        (WORDS.to_owned(), preprocessing.words()),
    ])
}

/// The image network of an artifact and what comes before it, if it has one.
pub fn of_info(info: &[(String, String)]) -> Result<Option<(Backbone, Preprocessing)>> {
    Ok(parsed(info, BACKBONE)?.zip(parsed(info, PREPROCESSING)?))
}

/// What the JSON under `key` holds.
fn parsed<T: DeserializeOwned>(info: &[(String, String)], key: &str) -> Result<Option<T>> {
    let text = info.iter().find(|(k, _)| k == key).map(|(_, text)| serde_json::from_str(text));
    text.transpose().with_context(|| format!("the model's info `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_back_to_the_last_digit() {
        let network = Architecture::WideResnet { depth: 28, width: 10 };
        let mut preprocessing = Preprocessing { side: 32, resize: 40, ..Preprocessing::default() };
        preprocessing.normalise.mean[1] = 0.482_156_7;
        let info = info(network, "abc", preprocessing).unwrap();
        let (backbone, read) = of_info(&info).unwrap().unwrap();
        assert_eq!((backbone.network, backbone.sha256.as_str(), read), (network, "abc", preprocessing));
        assert!(
            info[2].1.contains("the shorter side is resized to 40") && info[2].1.contains("0.4821567"),
            "{info:?}"
        );
        assert!(of_info(&info[1..]).unwrap().is_none());
    }
}
