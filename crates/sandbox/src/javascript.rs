//! One JavaScript function, run once in a fresh interpreter.
//!
//! | the code asks for | it gets |
//! |---|---|
//! | the time | a fixed clock, in UTC |
//! | randomness | numbers derived from the seed |
//! | the environment | nothing: no imports, files, network, timers or variables |
//! | other threads | nothing: neither `Atomics` nor `SharedArrayBuffer` |
//! | the time of garbage collection | nothing: neither `WeakRef` nor `FinalizationRegistry`, and no collection below the memory limit |
//! | a locale | nothing: no `Intl` |

mod clock;
mod console;
mod errors;
mod limits;
mod random;

use crate::fault::{Fault, FaultKind};
use crate::limits::{Limits, MEMORY_RESERVE_BYTES, STACK_BYTES_MAX};
use crate::request::Function as Request;
use crate::response::{Console, Response};
use crate::transpile::Transpiled;
use clock::Clock;
use errors::{SOURCE_NAME, Watch, fault_of};
use limits::LimitGuard;
pub(crate) use limits::time_exceeded;
use random::Random;
use rquickjs::context::intrinsic::TypedArrays;
use rquickjs::context::intrinsic::{Date, Eval, Json, MapSet, Promise as Promises, Proxy, RegExp, RegExpCompiler};
use rquickjs::promise::PromiseState;
use rquickjs::{CaughtError, Context, Ctx, Error, Function, Module, Object, Promise, Runtime, Value};
use std::cell::RefCell;
use std::rc::Rc;

/// The available parts of the language. `Performance` and `WeakRef` are left out.
type Language = (Date, Eval, RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promises);

/// Parts of the interpreter's messages about values without a form in JSON.
const NO_JSON_WORDS: [&str; 2] = ["circular reference", "BigInt"];

/// Globals that reveal other threads.
const TAKEN_AWAY: [&str; 2] = ["Atomics", "SharedArrayBuffer"];

/// One call, on the host's side.
struct Run {
    guard: Rc<LimitGuard>,
    transpiled: Rc<Transpiled>,
    console: Rc<RefCell<Console>>,
    clock: Rc<Clock>,
    watch: Rc<Watch>,
    result_bytes_max: usize,
}

/// An interpreter that has run nothing yet, or has had its one run and waits to be dropped.
///
/// Making and dropping one takes longer than most functions run, so both happen while no caller waits.
pub(crate) struct Interpreter {
    context: Context,
    runtime: Runtime,
}

impl Interpreter {
    pub(crate) fn new() -> Result<Interpreter, Fault> {
        let broken = |error: Error| Fault::new(FaultKind::Crashed, format!("There is no interpreter: {error}."));
        let runtime = Runtime::new().map_err(broken)?;
        // No collection happens before the run; the threshold of the run is set when its limit is known.
        runtime.set_gc_threshold(usize::MAX);
        let context = Context::custom::<Language>(&runtime).map_err(broken)?;
        Ok(Interpreter { context, runtime })
    }
}

/// Runs the function. It recurses as deeply as the code, so the caller provides a large stack.
pub(crate) fn run(
    request: &Request,
    transpiled: Rc<Transpiled>,
    limits: &Limits,
    interpreter: &Interpreter,
) -> Response {
    let run = Run::new(transpiled, limits);
    let result = run.with_interpreter(interpreter, limits, |ctx| {
        run.install_globals(ctx, request.now_ms, &request.seed)
            .map_err(|error| run.fault(ctx, FaultKind::Crashed, error))?;
        run.call(ctx, &request.input)
    });
    Response { result, console: run.console.take(), ticks: run.guard.ticks() }
}

