//! The text of a module → kernels: declarations, labels, statements.

use std::collections::HashMap;

use super::{Entry, Instruction, Module, Op, Operand, Special, decode, types::Type};
use crate::{
    machine::space::{LOCAL, PARAMETERS, SHARED},
    memory,
};

/// Variables of the module or of a kernel start at a multiple of this, the largest alignment that PTX uses.
const ALIGNMENT: usize = 128;

/// Where names of a module or a kernel lie.
#[derive(Clone, Default)]
pub struct Names {
    /// Address of each variable and parameter.
    pub addresses: HashMap<String, u64>,
    pub registers: HashMap<String, usize>,
    /// Shared memory whose size the launch gives; it comes last.
    pub dynamic: Vec<String>,
}

/// `.shared .align 16 .b8 name[64]` → its name, bytes of one element, count (none for `[]`), and what follows `=`.
struct Variable<'a> {
    name: &'a str,
    width: usize,
    count: Option<usize>,
    values: &'a str,
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        out.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("//") { "\n" } else { "*/" };
        let from = rest[at..].find(end).map_or(rest.len(), |found| at + found);
        rest = if end == "\n" { &rest[from..] } else { rest.get(from + 2..).unwrap_or("") };
    }
    out + rest
}

/// Splits at `separator`, but not within brackets.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            _ if c == separator && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + c.len_utf8();
            }
            _ => (),
        }
    }
    parts.push(text[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn variable(text: &str) -> Result<Variable<'_>, String> {
    let (declared, values) = text.split_once('=').unwrap_or((text, ""));
    let (before, count) = match declared.split_once('[') {
        None => (declared, Some(1)),
        Some((before, size)) => (before, size.trim_end_matches([']', ' ', '\t', '\n']).trim().parse().ok()),
    };
    let name = before.split_whitespace().next_back().ok_or_else(|| format!("no name in `{text}`"))?;
    let mut types = before.split_whitespace().filter_map(|word| Type::parse(word.strip_prefix('.')?));
    let width = types.next_back().ok_or_else(|| format!("no type in `{text}`"))?.width();
    Ok(Variable { name, width, count, values: values.trim().trim_matches(['{', '}']) })
}

fn aligned(bytes: usize, to: usize) -> usize {
    bytes.div_ceil(to.max(1)) * to.max(1)
}

/// Reads a whole module.
///
/// # Errors
/// What is not understood, with its text.
pub fn module(text: &str) -> Result<Module, String> {
    let text = without_comments(text);
    let mut module = Module::default();
    let mut names = Names::default();
    let mut shared = 0;
    let mut rest = text.as_str();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(module);
        }
        if [".version", ".target", ".address_size", ".file"].iter().any(|word| rest.starts_with(word)) {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            continue;
        }
        let end = rest.find([';', '{']).ok_or_else(|| format!("an open end: `{rest}`"))?;
        let is_variable = rest.as_bytes()[end] == b';' || rest[..end].contains('=');
        if is_variable {
            let end = rest.find(';').ok_or("a declaration without end")?;
            declare(&rest[..end], &mut names, &mut shared)?;
            rest = &rest[end + 1..];
            continue;
        }
        let close = matching(&rest[end..]).ok_or("a body without end")? + end;
        let (head, body) = (&rest[..end], &rest[end + 1..close]);
        rest = &rest[close + 1..];
        if let Some((_, signature)) = head.split_once(".entry") {
            let entry = entry(signature, body, names.clone(), shared)
                .map_err(|error| format!("{}: {error}", signature.split('(').next().unwrap_or("").trim()))?;
            module.entries.insert(entry.name.clone(), entry);
        }
    }
}

/// Where the bracket that opens `text` closes.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        (depth == 0).then_some(at)
    })
}

/// A variable of the module.
fn declare(text: &str, names: &mut Names, shared: &mut usize) -> Result<(), String> {
    if text.contains(".func") {
        return Ok(());
    }
    let found = variable(text)?;
    if text.contains(".shared") {
        match found.count {
            None => names.dynamic.push(found.name.to_owned()),
            Some(count) => place(found.name, found.width * count, SHARED, shared, names),
        }
    } else {
        let bytes = found.width * found.count.unwrap_or(1);
        let address = memory::zeroed(bytes);
        for (index, value) in split(found.values, ',').into_iter().enumerate() {
            let value = decode::number(value).ok_or_else(|| format!("`{value}` in `{text}`"))?.to_le_bytes();
            let at = (address + (index * found.width) as u64) as *mut u8;
            // SAFETY: the allocation has `count` elements of this width; a longer list than that is no PTX.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), at, found.width) };
        }
        names.addresses.insert(found.name.to_owned(), address);
    }
    Ok(())
}

fn place(name: &str, bytes: usize, base: u64, used: &mut usize, names: &mut Names) {
    *used = aligned(*used, ALIGNMENT);
    names.addresses.insert(name.to_owned(), base + *used as u64);
    *used += bytes;
}

