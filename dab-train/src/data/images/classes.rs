//! Classes of training and test images: their numbers and names.
//!
//! ```text
//! folders, string labels: the names in sorted order, or in the order of data.classes, which must be the same names
//! numbers: the smallest is class 0; data.classes names 0, 1, 2, …
//! ```

use anyhow::{Result, bail, ensure};

use super::ImagesConfig;
use crate::data::{
    count_labels,
    files::{Labels, are_places, name_numbers, number_classes},
    listed,
};

/// Labels of both parts as numbers.
#[derive(Debug)]
pub(super) struct Numbered {
    /// Of training and test images.
    pub labels: [Vec<u32>; 2],
    /// How many classes there are.
    pub count: usize,
    /// What the outputs are called; none where class j is called j.
    pub names: Vec<String>,
    /// What is allowed but odd.
    pub warnings: Vec<String>,
}

impl ImagesConfig {
    /// Numbers the classes of training and test images together.
    pub(super) fn numbered(&self, parts: [&Labels; 2]) -> Result<Numbered> {
        let words = matches!(parts[0], Labels::Words(_));
        let (mut labels, mut names) = number_classes(&parts.map(Clone::clone))?;
        let mut warnings = Vec::new();
        let [trained, tested] = [0, 1].map(|part: usize| count_labels(&labels[part], names.len()));
        let only_tested: Vec<String> = (0..names.len())
            .filter(|&class| trained[class] == 0)
            .map(|class| format!("{} ({} images)", names[class], tested[class]))
            .collect();
        if !only_tested.is_empty() {
            bail!(
                "{} has classes that {} has not: {}; add them to the training images, take them out of the test, or \
                 give them as an OOD set (data.ood)",
                self.test,
                self.train,
                listed(&only_tested)
            );
        }
        let untested: Vec<&String> =
            (0..names.len()).filter(|&class| tested[class] == 0).map(|class| &names[class]).collect();
        if !untested.is_empty() {
            warnings.push(format!("{} has no image of class {}", self.test, listed(&untested)));
        }
        if !self.classes.is_empty() {
            self.check_names(&names, words)?;
            if words {
                let place =
                    |name: &String| self.classes.iter().position(|own| own == name).unwrap_or(0) as u32;
                let places: Vec<u32> = names.iter().map(place).collect();
                labels.iter_mut().flatten().for_each(|label| *label = places[*label as usize]);
            }
            names.clone_from(&self.classes);
        } else if !words || are_places(&names) {
            warnings.extend(name_numbers(&mut names));
        }
        let count = trained.len();
        let [train, test] = <[_; 2]>::try_from(labels).unwrap_or_default();
        Ok(Numbered { labels: [train, test], count, names, warnings })
    }

    /// Whether `data.classes` are these classes, `found`.
    fn check_names(&self, found: &[String], words: bool) -> Result<()> {
        let given = &self.classes;
        if let Some(twice) = given.iter().enumerate().find(|(at, name)| given[..*at].contains(name)) {
            bail!("data.classes names {} twice", twice.1);
        }
        ensure!(
            given.len() == found.len(),
            "data.classes has {} names ({}), {} has {} classes ({}): name them all, or leave data.classes out",
            given.len(),
            listed(given),
            self.train,
            found.len(),
            listed(found)
        );
        if !words {
            let last = given.len() - 1;
            ensure!(
                are_places(found),
                "data.classes names the labels 0 to {last}, {} has the labels {}",
                self.train,
                listed(found)
            );
            return Ok(());
        }
        let strange: Vec<&String> = given.iter().filter(|name| !found.contains(name)).collect();
        ensure!(
            strange.is_empty(),
            "data.classes names {}, which {} has not; its classes are {}: correct the names, or leave data.classes out",
            listed(&strange),
            self.train,
            listed(found)
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(classes: &[&str]) -> ImagesConfig {
        let text = format!("train = 'a'\ntest = 'b'\nclasses = {classes:?}");
        toml::from_str(&text).unwrap()
    }

    fn words(labels: &[&str]) -> Labels {
        Labels::Words(labels.iter().map(|&label| label.to_owned()).collect())
    }

    #[test]
    fn names_come_from_labels_in_the_order_that_was_asked_for() {
        let (train, test) = (words(&["dog", "cat", "dog"]), words(&["cat"]));
        let own = config(&[]).numbered([&train, &test]).unwrap();
        assert_eq!((own.labels, own.names.join(" ")), ([vec![1, 0, 1], vec![0]], "cat dog".to_owned()));
        assert_eq!(own.warnings, ["b has no image of class dog"]);
        let asked = config(&["dog", "cat"]).numbered([&train, &test]).unwrap();
        assert_eq!((asked.labels, asked.names.join(" ")), ([vec![0, 1, 0], vec![1]], "dog cat".to_owned()));
        let numbers = Labels::Numbers(vec![0, 1, 1]);
        let named = config(&["dark", "light"]).numbered([&numbers, &numbers]).unwrap();
        assert_eq!((named.names.join(" "), named.warnings.len()), ("dark light".to_owned(), 0));
        let odd = Labels::Numbers(vec![3, 7, 7]);
        let named = config(&[]).numbered([&odd, &odd]).unwrap();
        assert_eq!((named.names.join(" "), named.count), ("class_3 class_7".to_owned(), 2));
    }

    #[test]
    fn names_that_do_not_fit_and_classes_that_are_only_tested_are_named() {
        let train = words(&["cat", "dog", "fox"]);
        let said =
            |config: ImagesConfig, test: &Labels| config.numbered([&train, test]).unwrap_err().to_string();
        let two = said(config(&["cat", "dog"]), &train);
        assert!(
            two.contains("data.classes has 2 names (cat, dog), a has 3 classes (cat, dog, fox)"),
            "{two}"
        );
        let wrong = said(config(&["cat", "dog", "wolf"]), &train);
        assert!(
            wrong.contains("data.classes names wolf, which a has not; its classes are cat, dog, fox"),
            "{wrong}"
        );
        let twice = said(config(&["cat", "dog", "dog"]), &train);
        assert!(twice.contains("data.classes names dog twice"), "{twice}");
        let tested = said(config(&[]), &words(&["cat", "zebra", "zebra"]));
        assert!(tested.contains("b has classes that a has not: zebra (2 images); add them"), "{tested}");
    }
}
