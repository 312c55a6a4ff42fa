/** Dialogs: a title, content and actions. Escape and the close button leave without an effect. */
import * as Radix from '@radix-ui/react-dialog';
import { useState, type ReactNode } from 'react';
import { Failed } from './parts';

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  isWide?: boolean;
  children: ReactNode;
}

export function Dialog({ title, isOpen, onClose, isWide = false, children }: DialogProps) {
  return (
    <Radix.Root open={isOpen} onOpenChange={open => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="overlay" />
        <Radix.Content className={isWide ? 'dialog wide' : 'dialog'} aria-describedby={undefined}>
          <Radix.Title asChild>
            <h2>{title}</h2>
          </Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ActionDialogProps extends DialogProps {
  /** The verb of the button. */
  action: string;
  isDanger?: boolean;
  isReady?: boolean;
  /** Performs the action. The dialog closes when it succeeds and shows the message when it fails. */
  act: () => Promise<unknown>;
}

/** A dialog with one action, which shows its progress and its failure. */
export function ActionDialog({
  action,
  act,
  isDanger = false,
  isReady = true,
  children,
  ...dialog
}: ActionDialogProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await act();
      dialog.onClose();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog {...dialog}>
      <form
        className="stack"
        onSubmit={event => {
          event.preventDefault();
          if (isReady && !isBusy) void run();
        }}
      >
        {children}
        {error !== undefined && <Failed error={error} />}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={dialog.onClose}>
            Close
          </button>
          <button type="submit" className={`button ${isDanger ? 'danger' : 'primary'}`} disabled={isBusy || !isReady}>
            {isBusy ? `${action}…` : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
