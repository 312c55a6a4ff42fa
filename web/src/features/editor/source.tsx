/** A text with line numbers and colors, to read. */
import { useEffect, useRef } from 'react';
import { mount, type Syntax } from './mount';
import './style.css';

export default function Source({ text, label, syntax = 'yaml' }: { text: string; label: string; syntax?: Syntax }) {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current) return;
    const view = mount({ host: host.current, text, label, syntax, isReadOnly: true });
    return () => view.destroy();
  }, [text, label, syntax]);
  return <div ref={host} className="source card" />;
}
