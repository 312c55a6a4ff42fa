/**
 * Stands in for `react-remove-scroll`, which Radix dialogs and menus use. The original writes a `<style>` element, which
 * the content security policy forbids; this one sets a class on the document, and `base.css` has its rule.
 */
import { useEffect, type CSSProperties, type ReactNode, type Ref, cloneElement, isValidElement } from 'react';

interface RemoveScrollProps {
  children?: ReactNode;
  as?: unknown;
  allowPinchZoom?: boolean;
  shards?: unknown;
  enabled?: boolean;
  className?: string;
  style?: CSSProperties;
  ref?: Ref<HTMLElement>;
}

let locks = 0;

export function RemoveScroll({
  children,
  enabled = true,
  as: _as,
  shards: _shards,
  allowPinchZoom: _zoom,
  ...rest
}: RemoveScrollProps) {
  useEffect(() => {
    if (!enabled) return;
    locks += 1;
    document.documentElement.classList.add('scroll-locked');
    return () => {
      locks -= 1;
      if (locks === 0) document.documentElement.classList.remove('scroll-locked');
    };
  }, [enabled]);
  // Radix passes a single child, which takes the properties of a `Slot`.
  return isValidElement<Record<string, unknown>>(children)
    ? cloneElement(children, { ...rest, ...children.props })
    : children;
}

export default RemoveScroll;
