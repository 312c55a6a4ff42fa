import sys
def sub(p,a,b,c=1):
    s=open(p).read(); assert s.count(a)>=1,(p,a); s=s.replace(a,b,c); open(p,'w').write(s)
which=sys.argv[1]
S='crates/server/src/services/'
if which=='A':
    # store: statements without subscriptions; rows that do not keep the position
    sub('crates/store/src/sqlite/commit.rs','fences.has_subscriptions = has_subscriptions;','fences.has_subscriptions = has_subscriptions || true;')
    sub('crates/store/src/postgres/commit.rs','locked.has_subscriptions = columns::column(found, 2)?;','locked.has_subscriptions = columns::column::<bool>(found, 2)? || true;')
    # server
    sub(S+'events/delivery.rs','("followRedirects", false.into())','("followRedirects", true.into())')
    sub(S+'prompts/queue.rs','if queue.waiting >= PROMPTS_WAITING_MAX {','if queue.waiting >= PROMPTS_WAITING_MAX + 500 {')
    sub(S+'prompts/queue.rs','if state.runs.iter().any(is_known) || own','if own')
    sub(S+'prompts/requests.rs','if !caller.may_act_for(&trigger.body.user) {','if false && !caller.may_act_for(&trigger.body.user) {')
    sub(S+'prompts/requests.rs','redelivery_of: Some(of.clone()),','redelivery_of: None,')
    sub(S+'prompts/sender.rs','let owns = owner(app)?;','let owns = |_: &str| true; let _ = owner(app)?;')
    sub(S+'save_trigger.rs','if after.config.prompt().is_some() == after.workflow.is_some() {','if false {')
    sub(S+'scheduler.rs','owner_of(app, &organization, &trigger)?.require(Permission::ExecutionsStart)','Ok(drop(owner_of(app, &organization, &trigger).map(|owner| owner.require(Permission::ExecutionsStart))))')
    # events
    sub(S+'events/failures.rs','state.paused = reason.map(','state.paused = None.or(reason.filter(|_| false)).map(')
    sub(S+'events/sender.rs','events.retain(|event| is_selected && selects(types, &event.event_type));','events.retain(|event| is_selected || selects(types, &event.event_type));')
    sub(S+'events/sender.rs','if counts && store.event_queue()','if false && counts && store.event_queue()')
    sub(S+'events/delivery.rs','filter(|previous| previous.until > now_ms)','filter(|previous| previous.until < now_ms)')
    sub(S+'events/save_subscription.rs','SUBSCRIPTIONS_PER_ORGANIZATION_MAX {\n        return Ok(());','SUBSCRIPTIONS_PER_ORGANIZATION_MAX + 9 {\n        return Ok(());')
