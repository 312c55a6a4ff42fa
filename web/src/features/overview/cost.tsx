/** What models and tools have used in the last days: cost where prices are set, tokens otherwise. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { amountText } from '@/features/execution/budget';
import { costOf } from './model';
import { dailyUsageQuery, DAYS } from './queries';

const WIDTH = 300;
const HEIGHT = 60;

export function Cost() {
  const usage = useQuery(dailyUsageQuery);
  const cost = costOf(usage.data ?? [], DAYS, Date.now());
  // Without agents there is nothing to compare.
  if (!cost) return null;
  const most = Math.max(...cost.days.map(day => day.amount), Number.MIN_VALUE);
  const width = WIDTH / cost.days.length;
  const total = amountText(cost.total);
  return (
    <section className="card" aria-labelledby="cost">
      <div className="card-head">
        <h2 id="cost">{cost.quantity === 'cost' ? 'Cost' : 'Tokens'} per day</h2>
        <span className="spacer" />
        <Link to="/installation" search={{ section: 'usage' }}>
          Usage and budgets
        </Link>
      </div>
      <div className="card-body">
        <figure className="chart">
          <svg
            viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`${total} in the last ${DAYS} days`}
          >
            {cost.days.map(({ day, amount }, index) => {
              const height = (amount / most) * (HEIGHT - 4);
              return (
                <rect
                  key={day}
                  className="bar-other"
                  x={index * width + 1}
                  y={HEIGHT - height}
                  width={Math.max(1, width - 2)}
                  height={height}
                />
              );
            })}
          </svg>
          <figcaption className="row small muted wrap">
            {total} in the last {DAYS} days · today {amountText(cost.days.at(-1)?.amount ?? 0)}
          </figcaption>
        </figure>
      </div>
    </section>
  );
}
