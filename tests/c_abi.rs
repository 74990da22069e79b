//! The C ABI from outside: `dab-ffi/install` into a folder, then C and C++ programs against what it installed.
//!
//! Every program is compiled with all warnings as errors. A tool that is missing is a `SKIPPED` line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use dab::status;
use dab_tests::c_cases::{Source, damaged_info, reason, refused, with_band, with_monitor, wrong_answers};
use dab_tests::c_replay;
use dab_tests::markdown::sample;
use dab_tests::programs::{has, run, text};
use dab_tests::repository;

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_abi").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What `dab-ffi/install` puts into the folder `name`, with `settings` in its environment.
fn install(name: &str, settings: &[(&str, &str)]) -> PathBuf {
    // Every build writes the same file of the target folder before it is copied: one at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let tree = folder(name);
    // As a user calls it: cargo is what the path has.
    let mut install = Command::new(repository().join("dab-ffi/install"));
    install.env("PREFIX", &tree).env_remove("CARGO").envs(settings.iter().copied());
    println!("{name}: {}", text(run(&mut install)));
    tree
}

/// The install tree; built once.
fn installed() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| install("installed", &[]))
}

/// A folder with the test programs' sources and `cases.c`.
fn sources(test: &str) -> PathBuf {
    let folder = folder(test);
    for entry in std::fs::read_dir(repository().join("tests/c")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    let refused = refused();
    let cases: Vec<(&str, &[u8], i32)> =
        refused.iter().map(|(name, bytes)| (*name, &**bytes, status::of_artifact(&reason(bytes)))).collect();
    let wrong = wrong_answers();
    let wrong = [
        ("uncertainty", &*wrong[0], status::DAB_ERR_SELF_TEST),
        ("digest", &*wrong[1], status::DAB_ERR_SELF_TEST_DIGEST),
    ];
    let (tuned, banded) = (with_monitor(), with_band());
    // Files are the shared library's alone: host.c provokes these. memory.c provokes the memory's own, guard.c the monitor's.
    // A program with the frozen header does not know of bands.
    let silent = [
        status::DAB_ERR_FILE,
        status::DAB_ERR_INFO,
        status::DAB_ERR_MEMORY_FULL,
        status::DAB_ERR_SATURATED,
        status::DAB_ERR_NO_MONITOR,
        status::DAB_ERR_NO_BANDS,
    ];
    let numbers = status::ALL.iter().map(|(n, _)| *n).filter(|n| !silent.contains(n)).collect::<Vec<_>>();
    let mut source = Source::new();
    source.models();
    source.statuses("REFUSED", "", &cases);
    source.statuses("WRONG_ANSWERS", "2", &wrong);
    source.statuses("TUNED", "1", &[("tuned", &tuned, status::DAB_OK)]);
    source.statuses("BANDED", "1", &[("banded", &banded, status::DAB_OK)]);
    source.numbers(&numbers);
    std::fs::write(folder.join("cases.c"), source.finish()).unwrap();
    folder
}

/// The files that host.c opens.
fn model_files(folder: &Path) {
    let model = dab_tests::specs::real()[0].1.to_bytes().unwrap();
    std::fs::write(folder.join("model.dab"), model).unwrap();
    std::fs::write(folder.join("info.dab"), damaged_info()).unwrap();
}

/// Compiles C files of `folder` with the header in `include` into a program that is linked with `library`.
fn compile_against(
    (include, library): (&Path, &Path),
    folder: &Path,
    (compiler, standard): (&str, &str),
    flags: &[&str],
    files: &[&str],
) -> PathBuf {
    let (kind, name) = (library.file_name().unwrap().to_str().unwrap(), files[0]);
    let program = folder.join(format!("{name}-{compiler}-{standard}-{kind}"));
    run(Command::new(compiler)
        .current_dir(folder)
        .arg(format!("-std={standard}"))
        .args(WARNINGS)
        .args(flags)
        .arg("-I")
        .arg(include)
        .args(files)
        .arg(library)
        .arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()))
        .arg("-o")
        .arg(&program));
    program
}

/// The same with the header and a library of the install tree.
fn compile_with(
    library: &str,
    folder: &Path,
    compiler: &str,
    standard: &str,
    flags: &[&str],
    files: &[&str],
) -> PathBuf {
    let (include, library) = (installed().join("include"), installed().join("lib").join(library));
    compile_against((&include, &library), folder, (compiler, standard), flags, files)
}

