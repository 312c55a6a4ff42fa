//! Repositories of executions: the checks of a saved one, the choice between trigger, workflow and request, and the commit
//! that a start pins.

use std::collections::BTreeMap;

use mainspring_effects::{
    git::{Credential, DEFAULT_REF, Host, Location, Pinned, Repositories, Wanted, check_ref},
    secrets::{Purpose, SecretUser},
};
use mainspring_kernel::{
    failure::{Class, Failure},
    json,
    secret::{SESSION_TOKEN, SecretReference},
    value::{Map, Value},
};

use crate::{
    app::App,
    auth::{caller::Caller, permission::Permission},
    http::problem::{Code, Problem, Result},
    resources::{
        Organization, RUNTIME_FEATURE, RepositoryContext, RepositoryCredential, RequestedRepository, Workflow,
        repository::{Repository, Stored},
    },
    services::{trigger_config::parse_mapping, trigger_event::Event},
};

/// Bytes of the user of a credential.
const USER_BYTES_MAX: usize = 100;

/// The name of the variable in which a mapping puts the ref of an event.
const REF: &str = "ref";

/// The repositories that the parts of a start name, and the pinned one.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartRepository {
    pub(crate) trigger: Option<RepositoryContext>,
    pub(crate) request: Option<RequestedRepository>,
    pub(crate) pinned: Option<Pinned>,
}

/// The part of a start that names a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Trigger,
    Workflow,
    Request,
}

impl Part {
    fn shown(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Workflow => "workflow",
            Self::Request => "request",
        }
    }
}

/// The repository of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Chosen {
    location: Location,
    credential: Option<RepositoryCredential>,
    reference: Option<String>,
    ref_from: Option<String>,
}

/// Checks the repository of a workflow or a trigger before it is saved. Only a trigger has an event.
pub(crate) fn check(app: &App, context: &RepositoryContext, has_event: bool) -> Result<()> {
    check_fields(available(app)?.hosts(), context, has_event)
}

/// The repositories of this server. A server without them refuses to save one and to start with one.
fn available(app: &App) -> Result<&Repositories> {
    let repositories = &app.settings.configured.repositories;
    match repositories.why_off() {
        None => Ok(repositories),
        Some(why) => Err(Problem::new(Code::NotAvailable, format!("This server uses no repositories: {why}."))),
    }
}

fn check_fields(hosts: &[Host], context: &RepositoryContext, has_event: bool) -> Result<()> {
    let RepositoryContext { reference, ref_from, credential, .. } = context;
    let location = locate(hosts, context)?;
    if let Some(name) = reference {
        check_ref(name).map_err(|why| Problem::field("repository.ref", why))?;
    }
    if let Some(path) = ref_from {
        if !has_event {
            return Err(Problem::field("repository.refFrom", "only a trigger has an event; write `ref`"));
        }
        if reference.is_some() {
            return Err(Problem::field("repository.refFrom", "give either `ref` or `refFrom`"));
        }
        let mapping = BTreeMap::from([(REF.to_string(), path.clone())]);
        parse_mapping(&mapping).map_err(|problem| Problem::field("repository.refFrom", problem.message))?;
    }
    if let Some(credential) = credential {
        check_credential(credential)?;
        if location.is_none() {
            let message = "it belongs to a repository; name that with `url` or `fullName` beside it";
            return Err(Problem::field("repository.credential", message));
        }
    }
    if location.is_none() && reference.is_none() && ref_from.is_none() {
        return Err(Problem::field("repository", "it names nothing: write `url` or `fullName`, or null for none"));
    }
    Ok(())
}

fn check_credential(RepositoryCredential { secret, user }: &RepositoryCredential) -> Result<()> {
    let reference = SecretReference::read(&Value::map([("secret", secret.as_str().into())]));
    if reference.is_none_or(|reference| reference.is_err()) || secret == SESSION_TOKEN {
        return Err(Problem::field("repository.credential.secret", "it must be the name of a secret"));
    }
    let is_user = |user: &str| {
        (1..=USER_BYTES_MAX).contains(&user.len()) && user.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
    };
    if user.as_deref().is_none_or(is_user) {
        return Ok(());
    }
    let message = format!("it must have 1 to {USER_BYTES_MAX} visible ASCII characters, and no colon");
    Err(Problem::field("repository.credential.user", message))
}

