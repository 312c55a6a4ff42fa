//! The clock of untrusted code, made on first access: most code never reads it, and making it takes longer than making
//! the interpreter itself.

use rquickjs::atom::PredefinedAtom;
use rquickjs::object::{Accessor, Property};
use rquickjs::{Ctx, Error, Function, Object, Persistent, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// The source of `clock.js`: a function from the time and the language's own `Date` to the code's `Date`.
const SOURCE: &str = include_str!("clock.js");

const NAME: &str = "Date";

/// The clock of one call. Its references into the interpreter must be dropped before the interpreter.
#[derive(Default)]
pub(crate) struct Clock {
    /// The language's own `Date`, hidden from the code, and functions saved before the code could change them.
    native: RefCell<Option<Persistent<Value<'static>>>>,
    primordials: RefCell<Option<Persistent<Object<'static>>>>,
    made: RefCell<Option<Persistent<Value<'static>>>>,
}

impl Clock {
    /// Installs the clock as a global.
    pub(crate) fn install<'js>(self: &Rc<Clock>, ctx: &Ctx<'js>, now_ms: i64) -> Result<(), Error> {
        let globals = ctx.globals();
        *self.native.borrow_mut() = Some(Persistent::save(ctx, globals.get::<_, Value>(NAME)?));
        *self.primordials.borrow_mut() = Some(Persistent::save(ctx, primordials(ctx)?));
        let clock = self.clone();
        let look = move |ctx: Ctx<'js>| -> Result<Value<'js>, Error> {
            let date = clock.date(&ctx, now_ms)?;
            put(&ctx, date.clone())?;
            Ok(date)
        };
        let replace = |ctx: Ctx<'js>, value: Value<'js>| put(&ctx, value);
        globals.prop(NAME, Accessor::new(look, replace).configurable())
    }

    /// Drops all references into the interpreter.
    pub(crate) fn end(&self) {
        self.native.take();
        self.primordials.take();
        self.made.take();
    }

    fn date<'js>(&self, ctx: &Ctx<'js>, now_ms: i64) -> Result<Value<'js>, Error> {
        if let Some(made) = self.made.borrow().clone() {
            return made.restore(ctx);
        }
        let native = self.native.borrow().clone().map(|native| native.restore(ctx)).transpose()?;
        let primordials = self.primordials.borrow().clone().map(|primordials| primordials.restore(ctx)).transpose()?;
        let date: Value = ctx.eval::<Function, _>(SOURCE)?.call((now_ms as f64, native, primordials))?;
        *self.made.borrow_mut() = Some(Persistent::save(ctx, date.clone()));
        Ok(date)
    }
}

/// Saves the functions that `clock.js` calls.
fn primordials<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>, Error> {
    let globals = ctx.globals();
    let functions = Object::new(ctx.clone())?;
    for (home, names) in [("Reflect", ["apply", "construct"]), ("Object", ["defineProperty", "getOwnPropertyNames"])] {
        let home: Object = globals.get(home)?;
        for name in names {
            functions.set(name, home.get::<_, Value>(name)?)?;
        }
    }
    let prototype = |name: &str| globals.get::<_, Object>(name)?.get::<_, Object>("prototype");
    functions.set("exec", prototype("RegExp")?.get::<_, Value>("exec")?)?;
    functions.set("splitBy", prototype("RegExp")?.get::<_, Value>(PredefinedAtom::SymbolSplit)?)?;
    functions.set("slice", prototype("String")?.get::<_, Value>("slice")?)?;
    Ok(functions)
}

/// Replaces the accessor by an ordinary property.
fn put<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<(), Error> {
    ctx.globals().prop(NAME, Property::from(value).writable().configurable())
}