/// The same with the static library.
fn compile(folder: &Path, compiler: &str, standard: &str, flags: &[&str], files: &[&str]) -> PathBuf {
    compile_with("libdab.a", folder, compiler, standard, flags, files)
}

const ABI: [&str; 3] = ["abi.c", "second.c", "cases.c"];

#[test]
fn c_programs_give_the_bits_and_the_codes() {
    let folder = sources("c");
    for compiler in ["gcc", "clang"] {
        if has("c_programs_give_the_bits_and_the_codes", compiler) {
            for standard in ["c99", "c11"] {
                run(&mut Command::new(compile(&folder, compiler, standard, &["-O1"], &ABI)));
            }
        }
    }
}

/// A memory from C and C++: it learns, is saved, refuses, and is taught beside a model. Valgrind sees every byte too far.
#[test]
fn c_programs_learn() {
    let test = "c_programs_learn";
    let folder = sources("learn");
    let programs = [("gcc", "c99", "libdab.a"), ("gcc", "c99", "libdab.so"), ("clang", "c11", "libdab.a")];
    for (compiler, standard, library) in programs {
        if has(test, compiler) {
            let files = ["memory.c", "cases.c"];
            let program = compile_with(library, &folder, compiler, standard, &["-g"], &files);
            run(&mut Command::new(&program));
            // Valgrind does not read the debugging information of every clang.
            if compiler == "gcc" && has(test, "valgrind") {
                memcheck(&program, &folder, &[]);
            }
        }
    }
    let flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    run(&mut Command::new(compile(&folder, "gcc", "c11", &flags, &["memory.c", "cases.c"])));
}

/// The programs that the headers print, as they stand there: a state in flash outlives every power cut, and the sensor that
/// is named is the one that is far.
#[test]
fn the_programs_of_the_headers_work() {
    let folder = sources("samples");
    for (header, section, file) in
        [("dab_memory.h", "STATE IN FLASH", "flash.inc"), ("dab.h", "EXPLAIN", "explain.inc")]
    {
        let header = std::fs::read_to_string(installed().join("include").join(header)).unwrap();
        std::fs::write(folder.join(file), sample(&header, section)).unwrap();
    }
    std::fs::copy(repository().join("examples/c-controller/model.c"), folder.join("model.c")).unwrap();
    run(&mut Command::new(compile(&folder, "gcc", "c99", &["-g"], &["samples.c"])));
}

#[test]
fn cpp_programs_give_the_bits() {
    let folder = sources("cpp");
    run(Command::new("gcc")
        .current_dir(&folder)
        .args(["-c", "cases.c", "-I"])
        .arg(installed().join("include")));
    for compiler in ["g++", "clang++"] {
        if has("cpp_programs_give_the_bits", compiler) {
            for (standard, flags) in [
                ("c++17", &["-fno-exceptions", "-fno-rtti"][..]),
                ("c++17", &["-DDAB_HOST", "-O2"]),
                ("c++20", &["-fno-exceptions", "-fno-rtti"]),
                ("c++20", &["-DDAB_HOST", "-O2"]),
            ] {
                // Without the shared library dab_model_open is declared, and must not be needed.
                let flags =
                    [flags, &["-ffunction-sections", "-Wl,--gc-sections", "-Wold-style-cast"]].concat();
                run(&mut Command::new(compile(
                    &folder,
                    compiler,
                    standard,
                    &flags,
                    &["face.cpp", "cases.o"],
                )));
            }
        }
    }
}

