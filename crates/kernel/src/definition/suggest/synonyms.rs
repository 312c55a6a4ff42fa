//! Synonyms: words of other workflow languages, and the words of this one that mean the same. A search for similar
//! spelling would not find them.

/// A word and its possible meanings. The first meaning that is known in the context is used.
const SYNONYMS: &[(&str, &[&str])] = &[
    // Step types.
    ("shell", &["bash"]),
    ("sh", &["bash"]),
    ("script", &["bash", "command", "code"]),
    ("exec", &["bash", "command"]),
    ("run", &["bash", "command"]),
    ("cmd", &["command"]),
    ("commands", &["command"]),
    ("call", &["tool"]),
    ("action", &["tool", "type"]),
    ("mcp", &["tool"]),
    ("request", &["http"]),
    ("fetch", &["http"]),
    ("rest", &["http"]),
    ("webhook", &["http"]),
    ("llm", &["agent"]),
    ("ai", &["agent"]),
    ("model", &["agent"]),
    ("chat", &["agent_message"]),
    ("function", &["code"]),
    ("javascript", &["code"]),
    ("js", &["code"]),
    ("typescript", &["code"]),
    ("ts", &["code"]),
    ("source", &["code", "from"]),
    ("workflow", &["subworkflow"]),
    ("child", &["subworkflow", "workflow"]),
    ("subflow", &["subworkflow"]),
    ("if", &["conditional", "condition", "when"]),
    ("switch", &["conditional"]),
    ("branch", &["conditional"]),
    ("choice", &["conditional"]),
    ("fork", &["parallel"]),
    ("concurrent", &["parallel"]),
    ("for", &["loop", "forEach"]),
    ("foreach", &["loop", "forEach"]),
    ("for_each", &["loop", "forEach"]),
    ("map", &["loop", "forEach"]),
    ("while", &["loop"]),
    ("repeat", &["loop", "while"]),
    ("human", &["approval"]),
    ("manual", &["approval"]),
    ("confirm", &["approval"]),
    ("gate", &["approval"]),
    ("wait", &["sleep"]),
    ("delay", &["sleep", "durationMs", "initialDelayMs"]),
    ("receive", &["signal"]),
    ("end", &["return"]),
    ("stop", &["return"]),
    ("exit", &["return"]),
    // Keys.
    ("kind", &["type", "when"]),
    ("uses", &["tool", "type"]),
    ("toolname", &["tool"]),
    ("tool", &["toolName"]),
    ("with", &["arguments", "input"]),
    ("args", &["arguments", "input"]),
    ("arguments", &["input"]),
    ("params", &["arguments", "query", "input"]),
    ("parameters", &["arguments", "query", "input"]),
    ("input", &["arguments"]),
    ("inputs", &["arguments", "input"]),
    ("data", &["input", "arguments", "body"]),
    ("payload", &["body", "input", "arguments"]),
    ("uri", &["url"]),
    ("endpoint", &["url"]),
    ("status", &["expect"]),
    ("prompt", &["goal", "content"]),
    ("instructions", &["goal"]),
    ("task", &["goal"]),
    ("text", &["content", "prompt"]),
    ("message", &["prompt"]),
    ("question", &["prompt"]),
    ("title", &["prompt"]),
    ("ttl", &["ttlMs"]),
    ("when", &["condition"]),
    ("otherwise", &["else"]),
    ("branches", &["steps"]),
    ("body", &["steps"]),
    ("do", &["steps"]),
    ("steps", &["then"]),
    ("tasks", &["steps"]),
    ("jobs", &["steps"]),
    ("items", &["forEach"]),
    ("in", &["ref"]),
    ("list", &["ref"]),
    ("maxiterations", &["maxRounds"]),
    ("limit", &["maxRounds"]),
    ("duration", &["durationMs"]),
    ("seconds", &["durationMs"]),
    ("ms", &["durationMs"]),
    ("depends_on", &["needs"]),
    ("dependson", &["needs"]),
    ("after", &["needs"]),
    ("output", &["outputVariable"]),
    ("save_as", &["outputVariable"]),
    ("schema", &["outputSchema"]),
    ("retries", &["maxAttempts", "retry"]),
    ("attempts", &["maxAttempts"]),
    ("optional", &["required"]),
    ("workflowid", &["name"]),
    ("planversion", &["version"]),
    ("node", &["nodes"]),
    ("links", &["edges"]),
    ("target", &["to"]),
    ("on", &["when"]),
    ("type", &["when", "action"]),
    // Cleanup.
    ("ensure", &["finally"]),
    ("defer", &["finally"]),
    ("always", &["finally"]),
    ("always()", &["finally"]),
    ("on_exit", &["finally"]),
    ("onexit", &["finally"]),
    ("exithandler", &["finally"]),
    ("on_failure", &["finally"]),
    ("onfailure", &["finally"]),
    ("on_error", &["finally", "onError"]),
    ("on_cancel", &["finally"]),
    ("after_script", &["finally"]),
    ("post", &["finally"]),
    ("cleanup", &["finally"]),
    ("teardown", &["finally"]),
    // Conditions.
    ("and", &["all"]),
    ("or", &["any"]),
    ("equals", &["eq"]),
    ("equal", &["eq"]),
    ("is", &["eq"]),
    ("==", &["eq"]),
    ("===", &["eq"]),
    ("value", &["eq"]),
    ("eq", &["equals"]),
    ("ne", &["neq"]),
    ("!=", &["neq"]),
    ("not_equals", &["neq"]),
    (">", &["gt"]),
    (">=", &["gte"]),
    ("ge", &["gte"]),
    ("<", &["lt"]),
    ("<=", &["lte"]),
    ("le", &["lte"]),
    ("contains", &["in"]),
    ("path", &["ref"]),
    ("var", &["variable"]),
    // Values of keys.
    ("success", &["on_success"]),
    ("failure", &["on_failure"]),
    ("error", &["on_failure", "failed"]),
    ("fail", &["on_failure"]),
    ("skipped", &["skip"]),
    ("skip", &["continue"]),
    ("ignore", &["continue"]),
    ("denied", &["deny"]),
    ("approved", &["approve"]),
    ("constant", &["fixed"]),
    ("expo", &["exponential"]),
    ("graph", &["edges"]),
    // Types of variables and of schemas.
    ("str", &["string"]),
    ("text", &["string"]),
    ("int", &["integer"]),
    ("float", &["number"]),
    ("double", &["number"]),
    ("bool", &["boolean"]),
    ("list", &["array"]),
    ("dict", &["object"]),
    ("nil", &["null"]),
    // Names in references.
    ("variables", &["vars"]),
    ("context", &["ctx"]),
    ("each", &["item"]),
    ("i", &["index"]),
];

/// Returns the known word that means the same.
pub(in crate::definition) fn synonym<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let of_word = SYNONYMS.iter().filter(|(other, _)| other.eq_ignore_ascii_case(word));
    of_word.flat_map(|(_, meant)| *meant).find_map(|meant| known.clone().into_iter().find(|known| known == meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_names_that_are_valid_at_the_position() {
        assert_eq!(synonym("run", ["command", "cwd"]), Some("command"));
        assert_eq!(synonym("Run", ["tool", "bash"]), Some("bash"));
        assert_eq!(synonym("run", ["tool"]), None);
        assert_eq!(synonym("command", ["command"]), None);
        assert_eq!(synonym("text", ["string"]), Some("string"), "a word may stand in several rows");
    }

    #[test]
    fn synonym_rows_are_distinct() {
        for (at, (word, meant)) in SYNONYMS.iter().enumerate() {
            assert!(!meant.is_empty() && !meant.contains(word), "{word}");
            for (_, other) in SYNONYMS[at + 1..].iter().filter(|(other, _)| other == word) {
                assert!(!other.iter().any(|other| meant.contains(other)), "{word}");
            }
        }
    }
}
