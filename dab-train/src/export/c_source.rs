//! A model as C source, for firmware without files: bytes of `model.dab` → a constant array and its sizes, in one file or in
//! a source and a header.

use anyhow::{Result, bail};
use dab_core::{Model, Task};

use super::{model_file::ModelFile, names};

/// Words per line of the array.
const PER_LINE: usize = 8;

/// Words that C99 or C++ keeps for itself, and those of `stdint.h` and `dab.h` that the array would hide.
const KEYWORDS: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t \
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default \
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable \
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires \
    restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true \
    try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq main uint32_t \
    dab_model ";

/// Refuses what C does not take as a name.
pub fn check_name(name: &str) -> Result<()> {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(letters) || name.starts_with(|c: char| c.is_ascii_digit()) {
        bail!("`{name}` is not a name in C: use letters, digits and _, and begin with a letter");
    }
    if KEYWORDS.contains(&format!(" {name} ")) {
        bail!("`{name}` is a word of C or C++: choose another name for the array");
    }
    Ok(())
}

/// A text as a C string. Bytes beyond plain ASCII are octal: a compiler's character set does not matter then, and an octal
/// number ends after three digits, whatever follows. A `?` could begin a trigraph.
fn literal(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' if byte != b'?' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", text.bytes().map(byte).collect::<String>())
}

/// What `dab export` writes.
pub struct CSource {
    /// `model.h`, where one was asked for: the macros and the declaration of the array.
    pub header: Option<String>,
    /// `model.c`: the array, with the header included, or with everything that the header would have.
    pub source: String,
}

/// The model as C source: an aligned constant array called `name`, and macros for its sizes.
///
/// With the file name of a `header`, other files include that header and the source is compiled once, like any other.
/// Without one the source has everything in it, and one file of the program includes it.
pub fn c_source(
    name: &str,
    header: Option<&str>,
    artifact: &ModelFile,
    model: &Model<'_>,
) -> Result<CSource> {
    check_name(name)?;
    if let Some(header) = header
        && (header.is_empty() || header.chars().any(|c| c.is_control() || "\"\\".contains(c)))
    {
        bail!("`{header}` is not a name for a header: `#include` cannot name it");
    }
    let (opening, declared) = (opening(name, header, artifact), declaration(name, artifact, model));
    let array = array(name, artifact.bytes());
    let guard = format!("{}_EXPORTED_H", name.to_ascii_uppercase());
    Ok(match header {
        Some(file) => CSource {
            header: Some(format!(
                "{opening}#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n{declared}\n#endif\n"
            )),
            source: format!("{opening}#include \"{file}\"\n\n{array}"),
        },
        None => {
            CSource { header: None, source: format!("{opening}#include <stdint.h>\n\n{declared}\n{array}") }
        }
    })
}

/// The comment at the top of a file: what it is, and how a program uses it.
fn opening(name: &str, header: Option<&str>, artifact: &ModelFile) -> String {
    let (identity, upper, bytes) = (artifact.identity(), name.to_ascii_uppercase(), artifact.bytes().len());
    let how = match header {
        Some(header) => {
            format!(" * Include {header} wherever the model is used, and compile the C file once. */\n")
        }
        // A number, not the macro: other files do not have it.
        None => format!(
            "\x20* Include this file in one source file, and do not compile it as well: the array would be defined twice.\n\
             \x20* To compile it by itself, make a header for it: dab export --header.\n\
             \x20* Other files see it by: extern const uint32_t {name}[{words}]; of {bytes} bytes */\n",
            words = bytes / 4 + 1
        ),
    };
    format!(
        "/* A dab model, identity {identity:08x}. Written by dab export; C99 and C++.\n\
         \x20*\n\
         \x20*     static uint64_t storage[DAB_MODEL_BYTES / 8];\n\
         \x20*     static float scratch[{upper}_SCRATCH_FLOATS];\n\
         \x20*     dab_model *model;\n\
         \x20*     if (dab_model_init(storage, sizeof storage, {name}, {upper}_BYTES, &model) != DAB_OK) stop();\n\
         \x20*     if (dab_self_test(model, scratch, sizeof scratch) != DAB_OK) stop();\n\
         \x20*\n\
         \x20* The length is {upper}_BYTES, never sizeof {name}: the array is longer.\n\
         \x20* {upper}_CODES and {upper}_DIM are those of the first view.\n\
         {how}"
    )
}

