//! Checks an author's source and converts it to the code that the interpreter runs.
//!
//! Plain JavaScript runs unchanged. Types are removed from TypeScript; its enums, namespaces and parameter properties
//! become code. A source that does not parse, imports something, or exports nothing that can be called, is rejected
//! here with its position, before anything runs.

use crate::fault::{Fault, FaultKind};
use crate::limits::{SOURCE_BYTES_MAX, SOURCE_DEPTH_MAX};
use crate::source_map::{Mapping, Place, SourceMap, place_in_line, place_of_byte};
use crate::types::result_type;
use oxc::allocator::Allocator;
use oxc::ast::ast::{ExportDefaultDeclarationKind, Expression, Program, Statement};
use oxc::codegen::{Codegen, CodegenOptions, CodegenReturn};
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::{Parser, ParserReturn};
use oxc::semantic::SemanticBuilder;
use oxc::span::{GetSpan, SourceType, Span};
use oxc::transformer::{TransformOptions, Transformer};
use std::cell::Cell;
use std::path::Path;

/// A source that can be run.
#[derive(Debug)]
pub(crate) struct Transpiled {
    /// The code for the interpreter.
    pub(crate) code: String,
    /// The type of the result as a JSON Schema, as far as the source declares it.
    pub(crate) result_type: Option<String>,
    /// The map back to the source, for TypeScript.
    map: Option<SourceMap>,
    /// True once the interpreter has accepted the code.
    pub(crate) is_taken: Cell<bool>,
}

impl Transpiled {
    /// Prepends an empty line, since the interpreter miscounts the columns of a first line. A shebang becomes a
    /// comment.
    fn new(code: &str, result_type: Option<String>, map: Option<SourceMap>) -> Transpiled {
        let code = match code.strip_prefix("#!") {
            Some(rest) => format!("\n//{rest}"),
            None => format!("\n{code}"),
        };
        Transpiled { code, result_type, map, is_taken: Cell::new(false) }
    }

    /// Returns the source position of a byte in a line of [`code`](Transpiled::code), both from 1.
    pub(crate) fn place(&self, line: u32, byte_column: u32) -> Place {
        let (line, code) = (line - line.min(1), &self.code[1..]);
        match &self.map {
            Some(map) => map.written(code, line, byte_column),
            None => place_in_line(code, line, byte_column),
        }
    }
}

/// Parses, checks and translates a source. It recurses as deeply as the source nests, so the caller provides a large
/// stack. The bound on brackets does not cover every kind of nesting.
pub(crate) fn prepare(source: &str) -> Result<Transpiled, Fault> {
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!(
            "The source has {} bytes, and {SOURCE_BYTES_MAX} are allowed. Move data into the input.",
            source.len()
        );
        return Err(Fault::new(FaultKind::SourceTooLarge, message));
    }
    if let Some(offset) = too_deep_at(source) {
        let (line, column) = place_of_byte(source, offset);
        let message = format!("Brackets are nested deeper than {SOURCE_DEPTH_MAX} here. Move data into the input.");
        return Err(Fault::new(FaultKind::Syntax, message).at(line, column));
    }
    // Almost all JavaScript is valid TypeScript; a class that declares a field twice, for example, is not.
    read(source, SourceType::ts().with_module(true)).or_else(|fault| match fault.kind {
        FaultKind::Syntax => read(source, SourceType::mjs()).map_err(|_| fault),
        _ => Err(fault),
    })
}

/// Returns the position at which brackets nest too deeply. Brackets in strings and comments count too, where they are
/// almost always balanced as well.
fn too_deep_at(source: &str) -> Option<usize> {
    let mut depth = 0_usize;
    source.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > SOURCE_DEPTH_MAX
    })
}

