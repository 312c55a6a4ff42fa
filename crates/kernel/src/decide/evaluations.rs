//! Evaluations: requests them during a turn and processes their results.

use alloc::{boxed::Box, format, vec::Vec};

use super::{Decider, runners::described};
use crate::{
    apply::IllegalTransition,
    cbor::{self, Writer},
    decide_version::AGENT_FAILURES_SINCE,
    evaluation::{Check, Evaluated, Evaluation, Function},
    failure::{Class, Failure},
    hash::Hash,
    input::Start,
    instance::Instance,
    limits::{CODE_TIMEOUT_DEFAULT_MS, OUTPUT_BYTES_MAX},
    plan::Work,
    record::Record,
    template::Template,
    value::Value,
};

/// A requested evaluation and the use of its result.
#[derive(Debug)]
pub(super) struct Task {
    purpose: Purpose,
    evaluation: Evaluation,
}

#[derive(Debug)]
pub(super) enum Purpose {
    /// Input check of an execution that is starting.
    Beginning(Box<Start>),
    /// Function of a code step, with the attempt number.
    Code(Instance, u32),
    /// Function that transforms the result of an effect into the step's output.
    Transform(Instance),
    /// Check of a step's output against its output schema.
    Promise(Instance, Value),
    /// Check of an agent's final answer against its schema.
    Answer(Instance, Value),
}

impl Task {
    pub(super) fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// Returns the step instance of the evaluation; `None` for the input check.
    pub(super) fn instance(&self) -> Option<&Instance> {
        match &self.purpose {
            Purpose::Beginning(_) => None,
            Purpose::Code(instance, _)
            | Purpose::Transform(instance)
            | Purpose::Promise(instance, _)
            | Purpose::Answer(instance, _) => Some(instance),
        }
    }
}