/// The address that a context names.
fn locate(hosts: &[Host], context: &RepositoryContext) -> Result<Option<Location>> {
    let located = match (&context.url, &context.full_name) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(Problem::field("repository", "give either `url` or `fullName`")),
        (Some(url), None) => ("repository.url", Location::of_url(url, hosts)),
        (None, Some(name)) => ("repository.fullName", Location::of_full_name(name, hosts)),
    };
    located.1.map(Some).map_err(|why| Problem::field(located.0, why))
}

/// Chooses the repository of a start. Each field is that of the first part that names it, in the order trigger, workflow,
/// request (first specification, 12.1). A request that names another value than a part before it is refused, so that no
/// start silently runs in another repository than its caller asked for. A credential is used for the repository beside
/// which it is written only, and a ref for that repository, or for any if it has none beside it.
fn choose(hosts: &[Host], parts: [(Part, Option<&RepositoryContext>); 3]) -> Result<Option<Chosen>> {
    let mut located = Vec::new();
    for (part, context) in parts {
        if let Some(context) = context {
            located.push((part, context, locate(hosts, context)?));
        }
    }
    let found = located.iter().find_map(|(part, context, location)| Some((*part, *context, location.clone()?)));
    let Some((first, named, location)) = found else {
        if located.is_empty() {
            return Ok(None);
        }
        let message = "a ref is named, and no repository: name one with `url` or `fullName`";
        return Err(Problem::field("repository", message));
    };
    let of_repository = |other: &Option<Location>| other.as_ref().is_none_or(|other| *other == location);
    let with_ref = located.iter().find(|(_, context, other)| {
        of_repository(other) && (context.reference.is_some() || context.ref_from.is_some())
    });
    for (part, context, other) in located.iter().filter(|(part, ..)| *part == Part::Request) {
        if !of_repository(other) {
            let message = format!(
                "the {} names the repository `{}`, which has precedence; leave `url` and `fullName` out",
                first.shown(),
                location.full_name()
            );
            return Err(Problem::field("repository", message));
        }
        let fixed = with_ref.filter(|(by, fixed, _)| by != part && fixed.reference != context.reference);
        if let Some((by, ..)) = fixed.filter(|_| context.reference.is_some()) {
            let message = format!("the {} names the ref, which has precedence; leave it out", by.shown());
            return Err(Problem::field("repository.ref", message));
        }
    }
    let (reference, ref_from) =
        with_ref.map_or((None, None), |(_, context, _)| (context.reference.clone(), context.ref_from.clone()));
    Ok(Some(Chosen { location, credential: named.credential.clone(), reference, ref_from }))
}

/// Resolves the repository of a start to a commit, which all steps, retries and nodes then use.
pub(crate) async fn pin(
    app: &App,
    caller: &Caller,
    workflow: &Stored<Workflow>,
    mut repository: StartRepository,
    metadata: &Map,
) -> Result<StartRepository> {
    let StartRepository { trigger, request, .. } = &repository;
    let request = request.clone().map(RepositoryContext::from);
    let of_workflow = workflow.body.repository.as_ref();
    if trigger.is_none() && of_workflow.is_none() && request.is_none() {
        return Ok(repository);
    }
    // A start that is refused anyway asks no remote.
    caller.require(Permission::ExecutionsStart)?;
    let organization = caller.organization.clone();
    let read = move |app: &App| Repository::of(app.catalogue(), "").require::<Organization>(&organization);
    if !workflow.body.enabled || !app.run_short(read).await?.body.has(RUNTIME_FEATURE) {
        return Ok(repository);
    }
    let repositories = available(app)?;
    if let Some(request) = &request {
        check_fields(repositories.hosts(), request, false)?;
    }
    let parts = [(Part::Trigger, trigger.as_ref()), (Part::Workflow, of_workflow), (Part::Request, request.as_ref())];
    let Some(chosen) = choose(repositories.hosts(), parts)? else { return Ok(repository) };
    let reference = reference_of(&chosen, metadata)?;
    let credential = chosen.credential.map(|RepositoryCredential { secret, user }| Credential { secret, user });
    let wanted = Wanted { location: &chosen.location, reference: &reference, credential: credential.as_ref() };
    let purpose = Purpose::Start { workflow: Some(workflow.id.clone()) };
    let by = SecretUser { organization: Some(caller.organization.clone()), purpose };
    let pinned = repositories.resolve(wanted, &by).await;
    repository.pinned = Some(pinned.map_err(|failure| unresolved(&chosen.location, &failure))?);
    Ok(repository)
}