/// A status that is ignored is a warning, in C and C++; a compiler with another layout of structs is stopped.
#[test]
fn compilers_see_ignored_results_and_other_layouts() {
    let folder = folder("misuse");
    let c = "#include <dab.h>\nint main(void) { CALL return 0; }\n";
    let objects = "dab::model<> m; dab::monitor w; float x[1] = {}; (void)m, (void)w, (void)x;";
    let cpp = format!("#include <dab.hpp>\nint main() {{ {objects} CALL }}\n");
    std::fs::write(folder.join("misuse.c"), c).unwrap();
    std::fs::write(folder.join("misuse.cpp"), cpp).unwrap();
    let compiles = |compiler: &str, standard: &str, file: &str, flag: &str| {
        let include = installed().join("include");
        let mut command = Command::new(compiler);
        command.current_dir(&folder).args(WARNINGS).arg(format!("-std={standard}")).arg("-I").arg(include);
        command.args([flag, "-c", "-o", "/dev/null", file]).output().unwrap().status.success()
    };
    for (compiler, standards, file, sound, ignored) in [
        (
            "gcc",
            ["c99", "c11"],
            "misuse.c",
            "if (dab_self_test(0, 0, 0)) return 1;",
            "dab_self_test(0, 0, 0);",
        ),
        (
            "clang",
            ["c99", "c11"],
            "misuse.c",
            "if (dab_self_test(0, 0, 0)) return 1;",
            "dab_self_test(0, 0, 0);",
        ),
        ("g++", ["c++17", "c++20"], "misuse.cpp", "return m.self_test(x).ok();", "m.self_test(x);"),
        ("g++", ["c++17", "c++20"], "misuse.cpp", "return m.assess(x, x).ok();", "m.assess(x, x);"),
        ("clang++", ["c++17", "c++20"], "misuse.cpp", "return m.assess(x, x).ok();", "m.assess(x, x);"),
        ("clang++", ["c++17", "c++20"], "misuse.cpp", "return w.poll(1) == dab::state::stale;", "w.poll(1);"),
        // There is one test of success, and a state is no number.
        (
            "g++",
            ["c++17", "c++20"],
            "misuse.cpp",
            "if (m.init(x, 4).ok()) return 1;",
            "if (m.init(x, 4)) return 1;",
        ),
        (
            "g++",
            ["c++17", "c++20"],
            "misuse.cpp",
            "return w.poll(1) == dab::state::stale;",
            "return w.poll(1) == 2;",
        ),
    ] {
        if has("compilers_see_ignored_results_and_other_layouts", compiler) {
            for standard in standards {
                assert!(
                    compiles(compiler, standard, file, &format!("-DCALL={sound}")),
                    "{compiler}: {sound}"
                );
                assert!(
                    !compiles(compiler, standard, file, &format!("-DCALL={ignored}")),
                    "{compiler}: {ignored}"
                );
            }
        }
    }
    // The structs of dab.h have no padding: only members of another size can move them.
    std::fs::write(
        folder.join("layout.c"),
        "#include <stdint.h>\n#define uint32_t uint64_t\n#include <dab.h>\n",
    )
    .unwrap();
    for standard in ["c99", "c11"] {
        assert!(!compiles("gcc", standard, "layout.c", "-O0"), "another layout in {standard}");
    }
}

/// Runs `program` under valgrind's memcheck, which sees the machine code, Rust's as well as C's: every byte too
/// far in a heap block, every use of a value that was never set, every leak.
fn memcheck(program: &Path, folder: &Path, arguments: &[&str]) {
    run(Command::new("valgrind")
        .args(["-q", "--error-exitcode=9", "--leak-check=full"])
        .arg(program)
        .args(arguments)
        .current_dir(folder));
}

/// Both libraries, all calls, many models of every kind and many inputs: the bits of dab-core, which the shared
/// library computes on other instructions than the static one.
#[test]
fn both_libraries_give_the_bits_of_the_core() {
    let folder = sources("replay");
    let (cases, expected) = c_replay::cases(60, 100);
    std::fs::write(folder.join("cases.bin"), cases).unwrap();
    for library in ["libdab.a", "libdab.so"] {
        let program = compile_with(library, &folder, "gcc", "c99", &["-O1"], &["replay.c"]);
        run(Command::new(program).args(["cases.bin", "results.bin"]).current_dir(&folder));
        let found = std::fs::read(folder.join("results.bin")).unwrap();
        let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!((differs, found.len()), (None, expected.len()), "{library}");
    }
}

