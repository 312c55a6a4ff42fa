//! Budgets for a day or a month: those that apply to an execution, and the answers to its requests for leases.

use mainspring_kernel::{
    budget::{Budget, Limits, NAMES, Usage, cost_of},
    hash::Hash,
    key::ExecutionKey,
    leases::LeaseChange,
    limits::{BUDGET_MAX, BUDGET_WARN_PERCENT_DEFAULT},
    plan::RuleError,
    record::Payload,
    time::rfc3339,
    value::Value,
};
use mainspring_store::{ExecutionRow, LeaseOutcome, LeaseRequest, PeriodAccount, PeriodBudget, Store, StoreError};

use crate::limits::LEASE_OF_BUDGETS_MS_MAX;

const DAY_MS: u64 = 86_400_000;

/// The length of a period of a budget, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month to that of the next.
    Month,
}

impl Period {
    /// Both periods.
    pub const ALL: [Self; 2] = [Self::Day, Self::Month];

    /// The name in settings and in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// Returns `None` unless the name is `day` or `month`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|period| period.name() == name)
    }

    /// Returns the period that contains a time, as `2026-11-26` or `2026-11`.
    pub fn at(self, now_ms: u64) -> String {
        let mut date = rfc3339(now_ms);
        date.truncate(match self {
            Self::Day => "2026-11-26".len(),
            Self::Month => "2026-11".len(),
        });
        date
    }
}

/// A budget of a workflow or an organization for each period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeriodicBudget {
    /// The workflow: its id in the catalogue of its organization, else its name. `None` for the organization.
    pub workflow: Option<String>,
    /// A day or a month, in UTC.
    pub period: Period,
    /// The limits.
    pub budget: Budget,
    /// Time at which admins set it, in milliseconds since 1970. `None` for a budget of a settings file.
    pub set_at: Option<u64>,
}

/// The budgets for the same workflow and period together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveBudget {
    /// The strictest limits. People are asked only if each of the budgets permits it.
    pub budget: PeriodicBudget,
    /// The limits of the settings file.
    pub of_settings: Limits,
}

impl EffectiveBudget {
    /// Identifies the limits and the last time at which one was set. A raise does not lift another edition.
    pub fn edition(&self) -> u64 {
        let PeriodicBudget { budget, set_at, .. } = &self.budget;
        let hash = Hash::of(format!("{:?} {} {set_at:?}", budget.limits.0, budget.asks).as_bytes());
        // Stores have signed numbers.
        hash.0.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)) >> 1
    }

    /// Returns the budget in the period that contains a time.
    pub fn in_period(&self, now_ms: u64) -> PeriodBudget {
        let PeriodicBudget { workflow, period, budget, .. } = &self.budget;
        PeriodBudget {
            workflow: workflow.clone().unwrap_or_default(),
            period: period.at(now_ms),
            limits: budget.limits,
            warn_percent: budget.warn_percent,
            edition: self.edition(),
        }
    }

    /// Returns the source of a limit: `settings` if the one of the settings file counts, else `stored`.
    pub fn source(&self, quantity: usize) -> &'static str {
        let own = self.of_settings.0[quantity];
        if own.is_some() && own == self.budget.budget.limits.0[quantity] { "settings" } else { "stored" }
    }
}

/// The keys of a budget in a settings file.
const KEYS: [&str; 9] =
    ["period", "workflow", "tokens", "cost", "modelCalls", "toolCalls", "timeMs", "onExceeded", "warnPercent"];

/// The number of budgets in a settings file.
const BUDGETS_MAX: usize = 100;

