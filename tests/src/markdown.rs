//! Parts of a page that a test compares with the code: tables, fenced blocks, names in backticks; and programs in the comments
//! of a C header.

/// Cells of the rows of the first table whose header row starts with the cell `first`.
///
/// # Panics
/// When the page has no such table.
#[must_use]
pub fn table<'a>(page: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let (_, after) = page.split_once(&format!("\n| {first} |")).expect("a table");
    let rows = after.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The text between the fences of the first block that starts with ```` ```name ````.
///
/// # Panics
/// When the page has no such block.
#[must_use]
pub fn block<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, after) = page.split_once(&format!("```{name}\n")).expect("a block of that name");
    after.split_once("\n```").expect("the end of the block").0
}

/// What a cell has in backticks, in order.
pub fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The program in the comment of a C header that begins with ` * section:`: its indented lines.
///
/// # Panics
/// When there is no such section, or no program in it.
#[must_use]
pub fn sample(header: &str, section: &str) -> String {
    let (_, after) = header.split_once(&format!("\n * {section}:")).expect("a section of that name");
    let (comment, _) = after.split_once("*/").expect("the end of the comment");
    let lines: Vec<&str> = comment.lines().filter_map(|line| line.strip_prefix(" *     ")).collect();
    assert!(!lines.is_empty(), "no program in {section}");
    lines.join("\n") + "\n"
}
