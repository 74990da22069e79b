//! `dab export`.

use std::process::Command;

use crate::{dab, folder, refusal, text, with_model};

/// Prints the bytes of the array.
const PROGRAM: &str = "#include \"model.c\"
#include <stdio.h>
int main(void) {
    return fwrite(arm, 1, ARM_BYTES, stdout) != ARM_BYTES || ARM_INPUTS != 2u || ARM_SELF_TESTS != 4u;
}
";

#[test]
fn an_exported_model_compiles_and_has_the_bytes_of_the_file() {
    let folder = with_model("export");
    let said = text(dab(&folder, &["export", "model.dab", "--c", "model.c", "--name", "arm"]));
    let bytes = std::fs::read(folder.join("model.dab")).unwrap();
    assert!(said.contains(&format!("{} bytes of flash", bytes.len())), "{said}");
    std::fs::write(folder.join("main.c"), PROGRAM).unwrap();
    for (compiler, standard, language) in [("gcc", "c99", "c"), ("gcc", "c11", "c"), ("g++", "c++17", "c++")]
    {
        if Command::new(compiler).arg("--version").output().is_err() {
            println!("\nSKIPPED an_exported_model_compiles: {compiler} is not installed");
            continue;
        }
        let mut compile = Command::new(compiler);
        compile.current_dir(&folder).args([
            "-x",
            language,
            &format!("-std={standard}"),
            "main.c",
            "-o",
            "main",
        ]);
        let out =
            compile.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let run = Command::new(folder.join("main")).output().unwrap();
        assert!(run.status.success() && run.stdout == bytes, "{compiler} {standard}");
    }
}

#[test]
fn a_name_that_is_none_in_c_is_refused() {
    let folder = with_model("export-name");
    for name in ["", "2d", "a-b", "ä"] {
        let out = dab(&folder, &["export", "model.dab", "--c", "model.c", "--name", name]);
        assert!(refusal(&out, 1).contains("not a name in C"));
        assert!(!folder.join("model.c").exists());
    }
}

/// Two source files use one model: the header twice, the array once.
const WITH_HEADER: &str = "#include \"model.h\"
#include \"model.h\"
#include <stdio.h>
int other(void);
int main(void) {
    return fwrite(arm, 1, ARM_BYTES, stdout) != ARM_BYTES || ARM_INPUTS != 2u || other();
}
";
const OTHER: &str = "#include \"model.h\"
int other(void);
int other(void) { return (sizeof arm < ARM_BYTES) || ARM_SELF_TESTS != 4u; }
";

#[test]
fn a_header_lets_several_files_share_an_array_that_is_compiled_once() {
    let folder = with_model("export-header");
    for part in ["src", "include"] {
        std::fs::create_dir(folder.join(part)).unwrap();
    }
    let export =
        ["export", "model.dab", "--c", "src/model.c", "--header", "include/model.h", "--name", "arm"];
    let said = text(dab(&folder, &export));
    assert!(said.starts_with("src/model.c, include/model.h: `arm`, "), "{said}");
    let bytes = std::fs::read(folder.join("model.dab")).unwrap();
    std::fs::write(folder.join("main.c"), WITH_HEADER).unwrap();
    std::fs::write(folder.join("other.c"), OTHER).unwrap();
    for (compiler, standard, language) in [("gcc", "c99", "c"), ("g++", "c++17", "c++")] {
        if Command::new(compiler).arg("--version").output().is_err() {
            println!("\nSKIPPED a_header_lets_several_files_share_an_array: {compiler} is not installed");
            continue;
        }
        let mut compile = Command::new(compiler);
        compile.current_dir(&folder).args(["-x", language, &format!("-std={standard}")]);
        compile.args(["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-Iinclude"]);
        let out = compile.args(["main.c", "other.c", "src/model.c", "-o", "main"]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let run = Command::new(folder.join("main")).output().unwrap();
        assert!(run.status.success() && run.stdout == bytes, "{compiler} {standard}");
    }
}

#[test]
fn a_header_that_no_program_could_include_is_refused() {
    let folder = with_model("export-no-header");
    for (header, reason) in [
        ("./model.c", "--c and --header name the same file"),
        ("..", "is not a name for a header"),
        ("a\"b.h", "is not a name for a header"),
    ] {
        let out = dab(&folder, &["export", "model.dab", "--c", "model.c", "--header", header]);
        assert!(refusal(&out, 1).contains(reason), "{header}");
        assert!(!folder.join("model.c").exists());
    }
}

#[test]
fn the_header_has_the_names_of_inputs_and_the_scratch_of_both_calls() {
    let folder = folder("export-names");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/motor/model.dab");
    text(dab(&folder, &["export", model, "--c", "model.c"]));
    let c = std::fs::read_to_string(folder.join("model.c")).unwrap();
    let number = |what: &str| -> usize {
        let (_, after) = c.split_once(&format!("#define DAB_ARTIFACT_{what} ")).unwrap();
        after.split_once("u\n").unwrap().0.parse().unwrap()
    };
    // dab_attribute needs room for one input more than dab_assess.
    assert_eq!(number("ATTRIBUTION_FLOATS"), number("SCRATCH_FLOATS") + number("INPUTS"));
    assert!(
        c.contains("The length is DAB_ARTIFACT_BYTES, never sizeof dab_artifact: the array is longer."),
        "{c}"
    );
    let (_, names) = c.split_once("#define DAB_ARTIFACT_INPUT_NAMES { \"").unwrap();
    assert_eq!(names.lines().next().unwrap().split("\", \"").count(), number("INPUTS"));
}
