/** Tool servers and models of the settings file, each with a check. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Failure, Model, ModelCheck, Tool, ToolServer, ToolServerCheck } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Json } from '@/design/json';
import { Empty, Failed, Loading, Notice } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { durationText } from '@/design/time';
import { useCan } from '@/features/session/queries';
import { Table } from './parts';
import { checkModel, checkToolServer, modelsQuery, toolServersQuery } from './queries';

function Problem({ error }: { error: unknown }) {
  const { code, message } = (error ?? {}) as Failure;
  return (
    <Notice tone="bad">
      <code>{code ?? 'failed'}</code> <Outside text={message ?? ''} max={2000} />
    </Notice>
  );
}

const TONES: Record<string, string> = { allow: 'ok', ask: 'wait', deny: 'bad' };

function ToolRow({ tool }: { tool: Tool }) {
  const [isOpen, setOpen] = useState(false);
  const description = tool.description as { title?: string; description?: string };
  return (
    <>
      <tr>
        <td>
          <code>
            <Name text={tool.name} />
          </code>
        </td>
        <td>
          {tool.class} <span className="muted small">({tool.classSource})</span>
        </td>
        <td>
          <span className={`status tone-${TONES[tool.verdict] ?? 'wait'}`}>{tool.verdict}</span>
        </td>
        <td>
          <Outside text={description.title ?? description.description ?? ''} max={200} />
        </td>
        <td>
          <button
            type="button"
            className="button small"
            aria-expanded={isOpen}
            aria-label={`Schema of ${tool.name}`}
            onClick={() => setOpen(!isOpen)}
          >
            Schema
          </button>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={5}>
            <Json value={tool.description} />
          </td>
        </tr>
      )}
    </>
  );
}

function Tools({ check }: { check: ToolServerCheck }) {
  if (!check.ok) return <Problem error={check.error} />;
  return (
    <div className="stack">
      <p className="muted" role="status">
        It answered in {durationText(check.durationMs)} with {check.tools.length}{' '}
        {check.tools.length === 1 ? 'tool' : 'tools'}. Names and descriptions are the server&apos;s.
      </p>
      {check.tools.length > 0 && (
        <Table label="Tools" heads={['Tool', 'Class', 'Verdict', 'Description', '']}>
          {check.tools.map(tool => (
            <ToolRow key={tool.name} tool={tool} />
          ))}
        </Table>
      )}
    </div>
  );
}

function ServerCard({ server }: { server: ToolServer }) {
  const can = useCan();
  const check = useMutation({ mutationFn: () => checkToolServer(server.name) });
  return (
    <section className="card" aria-label={`Tool server ${server.name}`}>
      <div className="card-head">
        <h2>
          <Name text={server.name} />
        </h2>
        <span className="muted">
          {server.transport} <Name text={server.address} />
        </span>
        <span className="spacer" />
        {can('workflows:write') && (
          <button
            type="button"
            className="button small"
            aria-label={`Check ${server.name}`}
            disabled={check.isPending}
            onClick={() => check.mutate()}
          >
            {check.isPending ? 'Checking…' : 'Check'}
          </button>
        )}
      </div>
      {(check.isError || check.data) && (
        <div className="card-body">
          {check.isError && <Failed error={check.error} />}
          {check.data && <Tools check={check.data} />}
        </div>
      )}
    </section>
  );
}

export function ToolServers() {
  const servers = useQuery(toolServersQuery);
  if (servers.isPending) return <Loading what="tool servers" />;
  if (servers.isError) return <Failed error={servers.error} retry={() => void servers.refetch()} />;
  const { toolServers, error } = servers.data;
  return (
    <div className="stack">
      <p className="muted">
        Tool servers are in the settings file of the server, under <code>mcpServers</code>. A check connects to one, and
        lists its tools.
      </p>
      {error && <Problem error={{ code: 'tool_settings_invalid', message: error }} />}
      {toolServers.length === 0 && !error && <Empty>No tool server is configured.</Empty>}
      {toolServers.map(server => (
        <ServerCard key={server.name} server={server} />
      ))}
    </div>
  );
}

function Answer({ check }: { check: ModelCheck }) {
  if (!check.ok) return <Problem error={check.error} />;
  return (
    <Notice tone="ok">
      It answered in {durationText(check.durationMs)}: <Outside text={check.text ?? ''} max={600} />
    </Notice>
  );
}

export function Models() {
  const can = useCan();
  const models = useQuery(modelsQuery);
  const [asked, setAsked] = useState<Model | null>(null);
  const [checked, setChecked] = useState<{ name: string; check: ModelCheck } | null>(null);
  if (models.isPending) return <Loading what="models" />;
  if (models.isError) return <Failed error={models.error} retry={() => void models.refetch()} />;
  const { models: listed, error } = models.data;
  const mayCheck = can('organization:write');
  return (
    <div className="stack">
      <p className="muted">
        Models are in the settings file of the server, under <code>models</code>. Those that serve your organization are
        listed.
      </p>
      {error && <Problem error={{ code: 'model_unknown', message: error }} />}
      {listed.length === 0 && !error ? (
        <Empty>No model is configured for this organization.</Empty>
      ) : (
        <Table label="Models" heads={['Name', 'Provider', 'Model', 'Address', 'Key', ...(mayCheck ? [''] : [])]}>
          {listed.map(model => (
            <tr key={model.name}>
              <td>
                <code>
                  <Name text={model.name} />
                </code>{' '}
                {model.default && <span className="muted small">default</span>}
              </td>
              <td>{model.provider}</td>
              <td>
                <Name text={model.model} />
              </td>
              <td>{model.address ? <Name text={model.address} /> : <span className="muted">scripted</span>}</td>
              <td>{model.hasKey ? 'yes' : 'no'}</td>
              {mayCheck && (
                <td>
                  <button
                    type="button"
                    className="button small"
                    aria-label={`Check ${model.name}`}
                    onClick={() => setAsked(model)}
                  >
                    Check…
                  </button>
                </td>
              )}
            </tr>
          ))}
        </Table>
      )}
      {checked && (
        <>
          <h2>
            Check of <Name text={checked.name} />
          </h2>
          <Answer check={checked.check} />
        </>
      )}
      {asked && (
        <ActionDialog
          title="Check the model?"
          action="Ask it"
          isOpen
          onClose={() => setAsked(null)}
          act={async () => setChecked({ name: asked.name, check: await checkModel(asked.name) })}
        >
          <p>
            <Name text={asked.name} /> gets one short question, which costs a few tokens.
          </p>
        </ActionDialog>
      )}
    </div>
  );
}