/// Checks that the interpreter itself accepts the source. Nothing of it runs.
pub(crate) fn check(transpiled: Rc<Transpiled>, limits: &Limits, interpreter: &Interpreter) -> Response {
    let run = Run::new(transpiled, limits);
    let result = run.with_interpreter(interpreter, limits, |ctx| {
        errors::watch(ctx, &run.guard, &run.transpiled, &run.watch)
            .map_err(|error| run.fault(ctx, FaultKind::Crashed, error))?;
        run.declare(ctx).map(|_| "null".to_owned())
    });
    Response { result, console: Console::default(), ticks: run.guard.ticks() }
}

impl Run {
    fn new(transpiled: Rc<Transpiled>, limits: &Limits) -> Run {
        Run {
            guard: Rc::new(LimitGuard::new(limits)),
            transpiled,
            console: Rc::default(),
            clock: Rc::default(),
            watch: Rc::default(),
            result_bytes_max: limits.result_bytes_max,
        }
    }

    /// Works in an interpreter under these limits, and fails afterwards if one was reached.
    fn with_interpreter(
        &self,
        Interpreter { context, runtime }: &Interpreter,
        limits: &Limits,
        work: impl FnOnce(&Ctx<'_>) -> Result<String, Fault>,
    ) -> Result<String, Fault> {
        let broken = |error: Error| Fault::new(FaultKind::Crashed, format!("The interpreter is broken: {error}."));
        runtime.set_memory_limit(limits.memory_bytes_max + MEMORY_RESERVE_BYTES);
        runtime.set_gc_threshold(limits.memory_bytes_max);
        runtime.set_max_stack_size(STACK_BYTES_MAX);
        let guard = self.guard.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || guard.tick())));
        context.with(|ctx| {
            let canary = plant_canary(&ctx, &self.guard).map_err(broken);
            let result = canary.and_then(|()| work(&ctx));
            self.clock.end();
            let stack = self.watch.end(&ctx, &self.transpiled);
            match self.guard.fault() {
                Some(fault) => Err(errors::with_stack(fault, &stack)),
                None => result,
            }
        })
    }

    /// Installs the allowed globals and removes the forbidden ones.
    fn install_globals(&self, ctx: &Ctx<'_>, now_ms: i64, seed: &[u8; 32]) -> Result<(), Error> {
        let globals = ctx.globals();
        for name in TAKEN_AWAY {
            globals.remove(name)?;
        }
        self.clock.install(ctx, now_ms)?;
        let random = RefCell::new(Random::new(seed));
        let next = Function::new(ctx.clone(), move || random.borrow_mut().next_f64())?.with_name("random")?;
        globals.get::<_, Object>("Math")?.set("random", next)?;
        console::install(ctx, &self.console)?;
        errors::watch(ctx, &self.guard, &self.transpiled, &self.watch)
    }

    fn declare<'js>(&self, ctx: &Ctx<'js>) -> Result<Module<'js>, Fault> {
        Module::declare(ctx.clone(), SOURCE_NAME, self.transpiled.code.as_str())
            .map_err(|error| self.fault(ctx, FaultKind::Syntax, error))
    }

    fn call(&self, ctx: &Ctx<'_>, input: &str) -> Result<String, Fault> {
        let threw = |error: Error| self.fault(ctx, FaultKind::Threw, error);
        let (module, evaluated) = self.declare(ctx)?.eval().map_err(threw)?;
        self.settle(ctx, &evaluated)?;
        let function: Value = module.get("default").map_err(threw)?;
        let function = function.into_function().ok_or_else(|| {
            let message = "The default export is no function. Write `export default function (input) { … }`.";
            Fault::new(FaultKind::NoFunction, message)
        })?;
        let input = ctx.json_parse(input).map_err(|error| self.fault(ctx, FaultKind::InputInvalid, error))?;
        let returned: Value = function.call((input,)).map_err(threw)?;
        let result = self.wait(ctx, returned)?;
        self.text_of(ctx, result)
    }

    /// Awaits a promise or any object with a `then`; returns every other value as it is.
    fn wait<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<Value<'js>, Fault> {
        if !value.is_object() {
            return Ok(value);
        }
        if let Some(promise) = value.as_promise() {
            return self.settle(ctx, promise);
        }
        let threw = |error: Error| self.fault(ctx, FaultKind::Threw, error);
        let (promise, resolve, _reject) = ctx.promise().map_err(threw)?;
        resolve.call::<_, ()>((value,)).map_err(threw)?;
        self.settle(ctx, &promise)
    }

    /// Runs pending jobs until the promise is settled. Later jobs never run.
    fn settle<'js>(&self, ctx: &Ctx<'js>, promise: &Promise<'js>) -> Result<Value<'js>, Fault> {
        while promise.state() == PromiseState::Pending {
            if let Some(fault) = self.guard.fault() {
                return Err(fault);
            }
            if !ctx.execute_pending_job() {
                let message = "The code waits for a promise that nothing can settle any more. \
                               There are no timers and no events to wait for here.";
                return Err(Fault::new(FaultKind::NeverSettles, message));
            }
        }
        let settled = promise.result().unwrap_or(Err(Error::WouldBlock));
        settled.map_err(|error| self.fault(ctx, FaultKind::Threw, error))
    }

    /// Converts a result to JSON text. It uses no globals that the code can change.
    fn text_of<'js>(&self, ctx: &Ctx<'js>, value: Value<'js>) -> Result<String, Fault> {
        if value.is_undefined() {
            return Ok("null".to_owned());
        }
        let text = ctx.json_stringify(value.clone()).map_err(|error| self.fault_of_stringify(ctx, error))?;
        let Some(text) = text else {
            let what = errors::named(ctx, &value);
            let message = format!("The result is {what}, which has no form in JSON. Return data.");
            return Err(Fault::new(FaultKind::NotJson, message));
        };
        let text = text.to_string().map_err(|error| self.fault(ctx, FaultKind::NotJson, error))?;
        if text.len() > self.result_bytes_max {
            let message = format!(
                "The result has {} bytes as JSON, and {} are allowed. Return less of it.",
                text.len(),
                self.result_bytes_max
            );
            return Err(Fault::new(FaultKind::ResultTooLarge, message));
        }
        Ok(text)
    }

    fn fault_of_stringify(&self, ctx: &Ctx<'_>, error: Error) -> Fault {
        let mut fault = self.fault(ctx, FaultKind::Threw, error);
        if fault.message.starts_with("TypeError: ") && NO_JSON_WORDS.iter().any(|words| fault.message.contains(words)) {
            fault.kind = FaultKind::NotJson;
            fault.message = format!("The result has no form in JSON: {}.", &fault.message["TypeError: ".len()..]);
        }
        fault
    }

    /// Converts an error to a fault; a limit that was reached takes precedence. An error that passed through no frame
    /// of code is checked for a limit here.
    fn fault<'js>(&self, ctx: &Ctx<'js>, kind: FaultKind, error: Error) -> Fault {
        let caught = CaughtError::from_error(ctx, error);
        if let CaughtError::Exception(exception) = &caught
            && let Some(limit) = self.watch.limit_of(ctx, exception.as_value())
        {
            self.guard.meet(limit);
        }
        self.guard.fault().unwrap_or_else(|| fault_of(ctx, kind, caught))
    }
}

/// Makes an object that only the collection of cycles can free, and that reports it to the guard.
///
/// The interpreter collects when it allocates beyond a threshold, which is set to the memory limit. So exhausted memory
/// is detected even where the code catches the error, or where there was no memory for an error at all.
fn plant_canary(ctx: &Ctx<'_>, guard: &Rc<LimitGuard>) -> Result<(), Error> {
    struct Canary(Rc<LimitGuard>);
    impl Drop for Canary {
        fn drop(&mut self) {
            self.0.meet(FaultKind::MemoryExceeded);
        }
    }
    let canary = Canary(guard.clone());
    let function = Function::new(ctx.clone(), move || {
        let _held = &canary;
    })?;
    function.set("itself", function.clone())
}