/// The ref of a start. One that the event names must be there.
fn reference_of(chosen: &Chosen, metadata: &Map) -> Result<String> {
    let Some(path) = &chosen.ref_from else {
        return Ok(chosen.reference.clone().unwrap_or_else(|| DEFAULT_REF.into()));
    };
    let missing = |why: &str| {
        let message = format!("The event names no ref at `{path}`, so nothing was started: {why}");
        Problem::new(Code::RepositoryUnresolved, message).with(serde_json::json!({ "code": "repository_not_found" }))
    };
    let event = metadata.get("event").and_then(Event::of_value).unwrap_or_default();
    let mapped = event.map(&BTreeMap::from([(REF.to_string(), path.clone())]))?;
    let found = mapped.variables.get(REF);
    let Some(found) = found else {
        return Err(missing(mapped.missing.first().map_or("nothing is there", |missing| &missing.reason)));
    };
    let text = found.as_text().ok_or_else(|| missing(&format!("it is {}, and no text", found.kind())))?;
    check_ref(text).map_err(|why| missing(&why))?;
    Ok(text.to_string())
}

fn unresolved(location: &Location, failure: &Failure) -> Problem {
    let message = format!(
        "The repository `{}` cannot be resolved, so nothing was started: {}",
        location.full_name(),
        failure.message
    );
    // The server is busy, and the repository may be fine.
    let code = if failure.class == Class::RateLimited { Code::RateLimited } else { Code::RepositoryUnresolved };
    Problem::new(code, message).with(serde_json::json!({ "code": failure.code }))
}

