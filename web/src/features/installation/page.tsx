/** The installation: members, tokens, secrets, sessions, event subscriptions, tool servers, models, policy, audit log, usage, settings, quarantine, node. */
import { Link, useSearch } from '@tanstack/react-router';
import type { ComponentType } from 'react';
import type { Permission } from '@/api/client';
import { useTitle } from '@/app/title';
import { Empty } from '@/design/parts';
import { useCan } from '@/features/session/queries';
import { Audit } from './audit';
import { Models, ToolServers } from './integrations';
import { Members } from './members';
import { ThisNode } from './node';
import { Policy } from './policy';
import { Quarantine } from './quarantine';
import { Secrets } from './secrets';
import { Settings } from './settings';
import { Sessions } from './sessions';
import { Subscriptions } from './subscriptions';
import { Tokens } from './tokens';
import { OrganizationUsage } from './usage';
import './style.css';
import { TAB_MATCH } from '@/design/tabs';

interface Section {
  key: string;
  label: string;
  needs: Permission;
  view: ComponentType;
}

const SECTIONS: Section[] = [
  { key: 'members', label: 'Members', needs: 'members:read', view: Members },
  { key: 'tokens', label: 'Tokens', needs: 'tokens:own', view: Tokens },
  { key: 'secrets', label: 'Secrets', needs: 'secrets:read', view: Secrets },
  { key: 'sessions', label: 'Sessions', needs: 'executions:read', view: Sessions },
  { key: 'events', label: 'Events', needs: 'organization:write', view: Subscriptions },
  { key: 'tools', label: 'Tool servers', needs: 'workflows:read', view: ToolServers },
  { key: 'models', label: 'Models', needs: 'workflows:read', view: Models },
  { key: 'policy', label: 'Policy', needs: 'workflows:read', view: Policy },
  { key: 'audit', label: 'Audit log', needs: 'audit:read', view: Audit },
  { key: 'usage', label: 'Usage', needs: 'organization:read', view: OrganizationUsage },
  { key: 'settings', label: 'Settings', needs: 'organization:read', view: Settings },
  { key: 'quarantine', label: 'Quarantine', needs: 'executions:repair', view: Quarantine },
  { key: 'node', label: 'Node', needs: 'organization:read', view: ThisNode },
];

export function InstallationPage() {
  useTitle('Installation');
  const can = useCan();
  const { section } = useSearch({ from: '/signed-in/installation' });
  const sections = SECTIONS.filter(one => can(one.needs));
  const shown = sections.find(one => one.key === section) ?? sections[0];
  if (!shown) return <Empty>Your permissions show nothing here.</Empty>;
  const View = shown.view;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Installation</h1>
      </div>
      <nav className="tabs" aria-label="Sections of the installation">
        {sections.map(one => (
          <Link
            key={one.key}
            to="."
            search={{ section: one.key }}
            className="tab"
            activeOptions={TAB_MATCH}
            aria-current={one === shown ? 'page' : undefined}
          >
            {one.label}
          </Link>
        ))}
      </nav>
      <View />
    </div>
  );
}
