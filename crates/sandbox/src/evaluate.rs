//! Evaluates requests in this process.

use crate::fault::{Fault, FaultKind};
use crate::javascript::{self, Interpreter};
use crate::limits::{PREPARED_MAX, SCHEMA_BYTES_MAX, THREAD_STACK_BYTES, VALUE_BYTES_MAX};
use crate::request::{Call, Function, Request, Validate};
use crate::response::Response;
use crate::schema::Schema;
use crate::transpile::{Transpiled, prepare};
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::thread;

/// Answers a request in this process, on a separate thread.
///
/// All limits apply with two exceptions: a native call that does not check its limits cannot be ended, and a defect of
/// the interpreter affects this process. Run untrusted code in [`Workers`](crate::Workers); this function is for tests
/// and tools.
pub fn evaluate(request: &Request) -> Response {
    thread::scope(|scope| {
        let work = || {
            let mut evaluator = Evaluator::default();
            evaluator.tidy_up();
            evaluator.answer(request)
        };
        let thread = thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn_scoped(scope, work);
        let broken = |message: &str| Response::of(Err(Fault::new(FaultKind::Crashed, message)));
        match thread.map(|thread| thread.join()) {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Ok(Err(_)) | Err(_)) => broken("The sandbox broke. This is a defect of ours."),
            Err(error) => broken(&format!("There is no thread to evaluate on: {error}.")),
        }
    })
}

/// Answers requests one after another, and caches parsed sources and schemas.
///
/// No state of a run is kept: each run has its own interpreter. Needs a large stack.
#[derive(Default)]
pub(crate) struct Evaluator {
    sources: Kept<Rc<Transpiled>>,
    schemas: Kept<Rc<Schema>>,
    /// An unused interpreter for the next run.
    fresh: Option<Result<Interpreter, Fault>>,
    /// The interpreter of the last run, dropped by [`tidy_up`](Self::tidy_up).
    used: Option<Interpreter>,
}

impl Evaluator {
    /// Answers a request; the error is a panic.
    ///
    /// The nesting depth of code is measured from the stack position at which its interpreter was made. This method and
    /// [`tidy_up`](Self::tidy_up) are called from one place and never inlined, so the distance is the same for every
    /// run.
    #[inline(never)]
    pub(crate) fn answer(&mut self, request: &Request) -> thread::Result<Response> {
        catch_unwind(AssertUnwindSafe(|| self.evaluate(request)))
    }

    fn evaluate(&mut self, request: &Request) -> Response {
        match &request.call {
            Call::Function(function) => self.run(function, request),
            Call::CheckFunction { source } => match self.source(source) {
                Ok(transpiled) => self.check(transpiled, request),
                Err(fault) => Response::of(Err(fault)),
            },
            Call::CheckSchema { schema } => Response::of(self.schema(schema).map(|_| "null".to_owned())),
            Call::Validate(validate) => Response::of(self.validate(validate)),
            Call::Hello => {
                let message = "Only a worker has something to say of itself.";
                Response::of(Err(Fault::new(FaultKind::Unavailable, message)))
            }
        }
    }

    fn run(&mut self, function: &Function, request: &Request) -> Response {
        if let Err(fault) = small_enough("The input", &function.input, VALUE_BYTES_MAX, FaultKind::InputInvalid) {
            return Response::of(Err(fault));
        }
        match self.source(&function.source) {
            Ok(transpiled) => {
                self.in_fresh(|interpreter| javascript::run(function, transpiled, &request.limits, interpreter))
            }
            Err(fault) => Response::of(Err(fault)),
        }
    }

    /// Answers the type of the result. A source that the interpreter has accepted once is not checked again.
    fn check(&mut self, transpiled: Rc<Transpiled>, request: &Request) -> Response {
        let of_type = transpiled.result_type.clone().unwrap_or_else(|| "null".to_owned());
        if transpiled.is_taken.get() {
            return Response::of(Ok(of_type));
        }
        let answer = self.in_fresh(|interpreter| javascript::check(transpiled.clone(), &request.limits, interpreter));
        transpiled.is_taken.set(answer.result.is_ok());
        Response { result: answer.result.map(|_| of_type), ..answer }
    }

    fn in_fresh(&mut self, work: impl FnOnce(&Interpreter) -> Response) -> Response {
        let interpreter = match self.fresh.take() {
            Some(Ok(interpreter)) => interpreter,
            Some(Err(fault)) => return Response::of(Err(fault)),
            None => return Response::of(Err(Fault::new(FaultKind::Crashed, "There is no interpreter yet."))),
        };
        let answer = work(&interpreter);
        self.used = Some(interpreter);
        answer
    }

    /// Does work between requests, when no caller waits: drops the interpreter of the last run and makes that of the
    /// next one.
    #[inline(never)]
    pub(crate) fn tidy_up(&mut self) {
        self.used = None;
        if self.fresh.as_ref().is_none_or(Result::is_err) {
            self.fresh = Some(Interpreter::new());
        }
    }

    fn validate(&mut self, validate: &Validate) -> Result<String, Fault> {
        small_enough("The value", &validate.value, VALUE_BYTES_MAX, FaultKind::InputInvalid)?;
        self.schema(&validate.schema)?.validate(&validate.value, validate.fill_defaults)
    }

    fn source(&mut self, source: &str) -> Result<Rc<Transpiled>, Fault> {
        self.sources.get_or_make(source, || prepare(source).map(Rc::new))
    }

    fn schema(&mut self, schema: &str) -> Result<Rc<Schema>, Fault> {
        small_enough("The schema", schema, SCHEMA_BYTES_MAX, FaultKind::SourceTooLarge)?;
        self.schemas.get_or_make(schema, || Schema::read(schema).map(Rc::new))
    }
}

fn small_enough(what: &str, text: &str, bytes_max: usize, kind: FaultKind) -> Result<(), Fault> {
    if text.len() <= bytes_max {
        return Ok(());
    }
    Err(Fault::new(kind, format!("{what} has {} bytes, and {bytes_max} are allowed.", text.len())))
}

/// A bounded cache of parsed texts, first in, first out.
struct Kept<T> {
    made: HashMap<Rc<str>, T>,
    order: VecDeque<Rc<str>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { made: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Clone> Kept<T> {
    fn get_or_make(&mut self, text: &str, make: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
        if let Some(known) = self.made.get(text) {
            return Ok(known.clone());
        }
        let made = make()?;
        if self.order.len() >= PREPARED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.made.remove(&oldest);
        }
        let key: Rc<str> = text.into();
        self.order.push_back(key.clone());
        self.made.insert(key, made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;
    use crate::fault::{Fault, FaultKind};
    use crate::limits::PREPARED_MAX;

    #[test]
    fn compiled_sources_are_cached_and_the_oldest_is_evicted() {
        let mut kept = Kept::default();
        let made = |kept: &mut Kept<usize>, text: &str, number| kept.get_or_make(text, || Ok(number)).unwrap();
        assert_eq!((made(&mut kept, "first", 1), made(&mut kept, "first", 2)), (1, 1));
        assert!(kept.get_or_make("bad", || Err(Fault::new(FaultKind::Syntax, "no"))).is_err());
        assert_eq!(made(&mut kept, "bad", 3), 3);
        (0..PREPARED_MAX).for_each(|index| assert_eq!(made(&mut kept, &index.to_string(), index), index));
        assert_eq!((kept.made.len(), kept.order.len()), (PREPARED_MAX, PREPARED_MAX));
        assert_eq!(made(&mut kept, "first", 4), 4);
    }
}