fn entry(signature: &str, body: &str, mut names: Names, shared: usize) -> Result<Entry, String> {
    let (name, after) = signature.split_once('(').unwrap_or((signature, ")"));
    let mut entry = Entry { name: name.trim().to_owned(), shared_bytes: shared, ..Entry::default() };
    let list = after.rsplit_once(')').map_or("", |(list, _)| list);
    for parameter in split(list, ',') {
        let found = variable(parameter)?;
        let bytes = found.width * found.count.unwrap_or(1);
        // A pointer's own `.align` is about what it points to, and comes after `.ptr`.
        let own = parameter.split(".ptr").next().unwrap_or("");
        let asked =
            own.split_once(".align").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
        let offset = aligned(entry.parameter_bytes, asked.unwrap_or(found.width));
        names.addresses.insert(found.name.to_owned(), PARAMETERS + offset as u64);
        entry.parameters.push((offset, bytes));
        entry.parameter_bytes = offset + bytes;
    }
    let (mut labels, mut jumps) = (HashMap::new(), Vec::new());
    let statements = statements(body);
    // Variables first: an instruction may name one that is declared in an outer scope.
    for text in statements.iter().filter(|text| text.starts_with(".local") || text.starts_with(".shared")) {
        let found = variable(text)?;
        let bytes = found.width * found.count.unwrap_or(1);
        let (base, used) = match text.starts_with(".local") {
            true => (LOCAL, &mut entry.local_bytes),
            false => (SHARED, &mut entry.shared_bytes),
        };
        place(found.name, bytes, base, used, &mut names);
    }
    entry.shared_bytes = aligned(entry.shared_bytes, 1024);
    for name in std::mem::take(&mut names.dynamic) {
        names.addresses.insert(name, SHARED + entry.shared_bytes as u64);
    }
    for text in statements {
        if let Some(label) = text.strip_suffix(':') {
            labels.insert(label.to_owned(), entry.code.len());
        } else if !text.starts_with('.') {
            let (instruction, label) = decode::instruction(text, &mut names)?;
            jumps.extend(label.map(|label| (entry.code.len(), label)));
            entry.code.push(instruction);
        }
    }
    for (at, label) in jumps {
        entry.code[at].target = *labels.get(&label).ok_or_else(|| format!("no label {label}"))?;
    }
    entry.code.push(Instruction::end());
    entry.registers = names.registers.len();
    Ok(entry)
}

impl Instruction {
    /// What follows the last instruction of a text.
    fn end() -> Self {
        Self {
            op: Op::Return,
            ty: Type::None,
            from: Type::None,
            modifiers: super::Modifiers::default(),
            operands: Vec::new(),
            guard: None,
            target: 0,
            text: "end".to_owned(),
        }
    }
}

/// Statements of a body without their semicolons; a label keeps its colon; brackets of inner scopes are left out.
fn statements(body: &str) -> Vec<&str> {
    let (mut found, mut from) = (Vec::new(), 0);
    for (at, c) in body.char_indices() {
        let text = body[from..at].trim();
        let ends = match c {
            ';' => true,
            ':' => {
                // Modifiers have two colons, as `.L1::evict_last`.
                let single = !body[..at].ends_with(':') && !body[at + 1..].starts_with(':');
                let is_label = single && !text.is_empty() && !text.contains([' ', '\t', '%', '[', '{']);
                if is_label {
                    found.push(body[from..=at].trim());
                }
                from = if is_label { at + 1 } else { from };
                false
            }
            '{' | '}' if text.is_empty() => {
                from = at + 1;
                false
            }
            _ => false,
        };
        if ends {
            found.extend((!text.is_empty()).then_some(text));
            from = at + 1;
        }
    }
    found
}

/// The register that the machine sets under this name.
#[must_use]
pub fn special(name: &str) -> Option<Special> {
    let (family, dimension) = name.split_once('.').unwrap_or((name, "x"));
    let dimension = ["x", "y", "z"].iter().position(|one| *one == dimension)?;
    Some(match family {
        "%tid" => Special::Thread(dimension),
        "%ntid" => Special::Threads(dimension),
        "%ctaid" => Special::Block(dimension),
        "%nctaid" => Special::Blocks(dimension),
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%lanemask_lt" => Special::LaneMaskLess,
        "%lanemask_eq" => Special::LaneMaskEqual,
        "%clock" | "%clock64" | "%globaltimer" => Special::Clock,
        _ => return None,
    })
}

impl Names {
    /// The register of this name, a new one at first sight.
    pub fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    /// One operand.
    ///
    /// # Errors
    /// A name that nobody declared.
    pub fn operand(&mut self, text: &str) -> Result<Operand, String> {
        let text = text.trim();
        let inside = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
        if let Some(list) = inside('{', '}') {
            return Ok(Operand::Vector(
                split(list, ',').into_iter().map(|one| self.operand(one)).collect::<Result<_, _>>()?,
            ));
        }
        if let Some(address) = inside('[', ']') {
            // Offsets may have two signs, as in `[%rd1+-4]`.
            let sign = address.find(['+', '-']).filter(|&at| at > 0);
            let (base, offset) = sign.map_or((address, ""), |at| address.split_at(at));
            let offset = offset.trim_start_matches('+').replace(' ', "");
            let offset = if offset.is_empty() { Some(0) } else { decode::number(&offset).map(|n| n as i64) };
            let offset = offset.ok_or_else(|| format!("offset in {text}"))?;
            return Ok(Operand::Address(Box::new(self.operand(base)?), offset));
        }
        if let Some(register) = text.strip_prefix('!') {
            return Ok(Operand::Not(self.register(register.trim())));
        }
        if text == "_" {
            return Ok(Operand::Nothing);
        }
        if let Some(&address) = self.addresses.get(text) {
            return Ok(Operand::Number(address));
        }
        if text.starts_with('%') {
            return Ok(special(text).map_or_else(|| Operand::Register(self.register(text)), Operand::Special));
        }
        if let Some((name, offset)) = text.split_once('+')
            && let (Some(&address), Some(offset)) =
                (self.addresses.get(name.trim()), decode::number(offset.trim()))
        {
            return Ok(Operand::Number(address.wrapping_add(offset)));
        }
        decode::number(text).map(Operand::Number).ok_or_else(|| format!("operand `{text}`"))
    }
}
