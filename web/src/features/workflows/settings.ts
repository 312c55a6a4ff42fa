/** The settings of a workflow as a form, and the fields that it changes. */
import type { Workflow } from '@/api/client';

export interface SettingsForm {
  name: string;
  description: string;
  /** Separated by commas. */
  tags: string;
  isEnabled: boolean;
}

export function settingsForm(workflow: Pick<Workflow, 'name' | 'description' | 'tags' | 'enabled'>): SettingsForm {
  const { name, description, tags, enabled } = workflow;
  return { name, description: description ?? '', tags: tags.join(', '), isEnabled: enabled };
}

/** The request for what the form changes; null if it changes nothing. */
export function settingsChange(before: SettingsForm, now: SettingsForm): Record<string, unknown> | null {
  const tags = now.tags.split(',').flatMap(tag => tag.trim() || []);
  const change = {
    ...(now.name === before.name ? {} : { name: now.name }),
    ...(now.description === before.description ? {} : { description: now.description || null }),
    ...(now.tags === before.tags ? {} : { tags: tags.length > 0 ? tags : null }),
    ...(now.isEnabled === before.isEnabled ? {} : { enabled: now.isEnabled }),
  };
  return Object.keys(change).length > 0 ? change : null;
}
