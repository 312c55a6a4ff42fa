/** Theme and contrast: the reader's choice, else that of the system. Stored in this browser. */
import { useSyncExternalStore } from 'react';

export type Theme = 'system' | 'light' | 'dark';
export type Contrast = 'system' | 'normal' | 'more';

export interface Appearance {
  theme: Theme;
  contrast: Contrast;
}

const KEY = 'mainspring.appearance';
const SYSTEM: Appearance = { theme: 'system', contrast: 'system' };
const isDark = matchMedia('(prefers-color-scheme: dark)');
const wantsContrast = matchMedia('(prefers-contrast: more)');
const readers = new Set<() => void>();

function read(): Appearance {
  try {
    return { ...SYSTEM, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Appearance>) };
  } catch {
    return SYSTEM;
  }
}

let chosen = read();

/** Sets the attributes that the style sheets select. */
function apply() {
  const theme = chosen.theme === 'system' ? (isDark.matches ? 'dark' : 'light') : chosen.theme;
  const contrast = chosen.contrast === 'system' ? (wantsContrast.matches ? 'more' : 'normal') : chosen.contrast;
  document.documentElement.dataset['theme'] = theme;
  document.documentElement.dataset['contrast'] = contrast;
}

export function startAppearance() {
  apply();
  isDark.addEventListener('change', apply);
  wantsContrast.addEventListener('change', apply);
}

export function setAppearance(change: Partial<Appearance>) {
  chosen = { ...chosen, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(chosen));
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  apply();
  for (const reader of readers) reader();
}

export function useAppearance(): Appearance {
  return useSyncExternalStore(
    reader => {
      readers.add(reader);
      return () => readers.delete(reader);
    },
    () => chosen,
  );
}
