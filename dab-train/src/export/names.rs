//! Names of inputs and outputs in an artifact's info section.
//!
//! A list in one string: `temperature, pressure`, or the same as a JSON list when a name holds a comma.

pub use dab_core::artifact::info::{INPUT_NAMES as INPUTS, OUTPUT_NAMES as OUTPUTS};

pub fn split(list: &str) -> Vec<String> {
    if list.trim_start().starts_with('[')
        && let Ok(names) = serde_json::from_str::<Vec<String>>(list)
    {
        return names;
    }
    list.split(',').map(|name| name.trim().to_owned()).collect()
}

/// The string that [`split`] takes apart again.
pub fn join(names: &[String]) -> serde_json::Result<String> {
    let plain = names.join(", ");
    if split(&plain) == names { Ok(plain) } else { serde_json::to_string(names) }
}

/// The names under `key`, if they are exactly `count`.
pub fn find(info: &[(String, String)], key: &str, count: usize) -> Option<Vec<String>> {
    let (_, list) = info.iter().find(|(k, _)| k == key)?;
    Some(split(list)).filter(|names| names.len() == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_or_read_as_json() {
        assert_eq!(split("a, b ,c"), ["a", "b", "c"]);
        assert_eq!(split(r#"["x, in mm", "y"]"#), ["x, in mm", "y"]);
        assert_eq!(split("[broken"), ["[broken"]);
        for names in [vec!["a", "b"], vec!["x, in mm", "y"], vec!["[1]"], vec![" padded"]] {
            let names: Vec<String> = names.into_iter().map(Into::into).collect();
            assert_eq!(split(&join(&names).unwrap()), names);
        }
    }
}