/// Reads `budgets` of a settings file: a list of `{period, workflow, tokens, cost, modelCalls, toolCalls, timeMs,
/// onExceeded, warnPercent}`. All errors are returned; null is an empty list.
pub fn read(value: &Value) -> Result<Vec<PeriodicBudget>, Vec<RuleError>> {
    let list = match value {
        Value::Null => &[][..],
        Value::List(list) if list.len() <= BUDGETS_MAX => list,
        Value::List(list) => {
            let message = format!("{} budgets are more than {BUDGETS_MAX}", list.len());
            return Err(vec![error("budgets".into(), message, "remove some")]);
        }
        other => {
            let help = "write `- {period: month, tokens: 5000000}`";
            return Err(vec![error("budgets".into(), format!("this is {}, not a list", other.kind()), help)]);
        }
    };
    let (mut budgets, mut errors) = (Vec::new(), Vec::new());
    for (place, value) in list.iter().enumerate() {
        match read_one(&format!("budgets[{place}]"), value) {
            Ok(budget) => budgets.push(budget),
            Err(found) => errors.extend(found),
        }
    }
    if errors.is_empty() { Ok(budgets) } else { Err(errors) }
}

fn error(path: String, message: String, help: &str) -> RuleError {
    RuleError { path, message, help: help.into() }
}

fn read_one(path: &str, value: &Value) -> Result<PeriodicBudget, Vec<RuleError>> {
    let Some(map) = value.as_map() else {
        let help = "write `{period: month, tokens: 5000000}`";
        return Err(vec![error(path.into(), format!("this is {}, not a map", value.kind()), help)]);
    };
    let mut errors = Vec::new();
    for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        let help = format!("the keys are {}", KEYS.join(", "));
        errors.push(error(format!("{path}.{key}"), "this key is not known".into(), &help));
    }
    let mut refuse = |key: &str, help: &str| {
        errors.push(error(format!("{path}.{key}"), "this value is not possible".into(), help));
    };
    let period = map.get("period").and_then(Value::as_text).and_then(Period::parse);
    if period.is_none() {
        refuse("period", "write `day` or `month`");
    }
    let workflow = map.get("workflow").map(Value::as_text);
    if workflow.is_some_and(|workflow| workflow.is_none_or(str::is_empty)) {
        refuse("workflow", "write the name of a workflow, or leave it out for all workflows");
    }
    let limits = NAMES.map(|name| {
        let limit = map.get(name)?;
        let limit = match name {
            "cost" => cost_of(limit).filter(|cost| *cost > 0),
            "toolCalls" => limit.as_u64().filter(|limit| *limit <= BUDGET_MAX),
            _ => limit.as_u64().filter(|limit| (1..=BUDGET_MAX).contains(limit)),
        };
        if limit.is_none() {
            refuse(name, "write a number above 0");
        }
        limit
    });
    let asks = match map.get("onExceeded").map(Value::as_text) {
        None | Some(Some("fail")) => false,
        Some(Some("ask")) => true,
        Some(_) => {
            refuse("onExceeded", "write `fail` or `ask`");
            false
        }
    };
    let warn_percent = map.get("warnPercent").map(|percent| percent.as_u64().filter(|it| (1..=100).contains(it)));
    if warn_percent == Some(None) {
        refuse("warnPercent", "write a number from 1 to 100");
    }
    let limits = Limits(limits);
    if errors.is_empty() && limits.is_empty() {
        let help = "set one of tokens, cost, modelCalls, toolCalls and timeMs";
        errors.push(error(path.into(), "this budget limits nothing".into(), help));
    }
    let warn_percent = warn_percent.flatten().map_or(BUDGET_WARN_PERCENT_DEFAULT, |percent| percent as u32);
    let budget = Budget { limits, asks, warn_percent };
    match period.filter(|_| errors.is_empty()) {
        Some(period) => {
            Ok(PeriodicBudget { workflow: workflow.flatten().map(Into::into), period, budget, set_at: None })
        }
        None => Err(errors),
    }
}

/// Provides the budgets of organizations.
pub trait PeriodBudgets: Send + Sync {
    /// Returns the budgets of an organization and its workflows; without one, those of a command line. A failed read is
    /// repeated.
    fn budgets(&self, store: &dyn Store, organization: Option<&str>) -> Result<Vec<PeriodicBudget>, String>;
}

/// A request of an execution for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLease {
    /// The execution whose call waits.
    pub execution: ExecutionKey,
    /// The root of its tree, whose workflow pays as well.
    pub root: ExecutionKey,
    /// Number of the lease within the execution, from 1.
    pub number: u32,
    /// The amounts that the first call needs.
    pub amount: Usage,
    /// The time of the execution, which is ahead of the clock after the clock was set back. A lease that ends before this
    /// time would be requested again without end.
    pub at_ms: u64,
}