/// Adds the repository of a workflow or a trigger to the detail of an audit entry.
pub(crate) fn with_repository(mut detail: Value, repository: Option<&RepositoryContext>) -> Value {
    let stored = repository.and_then(|repository| serde_json::to_string(repository).ok());
    if let (Value::Map(detail), Some(Ok(repository))) = (&mut detail, stored.map(|text| json::data(text.as_bytes()))) {
        detail.insert("repository".into(), repository);
    }
    detail
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "https://github.com/acme/a";
    const B: &str = "https://github.com/acme/b";

    fn context(url: Option<&str>, reference: Option<&str>) -> Option<RepositoryContext> {
        let text = |text: &str| text.to_string();
        Some(RepositoryContext { url: url.map(text), reference: reference.map(text), ..RepositoryContext::default() })
    }

    /// The path and the ref of the choice, or the beginning of the error.
    fn chosen(of: [Option<RepositoryContext>; 3]) -> std::result::Result<Option<(String, Option<String>)>, String> {
        let hosts = Host::parse_all(["github.com"]).unwrap();
        let parts = [Part::Trigger, Part::Workflow, Part::Request];
        let parts = [0, 1, 2].map(|place| (parts[place], of[place].as_ref()));
        let found = choose(&hosts, parts).map_err(|problem| problem.message)?;
        Ok(found.map(|chosen| (chosen.location.full_name().to_string(), chosen.reference)))
    }

    #[test]
    fn trigger_precedes_workflow_precedes_request() {
        let is = |name: &str, reference: Option<&str>| Ok(Some((name.to_string(), reference.map(ToString::to_string))));
        let both = |url, reference| context(Some(url), Some(reference));
        assert_eq!(chosen([None, None, None]), Ok(None));
        assert_eq!(chosen([both(A, "x"), both(B, "y"), None]), is("acme/a", Some("x")));
        assert_eq!(chosen([None, both(B, "y"), None]), is("acme/b", Some("y")));
        assert_eq!(chosen([None, None, both(A, "z")]), is("acme/a", Some("z")));
        // A ref of another repository is not used.
        assert_eq!(chosen([context(Some(A), None), both(B, "y"), None]), is("acme/a", None));
        assert_eq!(chosen([context(Some(A), None), both(A, "y"), None]), is("acme/a", Some("y")));
        assert_eq!(chosen([context(None, Some("x")), both(B, "y"), None]), is("acme/b", Some("x")));
        // A request completes what the others leave open.
        assert_eq!(chosen([None, context(Some(B), None), context(None, Some("z"))]), is("acme/b", Some("z")));
        assert_eq!(chosen([None, both(B, "y"), both(B, "y")]), is("acme/b", Some("y")));
        for (of, word) in [
            ([None, both(B, "y"), context(Some(A), None)], "the workflow names the repository"),
            ([context(Some(A), None), None, context(Some(B), None)], "the trigger names the repository"),
            ([None, both(B, "y"), context(None, Some("z"))], "the workflow names the ref"),
            ([context(None, Some("x")), None, None], "no repository"),
        ] {
            let found = chosen(of);
            assert!(found.as_ref().is_err_and(|why| why.contains(word)), "{word}: {found:?}");
        }
    }

    #[test]
    fn contexts_are_checked_when_they_are_saved() {
        let hosts = Host::parse_all(["github.com"]).unwrap();
        let check = |text: &str, has_event: bool| {
            let context = serde_json::from_str::<RepositoryContext>(text).map_err(|error| error.to_string())?;
            check_fields(&hosts, &context, has_event).map_err(|problem| problem.message)
        };
        for text in [
            r#"{"url": "https://github.com/acme/a.git", "ref": "main", "credential": {"secret": "KEY", "user": "git"}}"#,
            r#"{"fullName": "acme/a", "refFrom": "$.pull_request.head.sha"}"#,
            r#"{"ref": "main"}"#,
        ] {
            assert_eq!(check(text, true), Ok(()), "{text}");
        }
        for (text, word) in [
            ("{}", "names nothing"),
            (r#"{"url": "https://evil.test/a"}"#, "not permitted"),
            (r#"{"url": "https://github.com/a", "fullName": "a/b"}"#, "either"),
            (r#"{"fullName": "acme/a", "ref": "-x"}"#, "a branch, a tag"),
            (r#"{"fullName": "acme/a", "refFrom": "$.x"}"#, "only a trigger"),
            (r#"{"ref": "x", "credential": {"secret": "KEY"}}"#, "belongs to a repository"),
            (r#"{"fullName": "acme/a", "credential": {"secret": "session:token"}}"#, "name of a secret"),
            (r#"{"fullName": "acme/a", "credential": {"secret": "KEY", "user": "a:b"}}"#, "no colon"),
            (r#"{"fullName": "acme/a", "credential": {"secret": "KEY", "value": "x"}}"#, "unknown field"),
            (r#"{"fullName": "acme/a", "submodules": true}"#, "unknown field"),
        ] {
            let found = check(text, false);
            assert!(found.as_ref().is_err_and(|why| why.contains(word)), "{text}: {found:?}");
        }
    }

    #[test]
    fn the_ref_of_an_event_is_a_text_at_its_path() {
        let event = |body: &str| {
            let body = json::data(body.as_bytes()).unwrap();
            Map::from([("event".to_string(), Event { body, ..Event::default() }.to_value())])
        };
        let hosts = Host::parse_all(["github.com"]).unwrap();
        let chosen = Chosen {
            location: Location::of_full_name("acme/a", &hosts).unwrap(),
            credential: None,
            reference: None,
            ref_from: Some("$.head.sha".into()),
        };
        assert_eq!(reference_of(&chosen, &event(r#"{"head": {"sha": "abc"}}"#)).as_deref(), Ok("abc"));
        for body in [r#"{}"#, r#"{"head": {"sha": 7}}"#, r#"{"head": {"sha": "--x"}}"#, r#"{"head": {"sha": null}}"#] {
            let found = reference_of(&chosen, &event(body));
            assert!(found.is_err_and(|problem| problem.code == Code::RepositoryUnresolved), "{body}");
        }
    }
}
