//! `include/dab.h` is `manual.h`, `include/dab_monitor.h` is `monitor.h`, and `include/dab_memory.h` is `memory.h`, with the
//! declarations that cbindgen makes of this crate:
//! `DAB_BLESS=1 cargo test -p dab-ffi --test header` writes it, the plain test fails when it is stale.
//!
//! A line `@model version@` of `manual.h` stands for the numbers, structs and functions of `src/model.rs` and
//! `src/version.rs`, in this order.
#![cfg(not(feature = "grown"))]

use std::fmt::Write;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationLength, DocumentationStyle, Language, SortKey, Style};
use dab::{assess, explore, memory, model, monitor};

/// Rust's names and C's.
const NAMES: [(&str, &str); 15] = [
    ("Status", "dab_status"),
    ("Handle", "dab_model"),
    ("Shape", "dab_shape"),
    ("Assessment", "dab_assessment"),
    ("MonitorConfig", "dab_monitor_config"),
    ("Monitor", "dab_monitor"),
    ("MonitorStatistics", "dab_monitor_statistics"),
    ("Event", "dab_event"),
    ("ExplorationConfig", "dab_exploration_config"),
    ("Exploration", "dab_exploration"),
    ("MemoryConfig", "dab_memory_config"),
    ("Memory", "dab_memory"),
    ("MemoryStatistics", "dab_memory_statistics"),
    ("Novelty", "dab_novelty"),
    ("Ellipse", "dab_ellipse"),
];

/// Columns of the header.
const WIDTH: usize = 118;

/// A C struct, its size, its last member, and where that lies.
type Layout = (&'static str, usize, &'static str, usize);

/// Where Rust has the members. With the size, the place of the last member shows a compiler that packs structs or
/// aligns 64-bit numbers in another way.
fn layouts() -> [Layout; 11] {
    macro_rules! layout {
        ($c:literal, $rust:ty, $last:ident) => {
            ($c, size_of::<$rust>(), stringify!($last), offset_of!($rust, $last))
        };
    }
    [
        layout!("dab_shape", model::Shape, views),
        layout!("dab_assessment", assess::Assessment, view),
        layout!("dab_monitor", monitor::Monitor, words),
        layout!("dab_monitor_config", monitor::MonitorConfig, drift_p),
        layout!("dab_monitor_statistics", monitor::MonitorStatistics, drift_p),
        layout!("dab_event", monitor::Event, nearest),
        layout!("dab_exploration", explore::Exploration, words),
        layout!("dab_exploration_config", explore::ExplorationConfig, centered),
        layout!("dab_memory_config", memory::MemoryConfig, horizon),
        layout!("dab_novelty", memory::Novelty, nearest_distance),
        layout!("dab_memory_statistics", memory::MemoryStatistics, visits),
    ]
}

fn config() -> Config {
    let mut config = Config {
        language: Language::C,
        no_includes: true,
        usize_is_size_t: true,
        documentation: true,
        documentation_style: DocumentationStyle::C,
        documentation_length: DocumentationLength::Full,
        style: Style::Both,
        ..Config::default()
    };
    config.function.sort_by = Some(SortKey::None);
    config.constant.sort_by = Some(SortKey::None);
    config.export.exclude = vec!["Result".into(), "Status".into()];
    config.export.rename = NAMES.iter().map(|(rust, c)| ((*rust).into(), (*c).into())).collect();
    config
}

/// A source file as cbindgen is to see it: without the members of the feature `grown`.
fn source(root: &Path, name: &str) -> PathBuf {
    let mut text = std::fs::read_to_string(root.join("src").join(name).with_extension("rs")).unwrap();
    for integer in ["u32", "u64"] {
        text = text.replace(&format!("    #[cfg(feature = \"grown\")]\n    pub grown: {integer},\n"), "");
    }
    text = text.replace("    /// Only for the tests of struct growth.\n", "");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("rs");
    std::fs::write(&file, text).unwrap();
    file
}

/// What cbindgen makes of some files.
fn declarations(root: &Path, files: &str) -> String {
    let mut builder = Builder::new().with_config(config());
    for file in files.split_whitespace() {
        builder = builder.with_src(source(root, file));
    }
    let mut text = Vec::new();
    builder.generate().expect("cbindgen").write(&mut text);
    String::from_utf8(text).unwrap()
}

/// A declaration with the comment before it.
#[derive(Default)]
struct Item {
    comment: Vec<String>,
    code: Vec<String>,
}

impl Item {
    /// The comment as a block.
    fn block(&self) -> String {
        if self.comment.is_empty() {
            return String::new();
        }
        // Documentation begins with a space; formulas are indented.
        let lines: Vec<&str> =
            self.comment.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        format!("/* {} */\n", lines.join("\n * ").replace("\n * \n", "\n *\n"))
    }