/// The answer to a request for a lease.
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseAnswer {
    /// The answer as an input. `None` if the execution has ended or has a later lease, and needs no answer.
    pub change: Option<LeaseChange>,
    /// The executions to which no budget applies until the end of the lease.
    pub free: Option<Unbudgeted>,
}

/// Executions to which no budget applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbudgeted {
    /// The organization; empty for executions of a command line.
    pub organization: String,
    /// The workflow, for executions that are no children. `None` for all executions of the organization.
    pub workflow: Option<String>,
    /// The end, in milliseconds since 1970.
    pub until: u64,
}

/// The answer to a request of an execution to which no budget applies.
pub(crate) fn unlimited(until: u64) -> LeaseChange {
    LeaseChange::Granted { amount: Limits::default(), until, notice: Payload::Known(Value::List(Vec::new())) }
}

/// Requests a lease from the store.
pub fn lease(
    store: &dyn Store,
    budgets: Option<&dyn PeriodBudgets>,
    wanted: &WantedLease,
    now_ms: u64,
) -> Result<LeaseAnswer, String> {
    let said = |error: StoreError| error.to_string();
    let Some(row) = store.execution(wanted.execution).map_err(said)? else {
        return Ok(LeaseAnswer { change: None, free: None });
    };
    let root = match wanted.root == wanted.execution {
        true => None,
        false => store.execution(wanted.root).map_err(said)?,
    };
    let rows: Vec<&ExecutionRow> = [&row].into_iter().chain(root.as_ref()).collect();
    let all = match budgets {
        Some(budgets) => budgets.budgets(store, row.organization.as_deref())?,
        None => Vec::new(),
    };
    let has_budgets = !all.is_empty();
    let applying = merged(all.into_iter().filter(|budget| applies(budget, &rows)));
    // The time of this execution may be ahead of the clock. Only its own leases follow it.
    let at_ms = now_ms.max(wanted.at_ms);
    let until = end_of_lease(at_ms);
    if applying.is_empty() {
        let organization = row.organization.clone().unwrap_or_default();
        let free = |workflow| Unbudgeted { organization, workflow, until: end_of_lease(now_ms) };
        let free = match (has_budgets, root) {
            (false, _) => Some(free(None)),
            (true, None) => subject(&row).map(|workflow| free(Some(workflow.to_owned()))),
            // The workflow of the root decides as well, and only the store knows it.
            (true, Some(_)) => None,
        };
        return Ok(LeaseAnswer { change: Some(unlimited(until)), free });
    }
    let request = LeaseRequest {
        execution: wanted.execution,
        number: wanted.number,
        amount: wanted.amount,
        organization: row.organization.clone().unwrap_or_default(),
        budgets: applying.iter().map(|budget| budget.in_period(at_ms)).collect(),
    };
    let outcome = store.catalogue().lease_budget(&request).map_err(said)?;
    let change = change_of(outcome, &request, (&applying, &rows), until);
    Ok(LeaseAnswer { change, free: None })
}

/// The end of a lease that begins now. The rest of the day may be shorter, and a budget that is set in the meantime counts
/// from the next lease on.
fn end_of_lease(now_ms: u64) -> u64 {
    (now_ms + LEASE_OF_BUDGETS_MS_MAX).min((now_ms / DAY_MS + 1) * DAY_MS)
}

