//! Errors of untrusted code: their stack in the author's lines, and the thrown value.
//!
//! The interpreter calls `Error.prepareStackTrace` whenever an error gets its stack: when one is made, and when one of
//! its own reaches the first frame of code, before any `catch` sees it. This module installs a native function there
//! that the code cannot reach. It formats stacks in the author's lines, and detects an exhausted stack or memory even
//! where the code catches the error. The function has a class of its own, which the interpreter calls without checking
//! the limit of the stack.

use super::limits::LimitGuard;
use crate::fault::{Fault, FaultKind};
use crate::limits::{FRAMES_MAX, MESSAGE_BYTES_MAX};
use crate::text::shortened;
use crate::transpile::Transpiled;
use rquickjs::function::{Opt, This};
use rquickjs::{Array, CatchResultExt, CaughtError, Coerced, Ctx, Error, Function, Object, Persistent, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// The name of the code in its stacks.
pub(crate) const SOURCE_NAME: &str = "source";

/// The interpreter's messages for exhausted memory and for an exhausted stack, in calls and in regular expressions.
const MEMORY_WORDS: &str = "out of memory";
const STACK_WORDS: [&str; 2] = ["Maximum call stack size exceeded", "stack overflow"];

/// The state of the detection. Its references into the interpreter must be dropped before the interpreter.
#[derive(Default)]
pub(crate) struct Watch {
    /// The frames of the error at which a limit was reached. They are formatted later, since there is no memory at that
    /// point.
    frames: RefCell<Option<Persistent<Array<'static>>>>,
    /// `Object.getOwnPropertyDescriptor`, saved before the code could change it.
    describe: RefCell<Option<Persistent<Function<'static>>>>,
}

impl Watch {
    /// Drops all references, and returns the stack of the error at which a limit was reached.
    pub(crate) fn end<'js>(&self, ctx: &Ctx<'js>, transpiled: &Transpiled) -> String {
        self.describe.take();
        let frames = self.frames.take().and_then(|frames| frames.restore(ctx).ok());
        frames.map(|frames| trace(ctx, &frames, transpiled)).unwrap_or_default()
    }

    /// Returns the limit that an error reports. Code that makes an error with the same message fails as well.
    ///
    /// It does not run getters of the code: only a message that is a data property counts, as the interpreter's is.
    pub(crate) fn limit_of<'js>(&self, ctx: &Ctx<'js>, error: &Value<'js>) -> Option<FaultKind> {
        if !error.is_error() {
            return None;
        }
        let describe = self.describe.borrow().clone()?.restore(ctx).ok()?;
        let descriptor = describe.call::<_, Option<Object>>((error.clone(), "message"));
        let descriptor = match descriptor.catch(ctx) {
            Ok(descriptor) => descriptor?,
            // There was no stack or no memory left to inspect the error.
            Err(CaughtError::Exception(error)) if error.message().as_deref() == Some(STACK_WORDS[0]) => {
                return Some(FaultKind::StackExceeded);
            }
            Err(_) => return Some(FaultKind::MemoryExceeded),
        };
        // For a descriptor without a value, reading it would continue in prototypes that the code can change.
        if !descriptor.keys::<String>().any(|key| key.is_ok_and(|key| key == "value")) {
            return None;
        }
        let message: Value = descriptor.get("value").catch(ctx).ok()?;
        match message.as_string()?.to_string().as_deref() {
            Ok(MEMORY_WORDS) => Some(FaultKind::MemoryExceeded),
            Ok(text) if STACK_WORDS.contains(&text) => Some(FaultKind::StackExceeded),
            _ => None,
        }
    }
}

/// Installs the function that the interpreter calls for stacks, and hides it from the code.
pub(crate) fn watch<'js>(
    ctx: &Ctx<'js>,
    guard: &Rc<LimitGuard>,
    transpiled: &Rc<Transpiled>,
    watch: &Rc<Watch>,
) -> Result<(), Error> {
    let error: Object = ctx.globals().get("Error")?;
    let describe: Function = ctx.globals().get::<_, Object>("Object")?.get("getOwnPropertyDescriptor")?;
    *watch.describe.borrow_mut() = Some(Persistent::save(ctx, describe));
    let (guard, transpiled, watch) = (guard.clone(), transpiled.clone(), watch.clone());
    let prepare = move |ctx: Ctx<'js>, error: Opt<Value<'js>>, sites: Opt<Array<'js>>| -> Option<String> {
        let Some(limit) = error.0.and_then(|error| watch.limit_of(&ctx, &error)) else {
            return sites.0.map(|sites| trace(&ctx, &sites, &transpiled));
        };
        guard.meet(limit);
        if watch.frames.borrow().is_none() {
            *watch.frames.borrow_mut() = sites.0.map(|sites| Persistent::save(&ctx, sites));
        }
        None
    };
    error.set("stackTraceLimit", FRAMES_MAX as i32)?;
    error.set("prepareStackTrace", Function::new(ctx.clone(), prepare)?)?;
    error.remove("prepareStackTrace")?;
    error.remove("stackTraceLimit")
}

