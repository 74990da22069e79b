//! Counts and numbers in sentences, and text of strangers.

/// A count with its thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`, `1,000 classes`. The noun may have an adjective before it: `false alarm`.
pub fn plural(n: u64, one: &str) -> String {
    let ending = match (n, one.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {one}{ending}", grouped(n))
}

/// [`plural`] of the length of something.
pub fn counted(n: usize, one: &str) -> String {
    plural(n as u64, one)
}

/// Four decimals, or four digits where nothing would be left of the number.
pub fn decimal(value: f64) -> String {
    if value != 0.0 && value.abs() < 5e-5 { format!("{value:.3e}") } else { format!("{value:.4}") }
}

/// Text from a file as a terminal may show it: what would move the cursor, change colours or turn the line around is escaped.
pub fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::new();
    for c in text.chars() {
        if hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// The name that `word` was probably meant to be: it differs by a letter or two, or only in case, hyphens and spaces.
pub fn meant<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', ' '], "_");
    let far = |known: &str| strsim::damerau_levenshtein(&plain(word), &plain(known));
    // A short word is soon another one.
    let near = |known: &str| match known.chars().count() {
        0..3 => 0,
        3..6 => 1,
        _ => 2,
    };
    let all = known.into_iter().map(|known| (far(known), known));
    all.filter(|(far, known)| *far <= near(known)).min_by_key(|(far, _)| *far).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let text = [0, 12, 999, 1000, 100_000, 1_234_567, u64::MAX].map(grouped);
        let expected = ["0", "12", "999", "1,000", "100,000", "1,234,567", "18,446,744,073,709,551,615"];
        assert_eq!(text, expected);
    }

    #[test]
    fn text_of_a_file_cannot_change_the_terminal() {
        assert_eq!(printable("Größe \"a\\b\""), "Größe \"a\\b\"");
        assert_eq!(printable("\x1b[31mred\r\n\u{202e}x"), "\\u{1b}[31mred\\r\\n\\u{202e}x");
    }

    #[test]
    fn small_numbers_keep_digits() {
        let told = [0.0, 1.0, 0.01234, -2e-6, 4.9e-5].map(decimal);
        assert_eq!(told, ["0.0000", "1.0000", "0.0123", "-2.000e-6", "4.900e-5"]);
    }

    #[test]
    fn a_near_name_is_meant_and_a_short_one_seldom() {
        let names = ["diag", "mean area", "x", "y"];
        let said = ["daig", "Diag", "diags", "mean_area", "meanarea", "z", "X", "age"]
            .map(|word| meant(word, names));
        let (diag, area) = (Some("diag"), Some("mean area"));
        assert_eq!(said, [diag, diag, diag, area, area, None, Some("x"), None]);
    }

    #[test]
    fn one_thing_has_no_s() {
        assert_eq!(plural(1, "row"), "1 row");
        assert_eq!(plural(0, "wrong answer"), "0 wrong answers");
        assert_eq!([1, 1200].map(|n| counted(n, "class")), ["1 class", "1,200 classes"]);
    }
}