/// Converts the answer of the store. `None` if the execution needs none.
fn change_of(
    outcome: LeaseOutcome,
    request: &LeaseRequest,
    (applying, rows): (&[EffectiveBudget], &[&ExecutionRow]),
    until: u64,
) -> Option<LeaseChange> {
    let shown = |place: usize, account: &PeriodAccount| {
        let budget = &request.budgets[place];
        let name = rows.iter().find(|row| subject(row) == Some(budget.workflow.as_str()));
        let name = name.and_then(|row| row.names.workflow_name.clone().or_else(|| row.workflow.clone()));
        describe(budget, name, account)
    };
    match outcome {
        LeaseOutcome::Stale => None,
        LeaseOutcome::Granted { amount, accounts } => {
            let of_budget = |(place, (account, warns)): (usize, &(PeriodAccount, bool))| {
                let mut shown = shown(place, account);
                shown.extend(warns.then_some(("warns", true.into())));
                Value::map(shown)
            };
            let shown = accounts.iter().enumerate().map(of_budget).collect();
            Some(LeaseChange::Granted { amount, until, notice: Payload::Known(Value::List(shown)) })
        }
        LeaseOutcome::Refused { budget, lacks, account } => {
            let raise = raise(&request.budgets[budget], &account, &lacks, &request.amount);
            let effective = &applying[budget];
            let sources: Vec<_> = lacks.iter().map(|place| effective.source(*place)).collect();
            let source = if sources.contains(&"settings") { "settings" } else { "stored" };
            let lacks = lacks.iter().map(|place| Value::from(NAMES[*place])).collect();
            let mut notice = shown(budget, &account);
            notice.extend([
                ("asks", effective.budget.budget.asks.into()),
                ("edition", format!("{:x}", effective.edition()).as_str().into()),
                ("source", source.into()),
                ("lacks", Value::List(lacks)),
                ("raise", raise.to_value()),
                ("raisedTo", account.raised.plus(raise).to_value()),
            ]);
            Some(LeaseChange::Refused { notice: Payload::Known(Value::map(notice)) })
        }
    }
}

/// The name by which a budget refers to the workflow of an execution.
pub fn subject(row: &ExecutionRow) -> Option<&str> {
    match row.organization {
        Some(_) => row.workflow_id.as_deref(),
        None => row.workflow.as_deref(),
    }
}

fn applies(budget: &PeriodicBudget, rows: &[&ExecutionRow]) -> bool {
    let workflow = budget.workflow.as_deref();
    workflow.is_none() || rows.iter().any(|row| subject(row) == workflow)
}

/// Combines the budgets for the same workflow and period: the strictest limit counts, and people are asked only if each
/// of them permits it.
pub fn merged(budgets: impl Iterator<Item = PeriodicBudget>) -> Vec<EffectiveBudget> {
    let mut merged: Vec<EffectiveBudget> = Vec::new();
    for new in budgets {
        let of_settings = if new.set_at.is_none() { new.budget.limits } else { Limits::default() };
        let is_same =
            |old: &&mut EffectiveBudget| (&old.budget.workflow, old.budget.period) == (&new.workflow, new.period);
        match merged.iter_mut().find(is_same) {
            None => merged.push(EffectiveBudget { budget: new, of_settings }),
            Some(EffectiveBudget { budget: old, of_settings: of_old }) => {
                let (limits, asks) = (old.budget.limits.min(new.budget.limits), old.budget.asks && new.budget.asks);
                let warn_percent = old.budget.warn_percent.min(new.budget.warn_percent);
                old.budget = Budget { limits, asks, warn_percent };
                old.set_at = old.set_at.max(new.set_at);
                *of_old = of_old.min(of_settings);
            }
        }
    }
    // All requests lock accounts in one order.
    let key = |budget: &EffectiveBudget| (budget.budget.workflow.clone(), budget.budget.period);
    merged.sort_by_key(key);
    merged
}

/// Returns the amounts to ask for: each lacking quantity is raised by its limit, or by what is missing if that is more.
fn raise(budget: &PeriodBudget, account: &PeriodAccount, lacks: &[usize], need: &Usage) -> Usage {
    let (left, used, need) = (account.left(budget).0, account.used.amounts(), need.amounts());
    let (own, raised) = (budget.limits.0, account.raised.amounts());
    let mut raise = [0; NAMES.len()];
    for place in lacks.iter().copied() {
        let own = own[place].unwrap_or_default();
        // Receipts may have passed the limit.
        let beyond = used[place].saturating_sub(own.saturating_add(raised[place]));
        let missing = need[place].saturating_sub(left[place].unwrap_or_default()).saturating_add(beyond);
        raise[place] = missing.max(own);
    }
    Usage::of_amounts(raise)
}

