//! The type of a function's result as a JSON Schema, as far as its source declares it.
//!
//! An annotation in TypeScript declares it: interfaces and type aliases of the same source are followed. Without one, a
//! function whose every result is an object literal has exactly the names in it. Everything else is unknown, and
//! unknown is `true`. Nothing checks such a type when the code runs.

use oxc::ast::ast::{
    Argument, ArrayExpressionElement, ArrowFunctionBody, ArrowFunctionExpression, Class, ExportDefaultDeclarationKind,
    Expression, Function, FunctionBody, ObjectPropertyKind, Program, PropertyKey, PropertyKind, ReturnStatement,
    Statement, TSLiteral, TSSignature, TSType, TSTypeAnnotation, TSTypeName,
};
use oxc::ast_visit::{Visit, walk::walk_function_body};
use oxc::semantic::ScopeFlags;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The maximum nesting of a type. Deeper parts are unknown, as in a type that contains itself.
const DEPTH_MAX: usize = 12;

/// The maximum number of parts of a type. Further parts are unknown.
const PARTS_MAX: usize = 500;

/// Returns the type of the result of the default export; `None` if nothing is known about it.
pub(crate) fn result_type(program: &Program<'_>) -> Option<Value> {
    let mut reader = Reader { declared: declared(program), functions: functions(program), parts: 0 };
    let schema = reader.default_export(program)?;
    (schema != Value::Bool(true)).then_some(schema)
}

/// A type that the source declares under a name.
enum Declared<'p, 'a> {
    Alias(&'p TSType<'a>),
    Interface(&'p [TSSignature<'a>]),
}

/// Returns the types without parameters that the source declares. An interface that extends another one is unknown.
fn declared<'p, 'a>(program: &'p Program<'a>) -> HashMap<&'p str, Option<Declared<'p, 'a>>> {
    let mut found: HashMap<&'p str, Option<Declared<'p, 'a>>> = HashMap::new();
    let mut add = |name: &'p str, declared: Option<Declared<'p, 'a>>| {
        // Two interfaces of one name are merged by TypeScript, which is not read here.
        let is_first = !found.contains_key(name);
        found.insert(name, declared.filter(|_| is_first));
    };
    for statement in &program.body {
        match statement {
            Statement::TSTypeAliasDeclaration(alias) => {
                let is_plain = alias.type_parameters.is_none();
                add(alias.id.name.as_str(), is_plain.then(|| Declared::Alias(&alias.type_annotation)));
            }
            Statement::TSInterfaceDeclaration(interface) => {
                let is_plain = interface.type_parameters.is_none() && interface.extends.is_empty();
                add(interface.id.name.as_str(), is_plain.then(|| Declared::Interface(&interface.body.body)));
            }
            _ => {}
        }
    }
    found
}

/// Returns the functions that the source declares under a name.
fn functions<'p, 'a>(program: &'p Program<'a>) -> HashMap<&'p str, &'p Function<'a>> {
    let named = program.body.iter().filter_map(|statement| match statement {
        Statement::FunctionDeclaration(function) => Some((function.id.as_ref()?.name.as_str(), &**function)),
        _ => None,
    });
    named.collect()
}

struct Reader<'p, 'a> {
    declared: HashMap<&'p str, Option<Declared<'p, 'a>>>,
    functions: HashMap<&'p str, &'p Function<'a>>,
    parts: usize,
}

impl<'p, 'a> Reader<'p, 'a> {
    fn default_export(&mut self, program: &'p Program<'a>) -> Option<Value> {
        let export = program.body.iter().find_map(|statement| match statement {
            Statement::ExportDefaultDeclaration(export) => Some(&export.declaration),
            _ => None,
        })?;
        match export {
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => self.function(function),
            other => match other.as_expression()?.get_inner_expression() {
                Expression::FunctionExpression(function) => self.function(function),
                Expression::ArrowFunctionExpression(function) => self.arrow(function),
                Expression::Identifier(name) => {
                    let function = *self.functions.get(name.name.as_str())?;
                    self.function(function)
                }
                _ => None,
            },
        }
    }

    fn function(&mut self, function: &'p Function<'a>) -> Option<Value> {
        if function.generator || function.type_parameters.is_some() {
            return None;
        }
        match &function.return_type {
            Some(annotation) => Some(self.annotated(annotation)),
            None => function.body.as_ref().map(|body| self.returned(body)),
        }
    }

