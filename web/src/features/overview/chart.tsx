/** Bars of started executions over time, with the failed ones in another color and a text for screen readers. */
import type { ExecutionRow } from '@/api/client';
import { At } from '@/design/time';
import { buckets } from './model';

const WIDTH = 600;
const HEIGHT = 120;

export function Chart({ rows }: { rows: ExecutionRow[] }) {
  const bars = buckets(rows, Date.now());
  const most = Math.max(1, ...bars.map(bar => bar.completed + bar.failed + bar.other));
  const width = WIDTH / Math.max(1, bars.length);
  const failed = bars.reduce((sum, bar) => sum + bar.failed, 0);
  return (
    <figure className="chart">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${rows.length} executions started, ${failed} failed`}
      >
        {bars.map((bar, index) => {
          const parts = [
            ['bar-ok', bar.completed],
            ['bar-other', bar.other],
            ['bar-bad', bar.failed],
          ] as const;
          let top = HEIGHT;
          return parts.map(([name, count]) => {
            const height = (count / most) * (HEIGHT - 4);
            top -= height;
            return (
              <rect
                key={`${index}-${name}`}
                className={name}
                x={index * width + 1}
                y={top}
                width={Math.max(1, width - 2)}
                height={height}
              />
            );
          });
        })}
      </svg>
      <figcaption className="row small muted wrap">
        {bars[0] && <At at={new Date(bars[0].from).toISOString()} />}
        <span className="spacer" />
        <span className="row">
          <i className="key bar-ok" /> completed <i className="key bar-bad" /> failed <i className="key bar-other" />{' '}
          other
        </span>
        <span className="spacer" />
        now · at most {most} per bar
      </figcaption>
    </figure>
  );
}
