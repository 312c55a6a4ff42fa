/** Members of the organization and their roles. */
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { isStale, type Member, type Role } from '@/api/client';
import { ActionDialog, Dialog } from '@/design/dialog';
import { Failed, Field, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { At } from '@/design/time';
import { useCan, useMe } from '@/features/session/queries';
import { More, Table } from './parts';
import { mayChangeMember, memberChange } from './model';
import { addMember, memberQuery, membersQuery, putMember, removeMember, type TaggedMember } from './queries';

const ROLES: [Role, string][] = [
  ['owner', 'Everything, including other owners'],
  ['admin', 'Members, settings and all workflows'],
  ['member', 'Own workflows, executions and decisions'],
  ['viewer', 'Reads only'],
  ['agent', 'A program: starts executions and decides nothing'],
];

/** Reads the member before the form begins, with the version that the change is for. */
function ChangeDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const found = useQuery(memberQuery(id));
  const [base, setBase] = useState<TaggedMember | null>(null);
  if (base) return <MemberDialog base={base} onClose={onClose} />;
  if (found.isSuccess && !found.isFetching) setBase(found.data);
  return (
    <Dialog title="Change a member" isOpen onClose={onClose}>
      {found.isError ? (
        <Failed error={found.error} retry={() => void found.refetch()} />
      ) : (
        <Loading what="the member" />
      )}
    </Dialog>
  );
}

function MemberDialog({ base, onClose }: { base: TaggedMember | null; onClose: () => void }) {
  const me = useMe();
  const member = base?.member ?? null;
  const [id, setId] = useState(member?.id ?? '');
  const [name, setName] = useState(member?.name ?? '');
  const [role, setRole] = useState<Role>(member?.role ?? 'member');
  const change = member && memberChange(member, { name, role });
  const roles = ROLES.filter(([key]) => key !== 'owner' || me?.role === 'owner');
  const act = async () => {
    if (!base) return addMember(id.trim(), { role, ...(name.trim() ? { name: name.trim() } : {}) });
    if (!change) return;
    try {
      await putMember(base.member.id, change, base.etag);
    } catch (error) {
      if (!isStale(error)) throw error;
      throw new Error(
        'Your change was not saved: the member has changed since you opened the form. Close it and open it again.',
        { cause: error },
      );
    }
  };
  return (
    <ActionDialog
      title={member ? 'Change a member' : 'Add a member'}
      action="Save"
      isOpen
      isReady={member ? change !== null : id.trim() !== ''}
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
            {roles.map(([key]) => (
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
              {can('members:write') && mayChangeMember(me, member) && (
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
      {changed === 'new' && <MemberDialog base={null} onClose={() => setChanged(null)} />}
      {changed !== null && changed !== 'new' && <ChangeDialog id={changed.id} onClose={() => setChanged(null)} />}
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