    /// The code with the comment behind it, or before it where that is too long.
    fn line(&self, indent: &str, width: usize) -> String {
        let comment: Vec<&str> = self.comment.iter().map(|line| line.trim()).collect();
        let (code, comment) = (self.code.join(" "), comment.join(" "));
        let one = format!("{indent}{code:<width$} /* {comment} */\n");
        if one.len() <= WIDTH { one } else { format!("{indent}/* {comment} */\n{indent}{code}\n") }
    }

    fn is_macro(&self) -> bool {
        self.code.first().is_some_and(|line| line.starts_with("#define "))
    }
}

/// Takes text apart into comments and the code that follows them. A struct's members are one item each.
fn items(text: &str) -> Vec<Item> {
    let (mut found, mut item) = (Vec::new(), Item::default());
    let mut in_comment = false;
    for line in text.lines() {
        match line.trim() {
            "/*" => in_comment = true,
            "*/" => in_comment = false,
            _ if in_comment => item.comment.push(line.trim_end().into()),
            "" => {}
            code => {
                item.code.push(code.into());
                if code.ends_with([';', '{']) || code.starts_with('#') {
                    found.push(std::mem::take(&mut item));
                }
            }
        }
    }
    found
}

/// A function, at most `WIDTH` columns wide. One that returns a status or who may drive is marked.
fn function(item: &Item) -> String {
    let code = item.code.join(" ").replace("struct dab_", "dab_").replace("( ", "(");
    let marked = code.starts_with("dab_status ") || code.starts_with("int32_t ");
    let unused = if marked { "DAB_WARN_UNUSED " } else { "" };
    let mut text = item.block();
    let mut line = format!("DAB_API {unused}");
    for part in code.split_inclusive(", ") {
        if line.len() + part.trim_end().len() > WIDTH {
            writeln!(text, "{}", line.trim_end()).unwrap();
            line = " ".repeat(4);
        }
        line.push_str(part);
    }
    text + &line + "\n"
}

/// Macros and members with their comments behind them, in columns; then the layout of each struct as an assertion.
fn tidy(text: &str) -> String {
    let mut items = items(text);
    for item in items.iter_mut().filter(|item| item.is_macro()) {
        // Negative numbers in parentheses.
        if let Some((name, number)) = item.code[0].split_once(" -") {
            item.code[0] = format!("{name} (-{number})");
        }
    }
    let width = |items: &[&Item]| items.iter().map(|i| i.code.join(" ").len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut rest = &items[..];
    while let Some(first) = rest.first() {
        let opens = first.code.last().is_some_and(|line| line.ends_with('{'));
        let count = if first.is_macro() {
            rest.iter().take_while(|item| item.is_macro()).count()
        } else if opens {
            1 + rest.iter().position(|item| item.code[0].starts_with('}')).unwrap()
        } else {
            1
        };
        let (these, after) = rest.split_at(count);
        rest = after;
        if first.is_macro() {
            let all: Vec<&Item> = these.iter().collect();
            for item in these {
                text += &item.line("", width(&all));
            }
        } else if opens {
            let members: Vec<&Item> = these[1..count - 1].iter().collect();
            text += &first.block();
            writeln!(text, "{}", first.code.join(" ")).unwrap();
            for member in &members {
                text += &member.line("    ", width(&members));
            }
            let name = these[count - 1].code[0].trim_start_matches("} ").trim_end_matches(';');
            writeln!(text, "}} {name};").unwrap();
            let layout = layouts().into_iter().find(|(c, ..)| *c == name);
            let (_, bytes, last, offset) = layout.unwrap_or_else(|| panic!("no layout of {name}"));
            let short = name.trim_start_matches("dab_");
            writeln!(text, "DAB_STATIC_ASSERT({short}_size, sizeof({name}) == {bytes});").unwrap();
            writeln!(text, "DAB_STATIC_ASSERT({short}_{last}, offsetof({name}, {last}) == {offset});")
                .unwrap();
        } else if first.code[0].starts_with("typedef") {
            writeln!(text, "{}{}", first.block(), first.code.join(" ")).unwrap();
        } else {
            text += &function(first);
        }
        text += "\n";
    }
    text.trim_end().into()
}

/// Makes a header of its manual, and fails if the committed one is another.
fn up_to_date(manual: &str, header: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manual = std::fs::read_to_string(root.join(manual)).unwrap();
    let mut text = String::new();
    for line in manual.lines() {
        match line.strip_prefix('@').and_then(|line| line.strip_suffix('@')) {
            Some(files) => text += &tidy(&declarations(root, files)),
            None => text += line,
        }
        text += "\n";
    }
    let path = root.join("include").join(header);
    if std::env::var_os("DAB_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "include/{header} is stale: DAB_BLESS=1 cargo test -p dab-ffi --test header");
    let lines = text.lines().count();
    assert!(lines <= 500, "{lines} lines: shorten the prose");
}

#[test]
fn the_header_is_up_to_date() {
    up_to_date("manual.h", "dab.h");
}

#[test]
fn the_header_of_the_memory_is_up_to_date() {
    up_to_date("memory.h", "dab_memory.h");
}

#[test]
fn the_header_of_the_monitor_is_up_to_date() {
    up_to_date("monitor.h", "dab_monitor.h");
}
