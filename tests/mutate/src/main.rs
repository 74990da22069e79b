//! Writes small faults into source files, all at once, each behind a switch.   dab-mutate ROOT WITHOUT FILE...
//!
//! ```text
//! a + b      →  (if on(7) { a - b } else if on(8) { a * b } else { a + b })
//! fn f() {   →  fn f() { if on(9) { return 0; }
//! ```
//!
//! The files below ROOT are overwritten: ROOT is a copy. `on(n)` is true when the tests run with fault `n`, so one build serves
//! thousands of them (`tests/mutants` says how). Prints a line for each fault: number, file, line, function, what is changed. WITHOUT
//! is a file of numbers that are left out, because the compiler refuses them.
//!
//! The faults are those of cargo-mutants: a function returns a value at once, an operator becomes another, `!` and `-` are left out,
//! an arm of a match is left out where `_` catches its cases, a guard is always or never true. Constants, patterns and macros are
//! left alone: nothing can be switched there.

mod values;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Signature, UnOp};

/// Traits of words for people: no test should hold these to the letter.
const WORDS: [&str; 4] = ["Debug", "Display", "Error", "Format"];

/// Text that goes into the source at a place.
struct Edit {
    at: usize,
    /// Behind an expression, not in front of one.
    behind: bool,
    text: String,
}

/// One file while it is read.
struct Faults<'a> {
    source: &'a str,
    file: &'a str,
    without: &'a BTreeSet<usize>,
    /// Number of the next fault.
    next: usize,
    /// Where we are: modules, types, functions.
    path: Vec<String>,
    edits: Vec<Edit>,
}

/// How a file reaches the switches, which are in dab-core.
fn switch(file: &str) -> &'static str {
    if file.starts_with("dab-core/") { "crate::mutants::on" } else { "dab_core::mutants::on" }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg")
                && a.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

/// Whether `let` is part of a condition: such an `&&` is no operator on two values.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(b) if matches!(b.op, BinOp::And(_)) => has_let(&b.left) || has_let(&b.right),
        _ => false,
    }
}

/// Whether a condition asks for a machine of 64 bits, or for a smaller one. What only a smaller one runs is tested there
/// (tests/firmware), and no fault of it could be noticed here.
fn is_wide(condition: &Expr) -> Option<bool> {
    match condition {
        Expr::Path(e) if e.path.is_ident("IS_64_BIT") => Some(true),
        Expr::Unary(e) if matches!(e.op, UnOp::Not(_)) => is_wide(&e.expr).map(|wide| !wide),
        _ => None,
    }
}

/// What an operator is changed to.
const fn others(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

impl Faults<'_> {
    fn text(&self, span: Span) -> &str {
        &self.source[span.byte_range()]
    }

    /// The number of a fault, unless it is left out.
    fn number(&mut self, at: Span, what: &str) -> Option<usize> {
        let number = self.next;
        self.next += 1;
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        println!("{number}\t{}\t{}\t{}\t{what}", self.file, at.start().line, self.path.join("::"));
        (!self.without.contains(&number)).then_some(number)
    }

    fn put(&mut self, at: usize, behind: bool, text: String) {
        self.edits.push(Edit { at, behind, text });
    }

    /// An expression, or one of `variants` in its place: what is changed, and the other text.
    fn instead(&mut self, whole: Span, at: Span, variants: Vec<(String, String)>) {
        let on = switch(self.file);
        let mut text = String::from("(");
        for (what, other) in variants {
            if let Some(number) = self.number(at, &what) {
                text += &format!("if {on}({number}) {{ {other} }} else ");
            }
        }
        if text.len() > 1 {
            let range = whole.byte_range();
            self.put(range.start, false, text + "{ ");
            self.put(range.end, true, " })".into());
        }
    }

    fn operator(&mut self, e: &syn::ExprBinary) {
        if matches!(e.op, BinOp::And(_)) && has_let(&Expr::Binary(e.clone())) {
            return;
        }
        let [left, op, right] = [e.left.span(), e.op.span(), e.right.span()].map(|s| self.text(s).to_owned());
        let variants = others(&e.op).iter().map(|other| {
            (format!("{op} to {other} in {left} {op} {right}"), format!("({left}) {other} ({right})"))
        });
        let variants = variants.collect();
        self.instead(e.span(), e.op.span(), variants);
    }

    /// Arms that `_` can stand in for, and guards.
    fn arms(&mut self, e: &syn::ExprMatch) {
        let on = switch(self.file);
        let last = e.arms.last();
        let rest = last.is_some_and(|arm| arm.guard.is_none() && matches!(arm.pat, syn::Pat::Wild(_)));
        for arm in &e.arms {
            let pattern = self.text(arm.pat.span()).to_owned();
            if arm.guard.as_ref().is_some_and(|(_, guard)| is_wide(guard) == Some(false)) {
                continue;
            }
            let mut condition = String::new();
            if rest
                && !matches!(arm.pat, syn::Pat::Wild(_))
                && let Some(number) = self.number(arm.pat.span(), &format!("without the arm {pattern}"))
            {
                condition = format!("!{on}({number})");
            }
            let Some((_, guard)) = &arm.guard else {
                if !condition.is_empty() {
                    self.put(arm.pat.span().byte_range().end, true, format!(" if {condition}"));
                }
                continue;
            };
            if has_let(guard) {
                continue;
            }
            let words = self.text(guard.span()).to_owned();
            let mut front = if condition.is_empty() { String::new() } else { format!("{condition} && ") };
            let mut behind = String::new();
            for (value, own) in [("true", "||"), ("false", "&&")] {
                if let Some(number) = self.number(guard.span(), &format!("{value} for the guard {words}")) {
                    let not = if value == "false" { "!" } else { "" };
                    front += &format!("({not}{on}({number}) {own} ");
                    behind += ")";
                }
            }
            let range = guard.span().byte_range();
            self.put(range.start, false, front + "(");
            self.put(range.end, true, behind + ")");
        }
    }

    fn function(&mut self, signature: &Signature, block: &Block) {
        self.path.push(signature.ident.to_string());
        if !block.stmts.is_empty() {
            let body =
                self.text(block.span()).trim_start_matches('{').trim_end_matches('}').trim().to_owned();
            let on = switch(self.file);
            let mut text = String::new();
            for value in values::of(&signature.output, self.source) {
                if value != body
                    && let Some(number) =
                        self.number(signature.ident.span(), &format!("{value} returned at once"))
                {
                    text += &format!(" if {on}({number}) {{ return {value}; }}");
                }
            }
            self.put(block.brace_token.span.open().byte_range().end, false, text);
        }
        visit::visit_block(self, block);
        self.path.pop();
    }

    /// The source with all faults in it.
    fn written(mut self) -> String {
        // Of several texts at one place: ends first, inner ones before outer ones, which were visited first; then beginnings.
        let mut edits: BTreeMap<usize, [String; 2]> = BTreeMap::new();
        for Edit { at, behind, text } in self.edits.drain(..) {
            let [ends, starts] = edits.entry(at).or_default();
            if behind { *ends = text + ends } else { *starts += &text }
        }
        let (mut out, mut done) = (String::new(), 0);
        for (at, [ends, starts]) in edits {
            out += &self.source[done..at];
            out += &ends;
            out += &starts;
            done = at;
        }
        out + &self.source[done..]
    }
}

