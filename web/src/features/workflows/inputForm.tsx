/** A form made from the JSON Schema of an input. Values that no field fits are written as JSON. */
import { useState } from 'react';
import { numberOf, parseJson, stringifyJson } from '@/api/json';
import { Field } from '@/design/parts';
import { plain } from '@/design/outside';

/** The part of JSON Schema that has fields. */
export interface InputSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  oneOf?: InputSchema[];
  anyOf?: InputSchema[];
  const?: unknown;
  properties?: Record<string, InputSchema>;
  required?: string[];
  items?: InputSchema;
  minimum?: number | bigint;
  maximum?: number | bigint;
  maxLength?: number;
}

type Fields = Record<string, unknown>;

interface ValueProps {
  name: string;
  schema: InputSchema;
  isRequired: boolean;
  value: unknown;
  change: (value: unknown) => void;
}

/** The value that a form starts with: the defaults of the schema. */
export function initialValue(schema: InputSchema | null | undefined): unknown {
  if (!schema) return undefined;
  if (schema.default !== undefined) return schema.default;
  if (!schema.properties) return undefined;
  const members = Object.entries(schema.properties).map(([key, member]): [string, unknown] => [
    key,
    initialValue(member),
  ]);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** A JSON text as a field. What is not JSON stays in the field and marks it. */
export function JsonField({
  name,
  hint,
  value,
  change,
}: {
  name: string;
  hint?: string | undefined;
  value: unknown;
  change: (value: unknown) => void;
}) {
  const [text, setText] = useState(() => (value === undefined ? '' : stringifyJson(value, 2)));
  const [isBroken, setBroken] = useState(false);
  const read = (next: string) => {
    setText(next);
    try {
      change(next.trim() === '' ? undefined : parseJson(next));
      setBroken(false);
    } catch {
      setBroken(true);
      change(INVALID);
    }
  };
  return (
    <Field label={name} hint={hint ?? 'JSON'} problem={isBroken ? 'This is not JSON.' : undefined}>
      {attributes => (
        <textarea
          {...attributes}
          className="input"
          rows={Math.min(14, text.split('\n').length + 1)}
          value={text}
          onChange={event => read(event.target.value)}
        />
      )}
    </Field>
  );
}

/** Stands for a text that is not JSON. A form that contains it cannot be sent. */
export const INVALID = Symbol('not JSON');

/** True if the value contains no text that is not JSON. */
export function isValid(value: unknown): boolean {
  if (value === INVALID) return false;
  return typeof value !== 'object' || value === null || Object.values(value).every(isValid);
}

/** The texts that a field accepts, each with its label; null if it accepts others. */
function choicesOf({ enum: values, oneOf, anyOf }: InputSchema): { value: string; label: string }[] | null {
  if (values)
    return values.every(one => typeof one === 'string') ? values.map(one => ({ value: one, label: one })) : null;
  const titled = oneOf ?? anyOf;
  if (!titled?.length) return null;
  const choices = titled.flatMap(({ const: value, title }) =>
    // The value is what is sent, so a title stands beside it.
    typeof value === 'string'
      ? [{ value, label: title && title !== value ? `${plain(title)} (${value})` : value }]
      : [],
  );
  return choices.length === titled.length ? choices : null;
}

export function ValueField({ name, schema, isRequired, value, change }: ValueProps) {
  const label = `${plain(schema.title ?? name).slice(0, 120)}${isRequired ? ' *' : ''}`;
  const hint = schema.description ? plain(schema.description).slice(0, 400) : undefined;
  const type = Array.isArray(schema.type) ? schema.type.find(one => one !== 'null') : schema.type;
  const choices = choicesOf(schema);
  if (choices) {
    return (
      <Field label={label} hint={hint}>
        {attributes => (
          <select
            {...attributes}
            className="input"
            required={isRequired}
            value={String(value ?? '')}
            onChange={event => change(event.target.value || undefined)}
          >
            <option value="" />
            {choices.map(one => (
              <option key={one.value} value={one.value}>
                {one.label}
              </option>
            ))}
          </select>
        )}
      </Field>
    );
  }
  if (type === 'boolean') {
    return (
      <label className="row">
        <input type="checkbox" checked={value === true} onChange={event => change(event.target.checked)} /> {label}
        {hint && <span className="muted small">{hint}</span>}
      </label>
    );
  }
  if (type === 'integer' || type === 'number') {
    return (
      <Field label={label} hint={hint}>
        {attributes => (
          <input
            {...attributes}
            className="input"
            type="number"
            step={type === 'integer' ? 1 : 'any'}
            min={schema.minimum?.toString()}
            max={schema.maximum?.toString()}
            required={isRequired}
            value={typeof value === 'number' || typeof value === 'bigint' ? value.toString() : ''}
            onChange={event => change(event.target.value === '' ? undefined : numberOf(event.target.value))}
          />
        )}
      </Field>
    );
  }
  if (type === 'string') {
    const text = typeof value === 'string' ? value : '';
    const props = { className: 'input prose', required: isRequired, maxLength: schema.maxLength, value: text };
    // An empty field is an absent member, unless the schema requires it.
    const read = (next: string) => change(next === '' && !isRequired ? undefined : next);
    return (
      <Field label={label} hint={hint}>
        {attributes =>
          text.includes('\n') || text.length > 80 ? (
            <textarea {...attributes} {...props} rows={5} onChange={event => read(event.target.value)} />
          ) : (
            <input {...attributes} {...props} onChange={event => read(event.target.value)} />
          )
        }
      </Field>
    );
  }
  if (type === 'object' && schema.properties) {
    return (
      <fieldset className="stack">
        <legend>{label}</legend>
        {hint && <p className="muted small">{hint}</p>}
        <Members schema={schema} value={value} change={change} />
      </fieldset>
    );
  }
  return <JsonField name={label} hint={hint} value={value} change={change} />;
}

/** The fields of an object. */
export function Members({
  schema,
  value,
  change,
}: {
  schema: InputSchema;
  value: unknown;
  change: (value: unknown) => void;
}) {
  const fields = (typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {}) as Fields;
  const set = (key: string, next: unknown) => {
    const { [key]: _old, ...rest } = fields;
    change(next === undefined ? rest : { ...rest, [key]: next });
  };
  return Object.entries(schema.properties ?? {}).map(([key, member]) => (
    <ValueField
      key={key}
      name={key}
      schema={member}
      isRequired={schema.required?.includes(key) ?? false}
      value={Object.hasOwn(fields, key) ? fields[key] : undefined}
      change={next => set(key, next)}
    />
  ));
}