#[test]
fn valgrind_and_sanitizers_are_content() {
    let test = "valgrind_and_sanitizers_are_content";
    let folder = sources("memory");
    if has(test, "valgrind") {
        memcheck(&compile(&folder, "gcc", "c99", &["-g"], &ABI), &folder, &[]);
        std::fs::write(folder.join("cases.bin"), c_replay::cases(12, 18).0).unwrap();
        for library in ["libdab.a", "libdab.so"] {
            let program = compile_with(library, &folder, "gcc", "c99", &["-g"], &["replay.c"]);
            memcheck(&program, &folder, &["cases.bin", "results.bin"]);
        }
        model_files(&folder);
        memcheck(&compile_with("libdab.so", &folder, "gcc", "c99", &["-g"], &["host.c"]), &folder, &[]);
    }
    let flags = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    run(&mut Command::new(compile(&folder, "gcc", "c11", &flags, &ABI)));
}

#[test]
fn a_guard_never_drives_on_what_was_refused() {
    let folder = sources("guard");
    for (compiler, standard, flags) in [
        ("gcc", "c99", &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"][..]),
        ("clang", "c11", &["-O2"]),
    ] {
        if has("a_guard_never_drives_on_what_was_refused", compiler) {
            let files = ["guard.c", "cases.c"];
            run(&mut Command::new(compile(&folder, compiler, standard, flags, &files)));
        }
    }
}

/// Programs that were compiled with the first header of this binary interface, and libraries of today and of tomorrow,
/// whose structs have a member more. The frozen header is never changed; a new `DAB_ABI_VERSION` starts a new one.
#[test]
fn old_programs_and_new_libraries_understand_each_other() {
    let test = "old_programs_and_new_libraries_understand_each_other";
    let folder = sources("growth");
    let frozen = repository().join("tests/c/frozen");
    let header = std::fs::read_to_string(frozen.join("dab.h")).unwrap();
    let abi = format!("#define DAB_ABI_VERSION {}", dab::version::DAB_ABI_VERSION);
    assert!(
        header.lines().any(|line| line.starts_with(&abi)),
        "tests/c/frozen/dab.h is of another ABI: copy dab.h"
    );
    let grown = install("grown", &[("FEATURES", "grown"), ("SHARED", "no")]);
    for (tree, known) in [(installed(), "-DKNOWN=0"), (&grown, "-DKNOWN=1")] {
        let against = (&*frozen, &*tree.join("lib/libdab.a"));
        for files in [&["growth.c", "cases.c"][..], &ABI] {
            let program = compile_against(against, &folder, ("gcc", "c99"), &["-g", known], files);
            run(&mut Command::new(&program));
            if has(test, "valgrind") {
                memcheck(&program, &folder, &[]);
            }
        }
    }
}

#[test]
fn eight_threads_share_a_model() {
    let folder = sources("threads");
    for (standard, flags) in
        [("c99", &["-pthread", "-O2"][..]), ("c11", &["-pthread", "-g", "-fsanitize=thread"])]
    {
        let program = compile(&folder, "gcc", standard, flags, &["threads.c", "cases.c"]);
        // TSan wants the addresses of old kernels; setarch gives them.
        let setarch = Command::new("setarch").args(["-R", "true"]).output().is_ok_and(|o| o.status.success());
        let mut command = if setarch { Command::new("setarch") } else { Command::new(&program) };
        if setarch {
            command.arg("-R").arg(&program);
        }
        run(&mut command);
    }
    // TSan sees C alone, helgrind also Rust. (It takes libdab.so's one global, an atomic word in which std remembers
    // the processor's instructions, for a race: it cannot tell an atomic access from another.)
    if has("eight_threads_share_a_model", "valgrind") {
        let flags = ["-pthread", "-g", "-DROUNDS=2"];
        let program = compile(&folder, "gcc", "c99", &flags, &["threads.c", "cases.c"]);
        run(Command::new("valgrind").args(["-q", "--tool=helgrind", "--error-exitcode=9"]).arg(program));
    }
}

/// Functions that the headers declare.
fn declared() -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(installed().join("include").join(name)).unwrap();
    let header = read("dab.h") + &read("dab_monitor.h") + &read("dab_memory.h");
    let mut names: Vec<String> = header
        .lines()
        .filter(|line| line.starts_with("DAB_API "))
        .filter_map(|line| line.split_once('(').map(|(before, _)| before))
        .filter_map(|before| before.rsplit([' ', '*']).next().map(Into::into))
        .collect();
    names.sort();
    names
}

