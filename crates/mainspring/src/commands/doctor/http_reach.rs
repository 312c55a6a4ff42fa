//! Checks the allowlist of `http` steps: addresses beyond the public internet, by organization.

use mainspring_effects::http::{ALLOW_VARIABLE, Allowlist};
use mainspring_kernel::value::{Map, Value};
use mainspring_store::StoreError;

use super::{Contents, check::Check, refused};

const NAME: &str = "http allow";

/// Entries of one organization that are named in a message.
const NAMED_MAX: usize = 3;

/// Parses the allowlist of the environment, and compares it with the existing organizations.
pub(super) fn check(contents: &Contents) -> Option<Check> {
    let text = std::env::var(ALLOW_VARIABLE).unwrap_or_default();
    Some(of(&text, || contents.organizations()))
}

fn of(text: &str, organizations: impl FnOnce() -> Option<Result<Vec<String>, StoreError>>) -> Check {
    let allow: Allowlist = match text.parse() {
        Ok(allow) => allow,
        Err(error) => {
            let help = "correct the entry: engines do not start with it (`mainspring explain MAINSPRING_HTTP_ALLOW`)";
            return Check::broken(NAME, format!("{ALLOW_VARIABLE}: {error}"), help);
        }
    };
    let allowed: Vec<(&str, Vec<&str>)> = allow.entries().collect();
    if allowed.is_empty() {
        return Check::ok(NAME, format!("only the public internet; {ALLOW_VARIABLE} allows nothing more"));
    }
    let of_one = |(organization, entries): &(&str, Vec<&str>)| {
        let named = entries.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = entries.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{organization} also reaches {named}{more}")
    };
    let message = allowed.iter().map(of_one).collect::<Vec<_>>().join("; ");
    let known = match organizations() {
        Some(Ok(known)) => known,
        Some(Err(error)) => return refused(NAME, &error),
        None => Vec::new(),
    };
    let is_unknown = |organization: &str| !known.is_empty() && !known.iter().any(|one| one == organization);
    let unknown: Vec<&str> = allowed.iter().map(|(one, _)| *one).filter(|one| is_unknown(one)).collect();
    let check = if unknown.is_empty() {
        Check::ok(NAME, message)
    } else {
        let message = format!("{message}; there is no organization {}", unknown.join(", "));
        Check::warning(NAME, message, format!("correct the id before `=` in {ALLOW_VARIABLE}, or remove the entry"))
    };
    let detail = |entries: &[&str]| Value::List(entries.iter().map(|entry| Value::from(*entry)).collect());
    let detail: Map = allowed.iter().map(|(one, entries)| ((*one).to_string(), detail(entries))).collect();
    check.with("allowed", Value::Map(detail))
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    #[test]
    fn allowed_addresses_are_listed_and_unused_entries_warned() {
        let known = || Some(Ok(vec!["default".to_string(), "acme".into()]));
        let table = [
            (of("", known), State::Ok, "only the public internet"),
            (
                of("10.0.0.0/8 acme=127.0.0.1:1", known),
                State::Ok,
                "acme also reaches 127.0.0.1:1; default also reaches 10.0.0.0/8",
            ),
            (of("::1 ::2 ::3 ::4 ::5", known), State::Ok, "default also reaches ::1, ::2, ::3 and 2 more"),
            (of("acmee=::1", known), State::Warning, "there is no organization acmee"),
            (of("acmee=::1", || None), State::Ok, "acmee also reaches ::1"),
            (of("acmee=::1", || Some(Err(StoreError::Unavailable("away".into())))), State::Broken, "away"),
            (of("acme=10.0.0.1/8", known), State::Broken, "`acme=10.0.0.1/8`"),
        ];
        for (check, state, said) in table {
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }
}
