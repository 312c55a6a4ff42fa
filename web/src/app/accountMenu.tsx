/** The menu of the account: sign out, organization, appearance, API reference. */
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from '@/design/menu';
import { Name } from '@/design/text';
import { signOut } from '@/features/session/queries';
import { setAppearance, useAppearance, type Contrast, type Theme } from './theme';

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

export default function AccountMenu({ label, userId }: { label: ReactNode; userId: string }) {
  const appearance = useAppearance();
  const navigate = useNavigate();
  const leave = async () => {
    await signOut();
    await navigate({ to: '/login' });
  };
  return (
    <Menu label={label} className="account" isOpenAtFirst>
      <MenuLabel>
        Signed in as <Name text={userId} />
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
