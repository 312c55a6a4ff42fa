/** The policy for calls of workflows: the rules that apply, and the organization's own rules, which can be changed. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { isStale } from '@/api/client';
import { Json } from '@/design/json';
import { Failed, Field, Loading, Notice } from '@/design/parts';
import { useCan } from '@/features/session/queries';
import { rulesOf, rulesText } from './model';
import { policyQuery, putPolicy, type TaggedPolicy } from './queries';

function Form({ policy, restart }: { policy: TaggedPolicy; restart: (message: string) => void }) {
  // Later reads do not reach the form: `If-Match` names the version that the reader saw.
  const [base] = useState(policy);
  const before = rulesText(base.policy.verdicts);
  const [text, setText] = useState(before);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { rules, problem } = rulesOf(text);
  const save = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await putPolicy(rules, base.etag);
      restart('Saved. Executions that start from now on have these rules.');
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={event => {
        event.preventDefault();
        if (!problem && text !== before && !isBusy) void save();
      }}
    >
      <Field
        label="Rules of the organization"
        hint="One rule a line: a class or a pattern of names, a colon, and allow, ask or deny. As `payment: deny`, or `github.delete_*: ask`. They tighten the rules of the server."
        problem={problem}
      >
        {attributes => (
          <textarea
            {...attributes}
            className="input"
            rows={6}
            spellCheck={false}
            value={text}
            onChange={event => setText(event.target.value)}
          />
        )}
      </Field>
      {error !== undefined &&
        (isStale(error) ? (
          <Notice
            tone="bad"
            action={
              <button type="button" className="button small" onClick={() => restart('')}>
                Discard and read the present rules
              </button>
            }
          >
            Your change was not saved: the settings of the organization have changed since you opened them.
          </Notice>
        ) : (
          <Failed error={error} />
        ))}
      <div className="row">
        <button className="button primary" disabled={!!problem || text === before || isBusy}>
          {isBusy ? 'Saving…' : 'Save rules'}
        </button>
      </div>
    </form>
  );
}

export function Policy() {
  const can = useCan();
  const policy = useQuery(policyQuery);
  const [shown, setShown] = useState({ edition: 0, message: '' });
  if (policy.isPending) return <Loading what="the policy" />;
  if (policy.isError) return <Failed error={policy.error} retry={() => void policy.refetch()} />;
  const restart = (message: string) =>
    void policy.refetch().then(() => setShown(({ edition }) => ({ edition: edition + 1, message })));
  return (
    <div className="stack">
      <p className="muted">
        A policy says which calls of workflows run, which wait for an approval, and which fail. The strictest rule of
        all levels decides.
      </p>
      {can('organization:write') && <Form key={shown.edition} policy={policy.data} restart={restart} />}
      <p className="muted" role="status">
        {shown.message}
      </p>
      <section className="card" aria-labelledby="rules-that-apply">
        <div className="card-head">
          <h2 id="rules-that-apply">Rules that apply</h2>
        </div>
        <div className="card-body">
          <Json value={policy.data.policy.effective} />
        </div>
      </section>
    </div>
  );
}
