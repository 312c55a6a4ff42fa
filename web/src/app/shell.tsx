/** The frame of every page: navigation, the account, and the place of the page. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import type { Permission } from '@/api/client';
import icon from '@/design/icon.svg';
import { Name } from '@/design/text';
import { openApprovalsQuery } from '@/features/approvals/queries';
import { organizationQuery, useCan, useMe } from '@/features/session/queries';
import './shell.css';

const AccountMenu = lazy(() => import('./accountMenu'));

interface Place {
  to: '/' | '/executions' | '/approvals' | '/workflows' | '/triggers' | '/installation';
  label: string;
  /** The page is offered to sessions with one of these. */
  needs: Permission[];
}

const PLACES: Place[] = [
  { to: '/', label: 'Overview', needs: ['executions:read'] },
  { to: '/executions', label: 'Executions', needs: ['executions:read'] },
  { to: '/approvals', label: 'Approvals', needs: ['executions:read'] },
  { to: '/workflows', label: 'Workflows', needs: ['workflows:read'] },
  { to: '/triggers', label: 'Triggers', needs: ['workflows:read'] },
  {
    to: '/installation',
    label: 'Installation',
    needs: ['members:read', 'tokens:own', 'audit:read', 'organization:read'],
  },
];

function ApprovalCount() {
  const open = useQuery(openApprovalsQuery);
  const mine = open.data?.approvals.filter(approval => approval.mayDecide).length ?? 0;
  if (mine === 0) return null;
  return (
    <span className="side-count">
      {mine}
      {open.data?.nextCursor ? '+' : ''}
      <span className="visually-hidden"> open for you</span>
    </span>
  );
}

/** The account. Its menu is a chunk of its own, which the first press loads. */
function Account() {
  const me = useMe();
  const can = useCan();
  const organization = useQuery({ ...organizationQuery, enabled: can('organization:read') });
  const [isWanted, setWanted] = useState(false);
  if (!me) return null;
  const label = (
    <span className="account-names">
      <span className="truncate">
        <Name text={organization.data?.name ?? me.organizationId} />
      </span>
      <span className="truncate small muted">
        <Name text={me.userId} /> · {me.role}
      </span>
    </span>
  );
  const button = (
    <button type="button" className="account" aria-haspopup="menu" onClick={() => setWanted(true)}>
      {label} <span aria-hidden="true">▾</span>
    </button>
  );
  return isWanted ? (
    <Suspense fallback={button}>
      <AccountMenu label={label} userId={me.userId} />
    </Suspense>
  ) : (
    button
  );
}

export function Shell() {
  const can = useCan();
  const places = PLACES.filter(place => place.needs.some(can));
  return (
    <div className="shell">
      <a className="button skip" href="#main">
        Skip to the page
      </a>
      <nav className="side" aria-label="Console">
        <Link to="/" className="brand">
          <img src={icon} width="18" height="18" alt="" />
          <span className="brand-name">Mainspring</span>
        </Link>
        <div className="side-links">
          {places.map(place => (
            <Link
              key={place.to}
              to={place.to}
              className="side-link"
              activeOptions={{ exact: place.to === '/', includeSearch: false }}
            >
              {place.label}
              {place.to === '/approvals' && <ApprovalCount />}
            </Link>
          ))}
        </div>
        <Account />
      </nav>
      <main className="main" id="main" tabIndex={-1}>
        <Outlet />
      </main>
    </div>
  );
}
