//! What a function may return at once, instead of what it computes: values of its type.

use syn::spanned::Spanned;
use syn::{GenericArgument, PathArguments, ReturnType, Type};

/// Most values of one function.
const MOST: usize = 6;

/// Values of what a function returns, as text; none where no value can be named.
pub fn of(output: &ReturnType, source: &str) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, ty) => {
            let mut values = named(ty, source);
            values.truncate(MOST);
            values
        }
    }
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|&v| v.into()).collect()
}

fn named(ty: &Type, source: &str) -> Vec<String> {
    match ty {
        Type::Tuple(tuple) => tuple
            .elems
            .iter()
            .fold(vec![String::new()], |before, ty| {
                let own = named(ty, source);
                before.iter().flat_map(|b| own.iter().map(move |v| format!("{b}{v}, "))).collect()
            })
            .into_iter()
            .map(|members| format!("({})", members.trim_end()))
            .collect(),
        Type::Path(path) => path.path.segments.last().map_or(vec![], |last| {
            let argument = match &last.arguments {
                PathArguments::AngleBracketed(list) => list.args.iter().find_map(|a| match a {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                }),
                _ => None,
            };
            let inner = |front: &str| -> Vec<String> {
                let values = argument.map_or(vec![], |ty| named(ty, source));
                values.into_iter().map(|v| format!("{front}({v})")).collect()
            };
            match &*last.ident.to_string() {
                "bool" => texts(&["true", "false"]),
                "u8" | "u16" | "u32" | "u64" | "usize" => texts(&["0", "1"]),
                // A status of the C interface is a whole number.
                "i8" | "i16" | "i32" | "i64" | "isize" | "Status" | "c_int" => texts(&["0", "1", "-1"]),
                "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
                "Option" => [texts(&["None"]), inner("Some")].concat(),
                "Result" => inner("Ok"),
                "Vec" => texts(&["Default::default()"]),
                "Box" => inner("Box::new"),
                _ => texts(&["Default::default()"]),
            }
        }),
        Type::Reference(to) => {
            let borrow = if to.mutability.is_some() { "&mut " } else { "&" };
            match &*to.elem {
                Type::Slice(_) => vec![format!("{borrow}[]")],
                Type::Path(path) if path.path.is_ident("str") => texts(&["\"\"", "\"xyzzy\""]),
                _ => vec![],
            }
        }
        Type::Array(array) => {
            let len = &source[array.len.span().byte_range()];
            named(&array.elem, source).into_iter().map(|v| format!("[{v}; {len}]")).collect()
        }
        Type::Ptr(to) if to.mutability.is_some() => texts(&["core::ptr::null_mut()"]),
        Type::Ptr(_) => texts(&["core::ptr::null()"]),
        Type::Paren(inner) => named(&inner.elem, source),
        _ => vec![],
    }
}
