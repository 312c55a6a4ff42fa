/** The dialog of a decision. It repeats the question, so that no key press approves something that is not in view. */
import { useState } from 'react';
import { ApiError } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Field } from '@/design/parts';
import { Outside } from '@/design/text';
import { decide, type Decidable } from './queries';

interface DecideProps {
  approval: Decidable;
  prompt: string;
  approve: boolean;
  onClose: () => void;
}

/** Codes of a decision that came too late. */
const LATE = ['INVALID_RESUME_TOKEN', 'CONFLICT', 'NOT_FOUND'];

export function DecideDialog({ approval, prompt, approve, onClose }: DecideProps) {
  const [reason, setReason] = useState('');
  const act = async () => {
    try {
      await decide(approval, approve, reason);
    } catch (error) {
      if (error instanceof ApiError && LATE.includes(error.code)) {
        throw new Error(
          `Your decision was not recorded: the approval was decided, has expired or has changed since it was shown. (${error.message})`,
        );
      }
      throw error;
    }
  };
  const verb = approve ? 'Approve' : 'Deny';
  return (
    <ActionDialog title={`${verb}?`} action={verb} isDanger={!approve} isOpen onClose={onClose} act={act}>
      <p className="question">
        <Outside text={prompt} max={1000} />
      </p>
      {!approve && <p className="muted">A denial ends the step, and by default the execution.</p>}
      <Field label="Reason" hint="Optional. Recorded in the journal and the audit log.">
        {attributes => (
          <textarea
            {...attributes}
            className="input prose"
            rows={3}
            maxLength={2000}
            value={reason}
            onChange={event => setReason(event.target.value)}
          />
        )}
      </Field>
    </ActionDialog>
  );
}
