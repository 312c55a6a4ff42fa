/** A button that opens a list of actions. */
import * as Radix from '@radix-ui/react-dropdown-menu';
import type { ReactNode } from 'react';

export function Menu({
  label,
  children,
  className = 'button',
  isOpenAtFirst = false,
}: {
  label: ReactNode;
  children: ReactNode;
  className?: string;
  isOpenAtFirst?: boolean;
}) {
  return (
    <Radix.Root modal={false} defaultOpen={isOpenAtFirst}>
      <Radix.Trigger className={className}>
        {label} <span aria-hidden="true">▾</span>
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" align="end" sideOffset={4} collisionPadding={8}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

export function MenuItem({
  children,
  act,
  isDisabled = false,
}: {
  children: ReactNode;
  act: () => void;
  isDisabled?: boolean;
}) {
  return (
    <Radix.Item className="menu-item" disabled={isDisabled} onSelect={act}>
      {children}
    </Radix.Item>
  );
}

/** One of several choices, such as a theme. */
export function MenuChoice({
  children,
  isChosen,
  choose,
}: {
  children: ReactNode;
  isChosen: boolean;
  choose: () => void;
}) {
  return (
    <Radix.CheckboxItem className="menu-item" checked={isChosen} onSelect={choose}>
      <span aria-hidden="true">{isChosen ? '●' : '○'}</span>
      {children}
    </Radix.CheckboxItem>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <Radix.Label className="menu-label">{children}</Radix.Label>;
}

export function MenuLine() {
  return <Radix.Separator className="menu-line" />;
}
