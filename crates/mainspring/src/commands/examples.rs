//! `mainspring examples`: the examples of the repository, from the binary.

use clap::Args;
use mainspring_authoring::examples::{Example, examples as all};
use mainspring_kernel::{definition::nearest, json::compact, value::Value};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::{dim, print_out},
};

/// List the examples, or print one.
#[derive(Debug, Args)]
pub(crate) struct Examples {
    /// The example; without it, all are listed
    name: Option<String>,
    /// Print the scenario that tests the example
    #[arg(long, requires = "name")]
    scenario: bool,
}

pub(crate) fn examples(command: &Examples, context: &Context) -> Result<Exit, CliError> {
    let all = all();
    let Some(name) = &command.name else {
        list(&all, context);
        return Ok(Exit::Fine);
    };
    let Some(example) = all.iter().find(|example| example.name == name) else {
        let help = match nearest(name, all.iter().map(|example| example.name)) {
            Some(near) => format!("try `mainspring examples {near}`"),
            None => "`mainspring examples` lists them".into(),
        };
        return Err(CliError::bad_input("unknown_example", format!("there is no example {name:?}; {help}")));
    };
    if context.global.json {
        print_out!("{}", compact(&Value::map([("ok", true.into()), ("example", value(example, true))])));
    } else {
        let text = if command.scenario { example.scenario } else { example.definition };
        print_out!("{}", text.trim_end());
    }
    Ok(Exit::Fine)
}

fn list(all: &[Example], context: &Context) {
    if context.global.json {
        let examples: Vec<Value> = all.iter().map(|example| value(example, false)).collect();
        print_out!("{}", compact(&Value::map([("ok", true.into()), ("examples", examples.into())])));
        return;
    }
    for example in all {
        print_out!("{:16} {}", example.name, example.summary);
    }
    print_out!("{}", dim("`mainspring examples NAME` prints one; `mainspring init` writes a template with its test."));
}

fn value(example: &Example, with_texts: bool) -> Value {
    let mut value = Value::map([("name", example.name.into()), ("summary", example.summary.as_str().into())]);
    if let (Value::Map(map), true) = (&mut value, with_texts) {
        map.insert("definition".into(), example.definition.into());
        map.insert("scenario".into(), example.scenario.into());
    }
    value
}
