/** The title of the document, for tabs, bookmarks and screen readers. */
import { useEffect } from 'react';
import { plain } from '@/design/outside';

export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${plain(title).slice(0, 80)} · Mainspring`;
  }, [title]);
}
