/** The frame of every page: navigation, the account, and the place of the page. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useNavigate } from '@tanstack/react-router';
import type { Permission } from '@/api/client';
import icon from '@/design/icon.svg';
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from '@/design/menu';
import { Name } from '@/design/text';
import { openApprovalsQuery } from '@/features/approvals/queries';
import { organizationQuery, signOut, useCan, useMe } from '@/features/session/queries';
import { setAppearance, useAppearance, type Contrast, type Theme } from './theme';
import './shell.css';

interface Place {
  to: '/' | '/executions' | '/approvals' | '/workflows' | '/installation';
  label: string;
  /** The page is offered to sessions with one of these. */
  needs: Permission[];
}

const PLACES: Place[] = [
  { to: '/', label: 'Overview', needs: ['executions:read'] },
  { to: '/executions', label: 'Executions', needs: ['executions:read'] },
  { to: '/approvals', label: 'Approvals', needs: ['executions:read'] },
  { to: '/workflows', label: 'Workflows', needs: ['workflows:read'] },
  {
    to: '/installation',
    label: 'Installation',
    needs: ['members:read', 'tokens:own', 'audit:read', 'organization:read'],
  },
];

const THEMES: [Theme, string][] = [
  ['system', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

const CONTRASTS: [Contrast, string][] = [
  ['system', 'As the system'],
  ['normal', 'Normal'],
  ['more', 'High'],
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

function Account() {
  const me = useMe();
  const can = useCan();
  const organization = useQuery({ ...organizationQuery, enabled: can('organization:read') });
  const appearance = useAppearance();
  const navigate = useNavigate();
  const leave = async () => {
    await signOut();
    await navigate({ to: '/login' });
  };
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
  return (
    <Menu label={label} className="account">
      <MenuLabel>
        Signed in as <Name text={me.userId} />
      </MenuLabel>
      <MenuItem act={() => void leave()}>Switch organization…</MenuItem>
      <MenuItem act={() => void leave()}>Sign out</MenuItem>
      <MenuLine />
      <MenuLabel>Theme</MenuLabel>
      {THEMES.map(([theme, name]) => (
        <MenuChoice key={theme} isChosen={appearance.theme === theme} choose={() => setAppearance({ theme })}>
          {name}
        </MenuChoice>
      ))}
      <MenuLabel>Contrast</MenuLabel>
      {CONTRASTS.map(([contrast, name]) => (
        <MenuChoice
          key={contrast}
          isChosen={appearance.contrast === contrast}
          choose={() => setAppearance({ contrast })}
        >
          {name}
        </MenuChoice>
      ))}
      <MenuLine />
      <MenuItem act={() => window.open('/docs', '_blank', 'noopener')}>API reference</MenuItem>
    </Menu>
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