impl Decider<'_> {
    pub(super) fn check_input(&mut self, start: &Start, schema: Value) -> Result<(), IllegalTransition> {
        let check = Check { schema, value: start.input.clone(), fills_defaults: true };
        let purpose = Purpose::Beginning(Box::new(start.clone()));
        self.agenda.tasks.push(Task { purpose, evaluation: Evaluation::Check(check) });
        Ok(())
    }

    /// Starts a code step. Its input is resolved once, and its function is requested in the same turn.
    pub(super) fn begin_code(&mut self, instance: &Instance, input: &Template) -> Result<(), IllegalTransition> {
        let input = match input.resolve(&self.view(instance)) {
            Ok(input) => input,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let size = cbor::byte_count(&input);
        self.count_bytes(size);
        if self.refuses_input(instance, &input, size)? {
            return Ok(());
        }
        self.started(instance, input, None)?;
        self.ask_code(instance, 1);
        Ok(())
    }

    /// Starts a further attempt of a code step.
    pub(super) fn repeat_code(&mut self, instance: &Instance, attempt: u32) -> Result<(), IllegalTransition> {
        self.record(Record::AttemptStarted { instance: instance.clone(), attempt, timeout_at: None })?;
        self.ask_code(instance, attempt);
        Ok(())
    }

    fn ask_code(&mut self, instance: &Instance, attempt: u32) {
        let plan = self.state.plan.clone();
        let Work::Code { source, .. } = &plan.step(instance.step).work else { return };
        let input = self.state.steps.get(instance).map(|step| step.input.clone()).unwrap_or_default();
        let evaluation = self.function(instance, source, input);
        self.agenda.tasks.push(Task { purpose: Purpose::Code(instance.clone(), attempt), evaluation });
    }

    fn function(&self, instance: &Instance, source: &str, input: Value) -> Evaluation {
        let planned = self.state.plan.step(instance.step);
        let timeout_ms = match planned.work {
            Work::Code { .. } => planned.timeout_ms.unwrap_or(CODE_TIMEOUT_DEFAULT_MS),
            _ => CODE_TIMEOUT_DEFAULT_MS,
        };
        let step = instance.name(&self.state.plan);
        let mut seed = Writer::default();
        seed.array(2);
        seed.byte_string(&self.state.key.0);
        seed.text(&step);
        let seed = Hash::of(&seed.bytes);
        Evaluation::Function(Function { step, source: source.into(), input, now: self.agenda.now, seed, timeout_ms })
    }

    /// Processes the result of an effect: applies the step's transform, if there is one.
    pub(super) fn done(&mut self, instance: &Instance, result: &Value) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let step = plan.step(instance.step);
        match &step.transform {
            Some(source) => {
                let evaluation = self.function(instance, source, result.clone());
                let purpose = Purpose::Transform(instance.clone());
                self.agenda.tasks.push(Task { purpose, evaluation });
                Ok(())
            }
            None => match self.with_value(instance, result) {
                Ok(whole) => self.shaped(instance, whole.as_ref().unwrap_or(result)),
                Err(failure) => self.fail(instance, failure),
            },
        }
    }

    /// Returns the maximum size of a step's output, in encoded bytes.
    pub(super) fn output_bytes_max(&self) -> usize {
        let asked = self.state.start.as_ref().and_then(|start| start.policy.max_output_bytes);
        asked.map_or(OUTPUT_BYTES_MAX, |bytes| OUTPUT_BYTES_MAX.min(bytes as usize))
    }

    /// Checks the size of a step's final output, and requests the check against its schema.
    fn shaped(&mut self, instance: &Instance, output: &Value) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let step = plan.step(instance.step);
        let size = cbor::byte_count(output);
        self.count_bytes(size);
        let bytes_max = self.output_bytes_max();
        if size > bytes_max {
            let message = format!(
                "step `{}`: its output takes {size} bytes and at most {bytes_max} are kept; write it to a file and give its name",
                step.id
            );
            return self.fail(instance, Failure::new(Class::Policy, "output_too_large", message));
        }
        let Some(schema) = step.output_schema.clone() else { return self.complete(instance, output.clone()) };
        let check = Check { schema, value: described(step, output).clone(), fills_defaults: false };
        let purpose = Purpose::Promise(instance.clone(), output.clone());
        self.agenda.tasks.push(Task { purpose, evaluation: Evaluation::Check(check) });
        Ok(())
    }

    /// Processes the results of all requested evaluations.
    pub(super) fn take_results(&mut self, results: Vec<Evaluated>) -> Result<(), IllegalTransition> {
        let tasks = core::mem::take(&mut self.agenda.tasks);
        if tasks.len() != results.len() {
            let message = format!("{} evaluations were asked for, and {} results came", tasks.len(), results.len());
            return Err(IllegalTransition { message });
        }
        for (task, result) in tasks.into_iter().zip(results) {
            if let (Some(instance), true) = (task.instance(), result.log != Value::Null) {
                let lines = result.log.clone().into();
                self.record(Record::StepLogged { instance: instance.clone(), lines })?;
            }
            self.take_result(task, result.outcome.clone())?;
            self.agenda.turn.results.push(result);
        }
        Ok(())
    }

    fn take_result(&mut self, task: Task, outcome: Result<Value, Failure>) -> Result<(), IllegalTransition> {
        if self.is_ending() && !self.ends_well() {
            return task.instance().map_or(Ok(()), |instance| self.cancel_step(instance, "execution_ending"));
        }
        match task.purpose {
            Purpose::Beginning(start) => self.begin_with(&start, outcome.map_err(|failure| unfit_input(&failure))),
            Purpose::Code(instance, attempt) => match outcome {
                Ok(output) => self.shaped(&instance, &output),
                Err(failure) => {
                    let failure = self.named(&instance, "", failure);
                    self.attempt_failed(&instance, attempt, failure)
                }
            },
            Purpose::Transform(instance) => match outcome {
                Ok(output) => self.shaped(&instance, &output),
                Err(failure) => {
                    let failure = self.named(&instance, "its transform: ", failure);
                    self.fail(&instance, failure)
                }
            },
            Purpose::Answer(instance, value) => match outcome {
                Ok(_) => self.complete_agent(&instance, value),
                // Another answer of the model would not be checked either.
                Err(failure)
                    if failure.class != Class::Invalid && self.state.decide_version >= AGENT_FAILURES_SINCE =>
                {
                    let failure = self.named(&instance, "its answer cannot be checked: ", failure);
                    self.fail(&instance, failure)
                }
                Err(failure) => self.reject_answer(&instance, &failure.message),
            },
            Purpose::Promise(instance, output) => match outcome {
                Ok(_) => self.complete(&instance, output),
                Err(failure) => {
                    let failure = self.named(&instance, "its output does not fit its outputSchema: ", failure);
                    self.fail(&instance, Failure { code: "invalid_output".into(), class: Class::Invalid, ..failure })
                }
            },
        }
    }

    /// Requests the check of a value against a schema.
    pub(super) fn ask_check(&mut self, schema: Value, value: Value, purpose: Purpose) {
        let evaluation = Evaluation::Check(Check { schema, value, fills_defaults: false });
        self.agenda.tasks.push(Task { purpose, evaluation });
    }

    /// True if an evaluation of the step instance has no result yet.
    pub(super) fn is_asked(&self, instance: &Instance) -> bool {
        self.agenda.tasks.iter().any(|task| task.instance() == Some(instance))
    }

    fn named(&self, instance: &Instance, what: &str, failure: Failure) -> Failure {
        let message = format!("step `{}`: {what}{}", instance.name(&self.state.plan), failure.message);
        Failure { message, ..failure }
    }

    /// Cancels the steps whose evaluations are pending when the execution ends.
    pub(super) fn cancel_tasks(&mut self, reason: &str) -> Result<(), IllegalTransition> {
        for task in core::mem::take(&mut self.agenda.tasks) {
            task.instance().map_or(Ok(()), |instance| self.cancel_step(instance, reason))?;
        }
        Ok(())
    }
}

/// Creates the failure of an input that does not match its schema, from the failure of the check.
pub fn unfit_input(failure: &Failure) -> Failure {
    let message = format!("the input does not fit the workflow's inputSchema: {}", failure.message);
    Failure { code: "invalid_input".into(), class: Class::Invalid, message, details: failure.details.clone() }
}