/// Formats the frames of the author's code, one in a line, innermost first.
pub(crate) fn trace<'js>(ctx: &Ctx<'js>, sites: &Array<'js>, transpiled: &Transpiled) -> String {
    let mut lines = String::new();
    for site in sites.iter::<Object>().flatten() {
        if let Some(line) = frame(&site, transpiled).catch(ctx).ok().flatten() {
            lines.push_str(&line);
        }
    }
    lines
}

fn frame(site: &Object<'_>, transpiled: &Transpiled) -> Result<Option<String>, Error> {
    let file: Option<String> = ask(site, "getFileName")?;
    if file.as_deref() != Some(SOURCE_NAME) {
        return Ok(None);
    }
    let line: Option<u32> = ask(site, "getLineNumber")?;
    let column: Option<u32> = ask(site, "getColumnNumber")?;
    let name: Option<String> = ask(site, "getFunctionName")?;
    let name = name.filter(|name| !name.is_empty() && name != "<eval>" && name != "<anonymous>");
    let (line, column) = transpiled.place(line.unwrap_or(1), column.unwrap_or(1));
    Ok(Some(match name {
        Some(name) => format!("    at {} ({SOURCE_NAME}:{line}:{column})\n", shortened(&name, 100)),
        None => format!("    at {SOURCE_NAME}:{line}:{column}\n"),
    }))
}

fn ask<'js, T: rquickjs::FromJs<'js>>(site: &Object<'js>, name: &str) -> Result<T, Error> {
    site.get::<_, Function>(name)?.call((This(site.clone()),))
}

/// Converts an error that the code did not catch to a fault.
pub(crate) fn fault_of<'js>(ctx: &Ctx<'js>, kind: FaultKind, caught: CaughtError<'js>) -> Fault {
    match caught {
        CaughtError::Error(error) => Fault::new(FaultKind::Crashed, format!("The interpreter failed: {error}.")),
        CaughtError::Exception(exception) => fault_of_error(ctx, kind, exception.as_object()),
        CaughtError::Value(value) => {
            let message = format!("The code threw {}, which is no Error.", named(ctx, &value));
            Fault::new(kind, message)
        }
    }
}

/// Reading an error can run getters of the code, which are subject to the limits.
fn fault_of_error<'js>(ctx: &Ctx<'js>, kind: FaultKind, error: &Object<'js>) -> Fault {
    let read = |key: &str| -> String {
        let text = error.get::<_, Option<Coerced<String>>>(key).catch(ctx);
        text.ok().flatten().map(|text| text.0).unwrap_or_default()
    };
    let (name, message, stack) = (read("name"), read("message"), read("stack"));
    let told = match (name.as_str(), message.as_str()) {
        ("", "") => "Error".to_owned(),
        (name, "") => name.to_owned(),
        ("", message) => message.to_owned(),
        (name, message) => format!("{name}: {message}"),
    };
    with_stack(Fault::new(kind, told), &stack)
}

/// Adds a stack to a fault, and the position of its first frame.
pub(crate) fn with_stack(fault: Fault, stack: &str) -> Fault {
    let fault = fault.with_stack(stack.trim_end());
    match stack.lines().next().and_then(place_in) {
        Some((line, column)) => fault.at(line, column),
        None => fault,
    }
}

/// Parses the position at the end of a line that [`frame`] wrote.
fn place_in(line: &str) -> Option<(u32, u32)> {
    let (_, place) = line.rsplit_once(&format!("{SOURCE_NAME}:"))?;
    let (line, column) = place.trim_end_matches(')').split_once(':')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// Describes a value in a few words, for a sentence or a line of console output.
pub(crate) fn named<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if value.is_function() {
        return "a function".to_owned();
    }
    if value.is_symbol() {
        return "a symbol".to_owned();
    }
    let json = ctx.json_stringify(value.clone()).catch(ctx).ok().flatten().and_then(|text| text.to_string().ok());
    let kind = if value.is_object() { "an object" } else { value.type_name() };
    json.map_or_else(|| kind.to_owned(), |json| shortened(&json, MESSAGE_BYTES_MAX))
}
