/** The dialog of a decision. It repeats the question, so that no key press approves something that is not in view. */
import { useState } from 'react';
import { ApiError } from '@/api/client';
import { ActionDialog } from '@/design/dialog';
import { Field } from '@/design/parts';
import { Name, Outside } from '@/design/text';
import { initialValue, isValid, Members } from '@/features/workflows/inputForm';
import { decide, type Decidable, type ServerForm } from './queries';

interface DecideProps {
  approval: Decidable;
  prompt: string;
  approve: boolean;
  /** The form that an approval fills in; null if the approval asks for none. */
  form: ServerForm | null;
  onClose: () => void;
}

/** Codes of a decision that came too late. */
const LATE = ['INVALID_RESUME_TOKEN', 'CONFLICT', 'NOT_FOUND'];

export function DecideDialog({ approval, prompt, approve, form, onClose }: DecideProps) {
  const [reason, setReason] = useState('');
  const [content, setContent] = useState<unknown>(() => initialValue(form?.schema) ?? {});
  const [cancels, setCancels] = useState(false);
  const answer = !form ? {} : approve ? { content } : { cancel: cancels };
  const act = async () => {
    try {
      if (!isValid(content)) throw new Error('A field of the form is not JSON.');
      await decide(approval, approve, reason, answer);
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
      {form && approve && (
        <fieldset className="stack">
          <legend>
            Form of the tool server <Name text={form.server} />
          </legend>
          <p className="question">
            <Outside text={form.message} max={1000} />
          </p>
          <Members schema={form.schema} value={content} change={setContent} />
        </fieldset>
      )}
      {form && !approve && (
        <label className="row">
          <input type="checkbox" checked={cancels} onChange={event => setCancels(event.target.checked)} /> Cancel, and
          do not only decline to answer
        </label>
      )}
      {!form && !approve && <p className="muted">A denial ends the step, and by default the execution.</p>}
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
