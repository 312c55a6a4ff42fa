/** Members of the organization and their roles. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Member, Role } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Failed, Field, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { At } from '@/design/time';
import { useCan, useMe } from '@/features/session/queries';
import { More, Table } from './parts';
import { membersQuery, putMember, removeMember } from './queries';

const ROLES: [Role, string][] = [
  ['owner', 'Everything, including other owners'],
  ['admin', 'Members, settings and all workflows'],
  ['member', 'Own workflows, executions and decisions'],
  ['viewer', 'Reads only'],
  ['agent', 'A program: starts executions and decides nothing'],
];

function MemberDialog({ member, onClose }: { member: Member | null; onClose: () => void }) {
  const [id, setId] = useState(member?.id ?? '');
  const [name, setName] = useState(member?.name ?? '');
  const [role, setRole] = useState<Role>(member?.role ?? 'member');
  const act = () => putMember(id.trim(), { role, ...(name.trim() ? { name: name.trim() } : {}) });
  return (
    <ActionDialog
      title={member ? 'Change a member' : 'Add a member'}
      action="Save"
      isOpen
      isReady={id.trim() !== ''}
      onClose={onClose}
      act={act}
    >
      <Field label="Id" hint="Stands in journals and in the audit log, and cannot be changed.">
        {attributes => (
          <input
            {...attributes}
            className="input"
            required
            readOnly={member !== null}
            value={id}
            onChange={event => setId(event.target.value)}
          />
        )}
      </Field>
      <Field label="Name">
        {attributes => (
          <input {...attributes} className="input" value={name} onChange={event => setName(event.target.value)} />
        )}
      </Field>
      <Field label="Role" hint={ROLES.find(([key]) => key === role)?.[1]}>
        {attributes => (
          <select
            {...attributes}
            className="input"
            value={role}
            onChange={event => setRole(event.target.value as Role)}
          >
            {ROLES.map(([key]) => (
              <option key={key}>{key}</option>
            ))}
          </select>
        )}
      </Field>
    </ActionDialog>
  );
}

export function Members() {
  const can = useCan();
  const me = useMe();
  const pages = useInfiniteQuery(membersQuery);
  const [changed, setChanged] = useState<Member | 'new' | null>(null);
  const [removed, setRemoved] = useState<Member | null>(null);
  const members = pages.data?.pages.flatMap(page => page.members) ?? [];
  if (pages.isPending) return <Loading what="members" />;
  if (pages.isError) return <Failed error={pages.error} retry={() => void pages.refetch()} />;
  return (
    <div className="stack">
      {can('members:write') && (
        <div className="row">
          <span className="spacer" />
          <button type="button" className="button primary" onClick={() => setChanged('new')}>
            Add member…
          </button>
        </div>
      )}
      <Table label="Members" heads={['Id', 'Name', 'Role', 'Since', '']}>
        {members.map(member => (
          <tr key={member.id}>
            <td>
              <Name text={member.id} /> {member.id === me?.userId && <span className="tag">you</span>}
            </td>
            <td>{member.name && <Name text={member.name} />}</td>
            <td>
              {member.role} {member.operator && <span className="tag">operator</span>}
            </td>
            <td className="muted">
              <At at={member.createdAt} />
            </td>
            <td className="nowrap">
              {can('members:write') && (
                <>
                  <button
                    type="button"
                    className="button small"
                    aria-label={`Change ${member.id}`}
                    onClick={() => setChanged(member)}
                  >
                    Change…
                  </button>{' '}
                  <button
                    type="button"
                    className="button small danger"
                    aria-label={`Remove ${member.id}`}
                    onClick={() => setRemoved(member)}
                  >
                    Remove…
                  </button>
                </>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <More pages={pages} />
      {changed && <MemberDialog member={changed === 'new' ? null : changed} onClose={() => setChanged(null)} />}
      {removed && (
        <ActionDialog
          title="Remove the member?"
          action="Remove"
          isDanger
          isOpen
          onClose={() => setRemoved(null)}
          act={() => removeMember(removed.id)}
        >
          <p>
            <Name text={removed.id} /> loses all tokens at once. Workflows of the member remain, and admins can change
            them.
          </p>
        </ActionDialog>
      )}
    </div>
  );
}