    fn arrow(&mut self, function: &'p ArrowFunctionExpression<'a>) -> Option<Value> {
        if function.type_parameters.is_some() {
            return None;
        }
        if let Some(annotation) = &function.return_type {
            return Some(self.annotated(annotation));
        }
        match &function.body {
            ArrowFunctionBody::FunctionBody(body) => Some(self.returned(body)),
            body => body.as_expression().map(|result| self.expression(result, 0)),
        }
    }

    fn annotated(&mut self, annotation: &'p TSTypeAnnotation<'a>) -> Value {
        self.read(&annotation.type_annotation, 0)
    }

    /// Returns the type of what a body returns. One result of which nothing is known makes all unknown.
    fn returned(&mut self, body: &FunctionBody<'a>) -> Value {
        let mut returns = Returns { results: Vec::new(), reader: self };
        walk_function_body(&mut returns, body);
        match returns.results {
            // Without a result, or behind the last one, the function returns nothing, which reads as null.
            results if results.is_empty() => true.into(),
            results => any_of(results),
        }
    }

    /// Returns the type of an expression whose names are in the source; `true` if it is computed.
    fn expression(&mut self, expression: &Expression<'a>, depth: usize) -> Value {
        self.parts += 1;
        if self.parts > PARTS_MAX || depth > DEPTH_MAX {
            return true.into();
        }
        match expression {
            Expression::ParenthesizedExpression(inner) => self.expression(&inner.expression, depth),
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => json!({ "type": "string" }),
            Expression::NumericLiteral(_) => json!({ "type": "number" }),
            Expression::BooleanLiteral(_) => json!({ "type": "boolean" }),
            Expression::NullLiteral(_) => json!({ "type": "null" }),
            Expression::ConditionalExpression(either) => {
                let (one, other) = (&either.consequent, &either.alternate);
                any_of(vec![self.expression(one, depth + 1), self.expression(other, depth + 1)])
            }
            // The result of an async function is what its promise gives, and so is `Promise.resolve(x)`.
            Expression::AwaitExpression(_) => true.into(),
            Expression::CallExpression(call) => {
                let is_resolve = call.callee.is_specific_member_access("Promise", "resolve");
                match call.arguments.first().and_then(Argument::as_expression).filter(|_| is_resolve) {
                    Some(inner) => self.expression(inner, depth + 1),
                    None => true.into(),
                }
            }
            Expression::ArrayExpression(array) => {
                let items = array.elements.iter().map(|element| match element {
                    ArrayExpressionElement::SpreadElement(_) => true.into(),
                    ArrayExpressionElement::Elision(_) => json!({ "type": "null" }),
                    element => element.as_expression().map_or(true.into(), |item| self.expression(item, depth + 1)),
                });
                let items: Vec<Value> = items.collect();
                json!({ "type": "array", "items": any_of(items) })
            }
            Expression::ObjectExpression(object) => {
                let mut properties = Map::new();
                for property in &object.properties {
                    let ObjectPropertyKind::ObjectProperty(property) = property else { return true.into() };
                    let is_value = property.kind == PropertyKind::Init && !property.method && !property.computed;
                    // JSON asks `toJSON` for the value, and `__proto__` gives the object further names.
                    let name = static_name(&property.key).filter(|name| is_value && !is_special(name));
                    let Some(name) = name else { return true.into() };
                    let schema = self.expression(&property.value, depth + 1);
                    properties.insert(name, schema);
                }
                object_of(properties, Vec::new())
            }
            _ => true.into(),
        }
    }

