/** The scenarios of a workflow: its tests, which run on the page and before a proposal is applied. */
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { isStale, type ScenarioResults, type Workflow } from '@/api/client';
import { Empty, Failed, Field, Loading, Notice } from '@/design/parts';
import { Outside } from '@/design/text';
import { FIRST, runScenarios, saveScenarios, scenariosQuery, type TaggedScenarios } from './scenarios';

const FILE_NAME = /^[A-Za-z0-9._-]{1,100}$/;

export function ScenariosView({ workflow, mayChange }: { workflow: Workflow; mayChange: boolean }) {
  const stored = useQuery(scenariosQuery(workflow.id));
  if (stored.isPending) return <Loading what="scenarios" />;
  if (stored.isError) return <Failed error={stored.error} retry={() => void stored.refetch()} />;
  const reload = async () => (await stored.refetch()).data ?? stored.data;
  return <Scenarios workflow={workflow} mayChange={mayChange} stored={stored.data} reload={reload} />;
}

interface ScenariosProps {
  workflow: Workflow;
  mayChange: boolean;
  stored: TaggedScenarios;
  reload: () => Promise<TaggedScenarios>;
}

function Scenarios({ workflow, mayChange, stored, reload }: ScenariosProps) {
  // The files as they were when the form began; later reads do not replace what was typed.
  const [base, setBase] = useState(stored);
  const [files, setFiles] = useState(stored.files);
  const [chosen, setChosen] = useState(Object.keys(stored.files)[0] ?? '');
  const [name, setName] = useState('');
  const [results, setResults] = useState<ScenarioResults>();
  const [error, setError] = useState<unknown>();
  const [state, setState] = useState('');
  const names = Object.keys(files);
  const text = files[chosen] ?? '';
  const isChanged = JSON.stringify(files) !== JSON.stringify(base.files);
  const act = async (said: string, work: () => Promise<string>) => {
    setError(undefined);
    setState(said);
    try {
      setState(await work());
    } catch (failure) {
      setError(failure);
      setState('');
    }
  };
  const restart = async () => {
    const now = await reload();
    setBase(now);
    setFiles(now.files);
    setChosen(before => (before in now.files ? before : (Object.keys(now.files)[0] ?? '')));
    setError(undefined);
  };
  const run = () =>
    act('Running…', async () => {
      setResults(undefined);
      const ran = await runScenarios(workflow.id, text);
      setResults(ran);
      return `${ran.passed} passed, ${ran.failed} failed.`;
    });
  const save = () =>
    act('Saving…', async () => {
      await saveScenarios(workflow.id, base.etag, files);
      await restart();
      return 'Saved.';
    });
  const add = () => {
    setFiles({ ...files, [name]: FIRST });
    setChosen(name);
    setName('');
  };
  const remove = () => {
    const left = Object.fromEntries(Object.entries(files).filter(([file]) => file !== chosen));
    setFiles(left);
    setChosen(Object.keys(left)[0] ?? '');
    setResults(undefined);
  };
  return (
    <div className="stack">
      {names.length === 0 && <Empty>The workflow has no scenarios. A proposal is applied only if they hold.</Empty>}
      {names.length > 0 && (
        <>
          <Field label="File">
            {attributes => (
              <select
                {...attributes}
                className="input"
                value={chosen}
                onChange={event => {
                  setChosen(event.target.value);
                  setResults(undefined);
                }}
              >
                {names.map(file => (
                  <option key={file}>{file}</option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Scenarios" hint="A path as `definition` means the definition of this workflow.">
            {attributes => (
              <textarea
                {...attributes}
                className="input"
                rows={18}
                spellCheck={false}
                readOnly={!mayChange}
                value={text}
                onChange={event => setFiles({ ...files, [chosen]: event.target.value })}
              />
            )}
          </Field>
        </>
      )}
      {error !== undefined &&
        (isStale(error) ? (
          <Notice
            tone="bad"
            action={
              <button type="button" className="button small" onClick={() => void restart()}>
                Discard and read the present scenarios
              </button>
            }
          >
            Your change was not saved: the scenarios have changed since you opened them.
          </Notice>
        ) : (
          <Failed error={error} />
        ))}
      <div className="row wrap">
        {names.length > 0 && (
          <button type="button" className="button primary" disabled={state.endsWith('…')} onClick={() => void run()}>
            Run scenarios
          </button>
        )}
        {mayChange && (
          <button
            type="button"
            className="button"
            disabled={!isChanged || state.endsWith('…')}
            onClick={() => void save()}
          >
            Save scenarios
          </button>
        )}
        {mayChange && names.length > 0 && (
          <button type="button" className="button danger" onClick={remove}>
            Remove file
          </button>
        )}
        <span className="muted" role="status">
          {state}
        </span>
      </div>
      {mayChange && (
        <form
          className="row wrap"
          onSubmit={event => {
            event.preventDefault();
            add();
          }}
        >
          <label className="row">
            New file{' '}
            <input
              className="input"
              value={name}
              placeholder="release.scenario.yaml"
              onChange={event => setName(event.target.value)}
            />
          </label>
          <button className="button" disabled={!FILE_NAME.test(name) || name in files}>
            Add file
          </button>
        </form>
      )}
      {results && <Results results={results} />}
    </div>
  );
}

function Results({ results }: { results: ScenarioResults }) {
  return (
    <section className="card" aria-labelledby="results">
      <div className="card-head">
        <h2 id="results">Results</h2>
      </div>
      <ul className="card-body stack">
        {results.cases.map((one, index) => (
          <li key={index}>
            <span className={`status tone-${one.ok ? 'ok' : 'bad'}`}>{one.ok ? 'passed' : 'failed'}</span>{' '}
            <Outside text={one.name} max={200} />{' '}
            <span className="muted small">{one.modes.length === 1 ? '1 mode' : `${one.modes.length} modes`}</span>
            {[...one.failures, ...one.warnings].map((said, at) => (
              <pre key={at} className="violation">
                <Outside text={said} max={4000} />
              </pre>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
