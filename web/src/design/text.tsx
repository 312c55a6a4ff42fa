/** Text from outside: names, messages, values. It is shown inert, isolated in direction, and bounded in length. */
import { useState } from 'react';
import { isMixedScript, pieces } from './outside';

/** Characters that are shown at first; a line of megabytes would stop the browser. */
const SHOWN_MAX = 2000;

/** Characters that are shown after the button was pressed. */
const SHOWN_WHOLE_MAX = 200_000;

function Pieces({ text }: { text: string }) {
  return pieces(text).map((piece, index) =>
    piece.isMark ? (
      <span key={index} className="control-mark" title="A character that is invisible or changes the text around it">
        {piece.text}
      </span>
    ) : (
      piece.text
    ),
  );
}

/** Text of any length. */
export function Outside({ text, max = SHOWN_MAX }: { text: string; max?: number }) {
  const [isWhole, setWhole] = useState(false);
  const most = isWhole ? SHOWN_WHOLE_MAX : max;
  const rest = text.length - most;
  return (
    <bdi className="outside">
      <Pieces text={rest > 0 ? text.slice(0, most) : text} />
      {rest > 0 && '… '}
      {rest > 0 && !isWhole && (
        <button type="button" className="button small" onClick={() => setWhole(true)}>
          Show {Math.min(rest, SHOWN_WHOLE_MAX).toLocaleString('en')} more characters
        </button>
      )}
      {rest > 0 && isWhole && <span className="muted">{rest.toLocaleString('en')} characters are not shown</span>}
    </bdi>
  );
}

/** A name: one line, cut by its box, marked when letters of several scripts make it look like another name. */
export function Name({ text, max = 120 }: { text: string; max?: number }) {
  const shown = text.length > max ? `${text.slice(0, max)}…` : text;
  return (
    <bdi className="outside" title={text.length > max ? text.slice(0, 1000) : undefined}>
      <Pieces text={shown} />
      {isMixedScript(text) && (
        <>
          {' '}
          <span className="control-mark" title="Letters of several scripts, which can look alike">
            mixed scripts
          </span>
        </>
      )}
    </bdi>
  );
}
