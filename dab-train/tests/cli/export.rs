//! `dab export`.

use std::process::Command;

use crate::{dab, refusal, text, with_model};

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