/// The macros for the sizes, and the declaration of the array.
fn declaration(name: &str, artifact: &ModelFile, model: &Model<'_>) -> String {
    let (shape, upper, test) = (model.shape(), name.to_ascii_uppercase(), model.meta().self_test);
    let sizes = [
        ("BYTES", artifact.bytes().len()),
        ("INPUTS", shape.inputs),
        ("OUTPUTS", shape.outputs),
        ("CODES", shape.codes),
        ("DIM", shape.dim),
        ("SCRATCH_FLOATS", model.scratch_len()),
        // For dab_attribute and dab_assess_without.
        ("ATTRIBUTION_FLOATS", model.attribution_scratch_len()),
    ];
    let sizes = sizes.map(|(what, value)| format!("#define {upper}_{what} {value}u\n")).concat();
    let names = |key, count, what, order| {
        let names = names::find(&artifact.info, key, count).filter(|_| count > 0);
        names.map_or_else(String::new, |names| {
            let listed: Vec<String> = names.iter().map(|name| literal(name)).collect();
            format!(
                "/* As in: static const char *const names[] = {upper}_{what}_NAMES; UTF-8, in the order of {order}. */\n\
                 #define {upper}_{what}_NAMES {{ {} }}\n",
                listed.join(", ")
            )
        })
    };
    let what = if shape.task == Some(Task::Classification) { "CLASS" } else { "OUTPUT" };
    let names = names(names::INPUTS, shape.inputs, "INPUT", "inputs")
        + &names(names::OUTPUTS, shape.outputs, what, "outputs");
    let (identity, vectors, digest) = (artifact.identity(), test.vectors, u32::from_le_bytes(test.digest));
    // In C++ a constant is private to its file unless it was declared.
    format!(
        "#ifndef {upper}_BYTES\n\
         {sizes}{names}/* CRC-32C of the model: the same for the same model. */\n\
         #define {upper}_IDENTITY 0x{identity:08x}u\n\
         /* What dab_self_test must find: so many answers, with this digest of their bits. */\n\
         #define {upper}_SELF_TESTS {vectors}u\n\
         #define {upper}_SELF_TEST_DIGEST 0x{digest:08x}u\n\
         #endif\n\
         \n\
         #ifdef __cplusplus\n\
         extern \"C\" {{\n\
         #endif\n\
         /* Little-endian words: aligned for the reader, whatever the compiler. */\n\
         extern const uint32_t {name}[{upper}_BYTES / 4 + 1];\n\
         #ifdef __cplusplus\n\
         }}\n\
         #endif\n"
    )
}

/// The definition of the array. Its linkage is that of the declaration, in C++ too.
fn array(name: &str, bytes: &[u8]) -> String {
    let word = |chunk: &[u8]| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        format!("0x{:08x}u", u32::from_le_bytes(word))
    };
    let words: Vec<String> = bytes.chunks(4).map(word).collect();
    let lines: String = words.chunks(PER_LINE).map(|line| format!("    {},\n", line.join(", "))).collect();
    format!("const uint32_t {name}[{}_BYTES / 4 + 1] = {{\n{lines}}};\n", name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_a_c_string() {
        assert_eq!(literal("cat"), "\"cat\"");
        assert_eq!(literal("a \"b\" \\ ??/1"), "\"a \\\"b\\\" \\\\ \\077\\077/1\"");
        assert_eq!(literal("ü1\n"), "\"\\303\\2741\\012\"");
    }

    #[test]
    fn words_of_the_language_are_no_names() {
        for name in ["dab_artifact", "arm", "_x1", "integer", "classes"] {
            check_name(name).unwrap();
        }
        for name in ["", "1st", "a-b", "ä"] {
            assert!(check_name(name).unwrap_err().to_string().contains("not a name in C"), "{name}");
        }
        for name in ["int", "class", "alignas", "while", "xor_eq", "uint32_t", "dab_model"] {
            assert!(check_name(name).unwrap_err().to_string().contains("a word of C or C++"), "{name}");
        }
    }
}
