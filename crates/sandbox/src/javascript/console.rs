//! The `console` of untrusted code: bounded lines, returned with the answer.

use super::errors::named;
use crate::response::{Console, Level};
use rquickjs::function::Rest;
use rquickjs::{CatchResultExt, Coerced, Ctx, Error, Function, Object, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// Installs `console`.
pub(crate) fn install(ctx: &Ctx<'_>, console: &Rc<RefCell<Console>>) -> Result<(), Error> {
    let object = Object::new(ctx.clone())?;
    for level in Level::ALL {
        object.set(level.name(), writer(ctx, level, console.clone())?)?;
    }
    ctx.globals().set("console", object)
}

fn writer<'js>(ctx: &Ctx<'js>, level: Level, console: Rc<RefCell<Console>>) -> Result<Function<'js>, Error> {
    let write = move |ctx: Ctx<'js>, values: Rest<Value<'js>>| {
        // Converting values to text may run the code's own `toJSON`, which may write to the console in turn.
        let mut room = console.borrow().room();
        let mut text = String::new();
        for (index, value) in values.0.iter().enumerate() {
            if room == 0 {
                break;
            }
            let word = word_of(&ctx, value);
            room = room.saturating_sub(word.len() + 1);
            text.push_str(if index == 0 { "" } else { " " });
            text.push_str(&word);
        }
        console.borrow_mut().write(level, &text);
    };
    Function::new(ctx.clone(), write)?.with_name(level.name())
}

/// Formats text as it is, errors with their stack, everything else as JSON.
fn word_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if value.is_error()
        && let Some(error) = value.as_object()
    {
        let read = |key: &str| error.get::<_, Coerced<String>>(key).catch(ctx).map(|text| text.0).unwrap_or_default();
        return format!("{}: {}\n{}", read("name"), read("message"), read("stack")).trim_end().to_owned();
    }
    if value.is_undefined() {
        return "undefined".to_owned();
    }
    let as_text = value.is_string() || value.is_number() || value.is_big_int();
    let text = as_text.then(|| value.get::<Coerced<String>>().catch(ctx).ok()).flatten();
    text.map_or_else(|| named(ctx, value), |text| text.0)
}
