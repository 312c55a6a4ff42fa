/** Tokens: those of the reader, and for admins all of the organization. The text of a token is shown once. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Permission, Token } from '@/api/client';
import { ActionDialog, Dialog } from '@/design/dialog';
import { CopyButton, Failed, Field, Loading, Notice } from '@/design/parts';
import { Name } from '@/design/text';
import { Ago, At } from '@/design/time';
import { useCan, useMe } from '@/features/session/queries';
import { More, Table } from './parts';
import { createToken, revokeToken, tokensQuery } from './queries';

const DAY_MS = 86_400_000;

const LIFETIMES: [string, number | null][] = [
  ['30 days', 30],
  ['90 days', 90],
  ['1 year', 365],
  ['Does not expire', null],
];

function CreateDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (token: string) => void }) {
  const me = useMe();
  const can = useCan();
  const [name, setName] = useState('');
  const [user, setUser] = useState(me?.userId ?? '');
  const [days, setDays] = useState('30');
  const [scopes, setScopes] = useState<ReadonlySet<Permission>>(new Set());
  const toggle = (scope: Permission) => {
    const next = new Set(scopes);
    if (!next.delete(scope)) next.add(scope);
    setScopes(next);
  };
  const act = async () => {
    const expiresAt = days === '' ? {} : { expiresAt: new Date(Date.now() + Number(days) * DAY_MS).toISOString() };
    const userId = user && user !== me?.userId ? { userId: user } : {};
    onCreated(
      await createToken({
        name: name.trim(),
        ...expiresAt,
        ...userId,
        ...(scopes.size > 0 ? { scopes: [...scopes] } : {}),
      }),
    );
  };
  return (
    <ActionDialog
      title="Create a token"
      action="Create"
      isOpen
      isReady={name.trim() !== ''}
      onClose={onClose}
      act={act}
    >
      <Field label="Name" hint="Says where the token is used.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            maxLength={200}
            value={name}
            onChange={event => setName(event.target.value)}
          />
        )}
      </Field>
      {can('members:write') && (
        <Field label="Member" hint="A token that is created for another member cannot decide approvals.">
          {attributes => (
            <input
              {...attributes}
              className="input"
              required
              value={user}
              onChange={event => setUser(event.target.value)}
            />
          )}
        </Field>
      )}
      <Field label="Lifetime">
        {attributes => (
          <select {...attributes} className="input" value={days} onChange={event => setDays(event.target.value)}>
            {LIFETIMES.map(([label, count]) => (
              <option key={label} value={count ?? ''}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <fieldset>
        <legend>Permissions</legend>
        <p className="muted small">Without a choice the token has all permissions of the member.</p>
        <div className="scopes">
          {((me?.permissions ?? []) as Permission[]).map(scope => (
            <label key={scope} className="row">
              <input type="checkbox" checked={scopes.has(scope)} onChange={() => toggle(scope)} /> {scope}
            </label>
          ))}
        </div>
      </fieldset>
    </ActionDialog>
  );
}

export function Tokens() {
  const pages = useInfiniteQuery(tokensQuery);
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<string | null>(null);
  const [revoked, setRevoked] = useState<Token | null>(null);
  const tokens = pages.data?.pages.flatMap(page => page.tokens) ?? [];
  if (pages.isPending) return <Loading what="tokens" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  return (
    <div className="stack">
      <div className="row">
        <span className="spacer" />
        <button type="button" className="button primary" onClick={() => setCreating(true)}>
          Create token…
        </button>
      </div>
      <Table label="Tokens" heads={['Name', 'Member', 'Permissions', 'Created', 'Last used', 'Expires', '']}>
        {tokens.map(token => (
          <tr key={token.id}>
            <td>
              <Name text={token.name} /> {token.sessionOf && <span className="tag">session</span>}
            </td>
            <td>
              <Name text={token.userId} max={40} />
            </td>
            <td className="muted">{token.scopes.length > 0 ? token.scopes.join(', ') : 'all of the member'}</td>
            <td className="muted">
              <At at={token.createdAt} />
            </td>
            <td className="muted">{token.lastUsedAt ? <Ago at={token.lastUsedAt} /> : 'never'}</td>
            <td className="muted">{token.expiresAt ? <At at={token.expiresAt} /> : 'never'}</td>
            <td>
              <button
                type="button"
                className="button small danger"
                aria-label={`Revoke ${token.name}`}
                onClick={() => setRevoked(token)}
              >
                Revoke…
              </button>
            </td>
          </tr>
        ))}
      </Table>
      <More pages={pages} />
      {isCreating && <CreateDialog onClose={() => setCreating(false)} onCreated={setCreated} />}
      {revoked && (
        <ActionDialog
          title="Revoke the token?"
          action="Revoke"
          isDanger
          isOpen
          onClose={() => setRevoked(null)}
          act={() => revokeToken(revoked.id)}
        >
          <p>
            Requests with <Name text={revoked.name} /> and its browser sessions fail from now on.
          </p>
        </ActionDialog>
      )}
      <Dialog title="The new token" isOpen={created !== null} onClose={() => setCreated(null)}>
        <Notice tone="wait">Copy the token now. It is not shown again.</Notice>
        <div className="row">
          <code className="created-token">{created}</code>
          <CopyButton text={created ?? ''} label="Copy the token" />
        </div>
        <div className="dialog-actions">
          <button type="button" className="button" onClick={() => setCreated(null)}>
            Close
          </button>
        </div>
      </Dialog>
    </div>
  );
}