fn describe(budget: &PeriodBudget, name: Option<String>, account: &PeriodAccount) -> Vec<(&'static str, Value)> {
    let raised = account.raised.amounts();
    let limits = std::array::from_fn(|place| Some(budget.limits.0[place]?.saturating_add(raised[place])));
    let mut shown = vec![
        ("period", budget.period.as_str().into()),
        ("used", account.used.to_value()),
        ("limits", Limits(limits).to_value()),
        ("left", account.left(budget).to_value()),
    ];
    match budget.workflow.as_str() {
        "" => shown.push(("budget", "organization".into())),
        workflow => {
            shown.push(("budget", "workflow".into()));
            shown.push(("workflow", workflow.into()));
            shown.extend(name.map(|name| ("workflowName", name.into())));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_a_day_or_a_month_in_utc() {
        // 2026-11-30T23:59:59.999Z and the millisecond after it.
        let last = mainspring_kernel::time::parse_rfc3339("2026-11-30T23:59:59.999Z").unwrap();
        assert_eq!(Period::ALL.map(|period| period.at(last)), ["2026-11-30", "2026-11"]);
        assert_eq!(Period::ALL.map(|period| period.at(last + 1)), ["2026-12-01", "2026-12"]);
    }

    #[test]
    fn budgets_are_read_and_each_mistake_has_its_place() {
        let value = |text: &str| mainspring_kernel::json::value(text.as_bytes()).unwrap();
        let found = read(&value(r#"[{"period": "day", "workflow": "w", "cost": 2.5, "onExceeded": "ask"}]"#)).unwrap();
        let budget =
            Budget { limits: Limits([None, Some(2_500_000_000), None, None, None]), asks: true, warn_percent: 80 };
        assert_eq!(found, [PeriodicBudget { workflow: Some("w".into()), period: Period::Day, budget, set_at: None }]);
        for (text, place) in [
            ("{}", "budgets"),
            ("[7]", "budgets[0]"),
            (r#"[{"period": "month"}]"#, "budgets[0]"),
            (r#"[{"period": "year", "tokens": 1}]"#, "budgets[0].period"),
            (r#"[{"period": "day", "tokens": 0}]"#, "budgets[0].tokens"),
            (r#"[{"period": "day", "timeMs": 0}]"#, "budgets[0].timeMs"),
            (r#"[{"period": "day", "modelCalls": -1}]"#, "budgets[0].modelCalls"),
            (r#"[{"period": "day", "toolCalls": 1000000000001}]"#, "budgets[0].toolCalls"),
            (r#"[{"period": "day", "cost": 1e300}]"#, "budgets[0].cost"),
            (r#"[{"period": "day", "tokens": 1, "onExceeded": "stop"}]"#, "budgets[0].onExceeded"),
            (r#"[{"period": "day", "tokens": 1, "warnPercent": 101}]"#, "budgets[0].warnPercent"),
            (r#"[{"period": "day", "tokens": 1, "workflow": ""}]"#, "budgets[0].workflow"),
        ] {
            assert_eq!(read(&value(text)).unwrap_err()[0].path, place, "{text}");
        }
        assert_eq!(read(&Value::Null), Ok(vec![]));
    }

    #[test]
    fn the_strictest_of_two_budgets_for_one_period_counts() {
        let budget = |tokens, asks, set_at| PeriodicBudget {
            workflow: None,
            period: Period::Month,
            budget: Budget { limits: Limits([tokens, None, None, None, None]), asks, ..Budget::default() },
            set_at,
        };
        let of = |budgets: [PeriodicBudget; 3]| merged(budgets.into_iter()).remove(0);
        let effective = of([budget(Some(10), true, Some(7)), budget(Some(5), false, None), budget(None, true, None)]);
        assert_eq!(effective.budget, budget(Some(5), false, Some(7)));
        assert_eq!((effective.source(0), effective.source(1)), ("settings", "stored"));
        let again = of([budget(Some(10), true, Some(8)), budget(Some(5), false, None), budget(None, true, None)]);
        assert_ne!(effective.edition(), again.edition(), "a budget that is set again is another edition");
        assert!(again.edition() <= i64::MAX as u64);
    }
}
