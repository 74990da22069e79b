//! `include/dab.h` is what cbindgen makes of this crate: `DAB_BLESS=1 cargo test -p dab-ffi --test header`
//! writes it, the plain test fails when it is stale.

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationLength, DocumentationStyle, Language, SortKey, Style};

/// Rust's names and C's.
const NAMES: [(&str, &str); 9] = [
    ("Status", "dab_status"),
    ("Handle", "dab_model"),
    ("Shape", "dab_shape"),
    ("Assessment", "dab_assessment"),
    ("MonitorConfig", "dab_monitor_config"),
    ("Monitor", "dab_monitor"),
    ("MonitorStatistics", "dab_monitor_statistics"),
    ("ExplorationConfig", "dab_exploration_config"),
    ("Exploration", "dab_exploration"),
];

fn config(manual: &str) -> Config {
    let mut config = Config {
        language: Language::C,
        header: Some(manual.trim_end().into()),
        include_guard: Some("DAB_H".into()),
        no_includes: true,
        sys_includes: vec!["stddef.h".into(), "stdint.h".into()],
        cpp_compat: true,
        usize_is_size_t: true,
        documentation: true,
        documentation_style: DocumentationStyle::C,
        documentation_length: DocumentationLength::Full,
        style: Style::Both,
        line_length: 110,
        ..Config::default()
    };
    config.function.sort_by = Some(SortKey::None);
    config.constant.sort_by = Some(SortKey::None);
    config.export.exclude = vec!["Result".into()];
    config.export.rename = NAMES.iter().map(|(rust, c)| ((*rust).into(), (*c).into())).collect();
    config.defines = [("feature = host".to_owned(), "DAB_HOST".to_owned())].into_iter().collect();
    config
}

/// Comments without lines of their own for `/*` and `*/`, macros without empty lines between them, negative ones in
/// parentheses, and functions with the types' short names.
fn tidy(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let (mut in_comment, mut in_functions) = (false, false);
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let last = lines.last().map_or("", String::as_str);
        in_functions |= line == "extern \"C\" {";
        if line.trim() == "/*" {
            in_comment = true;
            // Macros of one kind stand together.
            if indent.is_empty() && last.is_empty() && lines.iter().rev().nth(1).is_some_and(|l| is_macro(l))
            {
                lines.pop();
            }
            lines.push(format!("{indent}/*"));
        } else if in_comment && line.trim() == "*/" {
            in_comment = false;
            let end = lines.last_mut().unwrap();
            end.push_str(" */");
        } else if in_comment && last.ends_with("/*") {
            let open = lines.last_mut().unwrap();
            open.push_str(&format!(" {}", line.trim()));
        } else if in_comment {
            lines.push(format!(" *{line}").trim_end().into());
        } else if in_functions {
            lines.push(line.replace("struct dab_", "dab_"));
        } else if let Some((name, number)) = line.split_once(" -").filter(|_| is_macro(line)) {
            lines.push(format!("{name} (-{number})"));
        } else if line.starts_with("typedef") && last.ends_with("*/") {
            // The macros end here.
            let comment = lines.iter().rposition(|l| l.starts_with("/*")).unwrap();
            if !lines[comment - 1].is_empty() {
                lines.insert(comment, String::new());
            }
            lines.push(line.into());
        } else {
            lines.push(line.into());
        }
    }
    lines.join("\n") + "\n"
}

fn is_macro(line: &str) -> bool {
    line.starts_with("#define DAB_") && line != "#define DAB_H"
}

/// A source file as cbindgen is to see it: without the members of the feature `grown`, and with functions of host.rs
/// behind their feature, which lib.rs has.
fn source(root: &Path, name: &str) -> PathBuf {
    let mut text = std::fs::read_to_string(root.join("src").join(name).with_extension("rs")).unwrap();
    for integer in ["u32", "u64"] {
        text = text.replace(&format!("    #[cfg(feature = \"grown\")]\n    pub grown: {integer},\n"), "");
    }
    text = text.replace("    /// Only for the tests of struct growth.\n", "");
    if name == "host" {
        text = text.replace("#[unsafe(no_mangle)]", "#[cfg(feature = \"host\")]\n#[unsafe(no_mangle)]");
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("rs");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manual = std::fs::read_to_string(root.join("manual.h")).unwrap();
    let mut builder = Builder::new().with_config(config(&manual));
    // The order of the header.
    for file in ["status", "version", "model", "assess", "monitor", "explore", "host"] {
        builder = builder.with_src(source(root, file));
    }
    let mut text = Vec::new();
    builder.generate().expect("cbindgen").write(&mut text);
    let text = tidy(&String::from_utf8(text).unwrap());

    let path = root.join("include/dab.h");
    if std::env::var_os("DAB_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "include/dab.h is stale: DAB_BLESS=1 cargo test -p dab-ffi --test header");
}