fn read(source: &str, kind: SourceType) -> Result<Transpiled, Fault> {
    let allocator = Allocator::default();
    let ParserReturn { mut program, module_record, diagnostics, .. } = Parser::new(&allocator, source, kind).parse();
    if let Some(error) = diagnostics.errors().next() {
        return Err(syntax(source, error));
    }
    let semantic = SemanticBuilder::new().with_check_syntax_error(true).with_enum_eval(true).build(&program);
    if let Some(error) = semantic.diagnostics.errors().next() {
        return Err(syntax(source, error));
    }
    let requested = module_record.requested_modules.values().flatten();
    let imported = requested.filter(|module| !module.is_type).map(|module| module.statement_span);
    let imported = imported.chain(module_record.dynamic_imports.iter().map(|import| import.span));
    if let Some(span) = imported.min_by_key(|span| span.start) {
        return Err(import_refused(source, span));
    }
    callable_default(source, &program)?;
    // The translation removes the types.
    let result_type = result_type(&program).map(|schema| schema.to_string());
    if !kind.is_typescript() {
        return Ok(Transpiled::new(source, result_type, None));
    }
    let before = print(&program).code;
    let scoping = semantic.semantic.into_scoping();
    let options = TransformOptions::default();
    let translated =
        Transformer::new(&allocator, Path::new("source.ts"), &options).build_with_scoping(scoping, &mut program);
    if let Some(error) = translated.diagnostics.errors().next() {
        return Err(syntax(source, error));
    }
    let CodegenReturn { code, map, .. } = print(&program);
    // A source that the translation does not change is JavaScript already.
    if code == before {
        return Ok(Transpiled::new(source, result_type, None));
    }
    let tokens = map.iter().flat_map(|map| map.get_tokens());
    let mappings = tokens.map(|token| Mapping {
        printed: (token.get_dst_line(), token.get_dst_col()),
        written: (token.get_src_line(), token.get_src_col()),
    });
    let map = SourceMap::new(mappings.collect(), source.to_owned());
    Ok(Transpiled::new(&code, result_type, Some(map)))
}

fn print<'a>(program: &Program<'a>) -> CodegenReturn<'a> {
    let options = CodegenOptions { source_map_path: Some("source.ts".into()), ..CodegenOptions::default() };
    Codegen::new().with_options(options).build(program)
}

fn syntax(source: &str, error: &OxcDiagnostic) -> Fault {
    let sentences = [Some(error.message.as_ref()), error.help.as_deref()].into_iter().flatten();
    let sentences: Vec<String> = sentences.map(|text| format!("{}.", text.trim_end_matches('.'))).collect();
    let fault = Fault::new(FaultKind::Syntax, sentences.join(" "));
    match error.labels.iter().next() {
        Some(label) => {
            let (line, column) = place_of_byte(source, label.offset() as usize);
            fault.at(line, column)
        }
        None => fault,
    }
}

fn import_refused(source: &str, span: Span) -> Fault {
    let message = "Nothing can be imported here: the code has its input and the language, and no modules. \
                   Put the code in this source; `import type` is allowed.";
    at(source, span, Fault::new(FaultKind::ImportRefused, message))
}

/// Checks syntactically that there is a default export that may be a function.
fn callable_default(source: &str, program: &Program<'_>) -> Result<(), Fault> {
    let mut by_name = false;
    for statement in &program.body {
        match statement {
            Statement::ExportDefaultDeclaration(export) => {
                return match what_it_is(&export.declaration) {
                    None => Ok(()),
                    Some(what) => {
                        let message = format!("The default export is {what}. {HELP}");
                        Err(at(source, export.declaration.span(), Fault::new(FaultKind::NoFunction, message)))
                    }
                };
            }
            Statement::ExportNamedDeclaration(export) => {
                by_name |= export.specifiers.iter().any(|specifier| specifier.exported.name() == "default");
            }
            _ => {}
        }
    }
    if by_name {
        return Ok(());
    }
    Err(Fault::new(FaultKind::NoFunction, format!("There is no default export. {HELP}")))
}

const HELP: &str = "Write `export default function (input) { … }`.";

/// Describes a default export that is certainly not a function.
fn what_it_is(declaration: &ExportDefaultDeclarationKind<'_>) -> Option<&'static str> {
    match declaration {
        ExportDefaultDeclarationKind::ClassDeclaration(_) | ExportDefaultDeclarationKind::ClassExpression(_) => {
            Some("a class, which cannot be called")
        }
        ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => Some("an interface"),
        other => match other.as_expression()?.get_inner_expression() {
            Expression::ObjectExpression(_) => Some("an object"),
            Expression::ArrayExpression(_) => Some("an array"),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => Some("a string"),
            Expression::NumericLiteral(_) | Expression::BigIntLiteral(_) => Some("a number"),
            Expression::BooleanLiteral(_) => Some("a boolean"),
            Expression::NullLiteral(_) => Some("null"),
            Expression::RegExpLiteral(_) => Some("a regular expression"),
            _ => None,
        },
    }
}

fn at(source: &str, span: Span, fault: Fault) -> Fault {
    let (line, column) = place_of_byte(source, span.start as usize);
    fault.at(line, column)
}