impl<'ast> Visit<'ast> for Faults<'_> {
    fn visit_expr(&mut self, e: &'ast Expr) {
        if let Expr::If(e) = e
            && let Some(wide) = is_wide(&e.cond)
        {
            match &e.else_branch {
                _ if wide => self.visit_block(&e.then_branch),
                Some((_, other)) => self.visit_expr(other),
                None => {}
            }
            return;
        }
        match e {
            Expr::Binary(e) => self.operator(e),
            Expr::Unary(u) if matches!(u.op, UnOp::Not(_) | UnOp::Neg(_)) => {
                let (whole, inner) = (self.text(u.span()).to_owned(), self.text(u.expr.span()).to_owned());
                self.instead(u.span(), u.span(), vec![(format!("{inner} for {whole}"), inner)]);
            }
            Expr::Match(e) => self.arms(e),
            // Their values are known when the program is compiled.
            Expr::Const(_) => return,
            Expr::Repeat(e) => return self.visit_expr(&e.expr),
            _ => {}
        }
        visit::visit_expr(self, e);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if arm.guard.as_ref().is_none_or(|(_, guard)| is_wide(guard) != Some(false)) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        if !is_test(&f.attrs) {
            self.function(&f.sig, &f.block);
        }
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        if !is_test(&f.attrs) {
            self.function(&f.sig, &f.block);
        }
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.function(&f.sig, block);
        }
    }

    fn visit_item_impl(&mut self, i: &'ast syn::ItemImpl) {
        let of = i.trait_.as_ref().and_then(|(_, path, _)| path.segments.last()).map(|s| s.ident.to_string());
        if is_test(&i.attrs) || of.as_ref().is_some_and(|name| WORDS.contains(&&**name) || name == "Default")
        {
            return;
        }
        let own = self.text(i.self_ty.span()).to_owned();
        self.path.push(of.map_or(own.clone(), |of| format!("<{own} as {of}>")));
        visit::visit_item_impl(self, i);
        self.path.pop();
    }

    fn visit_item_mod(&mut self, m: &'ast syn::ItemMod) {
        if !is_test(&m.attrs) {
            visit::visit_item_mod(self, m);
        }
    }

    fn visit_item_trait(&mut self, t: &'ast syn::ItemTrait) {
        self.path.push(t.ident.to_string());
        visit::visit_item_trait(self, t);
        self.path.pop();
    }

    // Nothing can be switched in these.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, root, without, files @ ..] = &arguments[..] else {
        panic!("usage: dab-mutate ROOT WITHOUT FILE...")
    };
    let numbers = std::fs::read_to_string(without).unwrap_or_default();
    let without: BTreeSet<usize> = numbers.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let mut next = 0;
    for file in files {
        let path = std::path::Path::new(root).join(file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let parsed = syn::parse_file(&source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let (path_of, edits) = (Vec::new(), Vec::new());
        let mut faults = Faults { source: &source, file, without: &without, next, path: path_of, edits };
        faults.visit_file(&parsed);
        next = faults.next;
        std::fs::write(&path, faults.written()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}
