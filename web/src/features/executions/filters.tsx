/** The filters of the list. Every change is a change of the address. */
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { plain } from '@/design/outside';
import { statusLabel } from '@/design/status';
import { useCan } from '@/features/session/queries';
import { workflowNamesQuery } from '@/features/workflows/queries';
import { SINCE, TRIGGERS, type ListFilter } from './model';

const STATUSES = ['pending', 'running', 'waiting_approval', 'cancel_requested', 'completed', 'failed', 'cancelled'];

/** Pause after the last key before a text becomes part of the address, in milliseconds. */
const TYPING_MS = 250;

interface ChoiceProps {
  label: string;
  value: string | undefined;
  options: [string, string][];
  choose: (value: string) => void;
}

function Choice({ label, value, options, choose }: ChoiceProps) {
  return (
    <select className="input" aria-label={label} value={value ?? ''} onChange={event => choose(event.target.value)}>
      <option value="">{label}: all</option>
      {options.map(([key, name]) => (
        <option key={key} value={key}>
          {name}
        </option>
      ))}
    </select>
  );
}

export function Filters({ filter, change }: { filter: ListFilter; change: (change: Partial<ListFilter>) => void }) {
  const can = useCan();
  const workflows = useQuery({ ...workflowNamesQuery, enabled: can('workflows:read') });
  const [text, setText] = useState(filter.text ?? '');
  useEffect(() => setText(filter.text ?? ''), [filter.text]);
  useEffect(() => {
    if (text === (filter.text ?? '')) return;
    const timer = setTimeout(() => change({ text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, filter.text, change]);
  const names: [string, string][] = (workflows.data ?? []).map(({ id, name }) => [id, plain(name.slice(0, 80))]);
  if (filter.workflow && !names.some(([id]) => id === filter.workflow))
    names.unshift([filter.workflow, filter.workflow]);
  const isFiltered = Object.values(filter).some(value => value);
  return (
    <search className="row wrap">
      <input
        className="input"
        type="search"
        aria-label="Text in id, workflow, error or initiator"
        placeholder="Text in id, workflow, error…"
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <Choice
        label="Status"
        value={filter.status}
        options={STATUSES.map(status => [status, statusLabel(status)])}
        choose={status => change({ status })}
      />
      <Choice label="Workflow" value={filter.workflow} options={names} choose={workflow => change({ workflow })} />
      <Choice
        label="Outcome"
        value={filter.outcome}
        options={[
          ['clean', 'Completed without failures'],
          ['with_failures', 'Completed with failures'],
        ]}
        choose={outcome => change({ outcome })}
      />
      <Choice
        label="Trigger"
        value={filter.trigger}
        options={TRIGGERS.map(name => [name, name])}
        choose={trigger => change({ trigger })}
      />
      <Choice
        label="Time"
        value={filter.since}
        options={Object.entries(SINCE).map(([key, { label }]) => [key, label])}
        choose={since => change({ since })}
      />
      {isFiltered && (
        <button
          type="button"
          className="button plain"
          onClick={() => change({ status: '', workflow: '', outcome: '', trigger: '', text: '', since: '' })}
        >
          Clear filters
        </button>
      )}
    </search>
  );
}