    /// Returns a type as a JSON Schema.
    fn read(&mut self, kind: &'p TSType<'a>, depth: usize) -> Value {
        self.parts += 1;
        if self.parts > PARTS_MAX || depth > DEPTH_MAX {
            return true.into();
        }
        match kind {
            TSType::TSStringKeyword(_) | TSType::TSTemplateLiteralType(_) => json!({ "type": "string" }),
            TSType::TSNumberKeyword(_) => json!({ "type": "number" }),
            TSType::TSBooleanKeyword(_) => json!({ "type": "boolean" }),
            TSType::TSNullKeyword(_) | TSType::TSUndefinedKeyword(_) | TSType::TSVoidKeyword(_) => {
                json!({ "type": "null" })
            }
            TSType::TSArrayType(array) => {
                json!({ "type": "array", "items": self.read(&array.element_type, depth + 1) })
            }
            TSType::TSTupleType(_) => json!({ "type": "array" }),
            TSType::TSParenthesizedType(inner) => self.read(&inner.type_annotation, depth),
            TSType::TSUnionType(union) => {
                let members: Vec<Value> = union.types.iter().map(|kind| self.read(kind, depth + 1)).collect();
                any_of(members)
            }
            TSType::TSLiteralType(literal) => match &literal.literal {
                TSLiteral::StringLiteral(text) => json!({ "const": text.value.as_str() }),
                TSLiteral::BooleanLiteral(answer) => json!({ "const": answer.value }),
                TSLiteral::NumericLiteral(_) | TSLiteral::UnaryExpression(_) => json!({ "type": "number" }),
                TSLiteral::TemplateLiteral(_) => json!({ "type": "string" }),
                TSLiteral::BigIntLiteral(_) => true.into(),
            },
            TSType::TSTypeLiteral(literal) => self.members(&literal.members, depth),
            TSType::TSTypeOperatorType(operator) => match operator.operator {
                oxc::ast::ast::TSTypeOperatorOperator::Readonly => self.read(&operator.type_annotation, depth),
                _ => true.into(),
            },
            TSType::TSTypeReference(reference) => {
                let TSTypeName::IdentifierReference(name) = &reference.type_name else { return true.into() };
                let arguments = reference.type_arguments.as_ref().map(|arguments| &arguments.params);
                self.named(name.name.as_str(), arguments.and_then(|arguments| arguments.first()), depth)
            }
            _ => true.into(),
        }
    }

    /// Returns a type by its name: one of the source, or a well-known one of the language.
    fn named(&mut self, name: &str, argument: Option<&'p TSType<'a>>, depth: usize) -> Value {
        let own = match self.declared.get(name) {
            Some(None) => return true.into(),
            Some(Some(Declared::Alias(kind))) => Some(Ok(*kind)),
            Some(Some(Declared::Interface(members))) => Some(Err(*members)),
            None => None,
        };
        match (own, name, argument) {
            (Some(Ok(kind)), ..) => self.read(kind, depth + 1),
            (Some(Err(members)), ..) => self.members(members, depth + 1),
            (None, "Promise" | "Readonly", Some(inner)) => self.read(inner, depth + 1),
            (None, "Array" | "ReadonlyArray", Some(item)) => {
                json!({ "type": "array", "items": self.read(item, depth + 1) })
            }
            (None, "Date", None) => json!({ "type": "string" }),
            _ => true.into(),
        }
    }

    fn members(&mut self, members: &'p [TSSignature<'a>], depth: usize) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for member in members {
            let TSSignature::TSPropertySignature(property) = member else { return true.into() };
            let name = static_name(&property.key).filter(|name| !property.computed && !is_special(name));
            let Some(name) = name else { return true.into() };
            let schema = match &property.type_annotation {
                Some(annotation) => self.read(&annotation.type_annotation, depth + 1),
                None => true.into(),
            };
            if !property.optional {
                required.push(name.clone().into());
            }
            properties.insert(name, schema);
        }
        // In TypeScript `{}` is the type of every value but null.
        if properties.is_empty() { true.into() } else { object_of(properties, required) }
    }
}

/// Collects what a function returns, but not what the functions inside of it do.
struct Returns<'r, 'p, 'a> {
    results: Vec<Value>,
    reader: &'r mut Reader<'p, 'a>,
}

impl<'a> Visit<'a> for Returns<'_, '_, 'a> {
    fn visit_return_statement(&mut self, statement: &ReturnStatement<'a>) {
        let result = match &statement.argument {
            Some(result) => self.reader.expression(result, 0),
            None => json!({ "type": "null" }),
        };
        self.results.push(result);
    }

    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}

    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}

    fn visit_class(&mut self, _: &Class<'a>) {}
}

fn static_name(key: &PropertyKey<'_>) -> Option<String> {
    match key {
        PropertyKey::StaticIdentifier(_) | PropertyKey::StringLiteral(_) => key.static_name().map(Into::into),
        _ => None,
    }
}

fn is_special(name: &str) -> bool {
    ["__proto__", "toJSON"].contains(&name)
}

fn object_of(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Returns the schema of one of several values; `true` if one of them is unknown.
fn any_of(all: Vec<Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::new();
    for schema in all {
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    match distinct.len() {
        0 => true.into(),
        _ if distinct.contains(&Value::Bool(true)) => true.into(),
        1 => distinct.swap_remove(0),
        _ => json!({ "anyOf": distinct }),
    }
}