#[test]
fn the_libraries_export_what_the_header_declares() {
    let symbols = |args: &[&str], file: &str| -> Vec<String> {
        let said = text(run(Command::new("nm").args(args).arg(installed().join("lib").join(file))));
        let mut names: Vec<String> =
            said.lines().filter_map(|l| l.split_whitespace().nth(2).map(Into::into)).collect();
        names.sort();
        names
    };
    let declared = declared();
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(symbols(&["-D", "--defined-only"], "libdab.so"), declared);
    let host = ["dab_model_open", "dab_model_close"];
    let device: Vec<String> = declared.into_iter().filter(|n| !host.contains(&&**n)).collect();
    assert_eq!(symbols(&["--extern-only", "--defined-only"], "libdab.a"), device);
    let soname = format!("[libdab.so.{}]", dab::version::DAB_ABI_VERSION);
    let dynamic = text(run(Command::new("readelf").arg("-d").arg(installed().join("lib/libdab.so"))));
    assert!(dynamic.lines().any(|line| line.contains("SONAME") && line.ends_with(&soname)), "{dynamic}");
}

#[test]
fn a_moved_tree_works_with_pkg_config_and_cmake() {
    let test = "a_moved_tree_works_with_pkg_config_and_cmake";
    let folder = sources("moved tree");
    let tree = folder.join("usr local");
    run(Command::new("cp").arg("-a").arg(installed()).arg(&tree));
    model_files(&folder);
    let run_here = |program: &str| {
        // Without a word about where the library lies.
        let program = Command::new(folder.join(program)).current_dir(&folder).output().unwrap();
        assert!(program.status.success(), "{program:?}");
    };
    if has(test, "pkg-config") {
        // By hand: as a user would type it.
        let build =
            "eval gcc -std=c99 abi.c second.c cases.c $(pkg-config --cflags --libs dab) -o by-pkg-config
            eval gcc -std=c99 host.c $(pkg-config --cflags --libs dab-shared) -o by-pkg-config-shared";
        run(Command::new("sh")
            .args(["-euc", build])
            .current_dir(&folder)
            .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig")));
        run_here("by-pkg-config");
        run_here("by-pkg-config-shared");
        let abi = Command::new("pkg-config")
            .args(["--variable=abi_version", "dab"])
            .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig"))
            .output()
            .unwrap();
        assert_eq!(text(abi).trim(), dab::version::DAB_ABI_VERSION.to_string());
    }
    if has(test, "cmake") {
        let out = folder.join("cmake out");
        run(Command::new("cmake")
            .arg("-S")
            .arg(&folder)
            .arg("-B")
            .arg(&out)
            .arg(format!("-DCMAKE_PREFIX_PATH={}", tree.display())));
        run(Command::new("cmake").arg("--build").arg(&out));
        for program in ["by-static", "by-default", "by-shared"] {
            run_here(&format!("cmake out/{program}"));
        }
    }
}

#[test]
fn the_monitored_controller_survives_and_the_unwatched_one_does_not() {
    let folder = folder("controller");
    for file in ["main.c", "model.c", "Makefile"] {
        std::fs::copy(repository().join("examples/c-controller").join(file), folder.join(file)).unwrap();
    }
    let (include, library) = (installed().join("include"), installed().join("lib/libdab.a"));
    let dab = format!("DAB=-I'{}' '{}'", include.display(), library.display());
    // The model is newer than what it is made from, which is not here.
    run(Command::new("make").args(["-s", "-o", "model.c", &dab]).current_dir(&folder));
    let said = text(run(Command::new("./controller").current_dir(&folder)));
    assert!(said.contains("safe ") && said.contains("balanced to the end; 1 alarm,"), "{said}");
    let hour = text(run(Command::new("./controller").arg("--hour").current_dir(&folder)));
    assert!(hour.contains("2 alarms, policy 99.8 % of the time"), "false alarms in an hour: {hour}");
    let alone = Command::new("./controller").arg("--unwatched").current_dir(&folder).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert!(text(alone).contains("the pole fell"));
}

/// The static library is built with a panic handler that cannot be linked, and refused by the install script
/// if it is still needed. Level 3 with channels is what all other tests use; `tests/firmware all-panics` has all levels.
#[test]
fn no_panic_is_reachable_without_channels() {
    install("no-channels", &[("OPT", "s"), ("SHARED", "no"), ("CHANNELS", "no")]);
}
