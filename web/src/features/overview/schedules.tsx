/** The schedules that start next. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Empty, Failed, Loading } from '@/design/parts';
import { Name } from '@/design/text';
import { Ago, At } from '@/design/time';
import { nextRuns } from './model';
import { schedulesQuery } from './queries';

/** Rows of the list. */
const SHORT = 5;

export function Schedules() {
  const triggers = useQuery(schedulesQuery);
  const next = nextRuns(triggers.data ?? [], SHORT);
  return (
    <section className="card" aria-labelledby="schedules">
      <div className="card-head">
        <h2 id="schedules">Next schedules</h2>
        <span className="spacer" />
        <Link to="/triggers">All triggers</Link>
      </div>
      {triggers.isPending && <Loading what="schedules" />}
      {triggers.isError && <Failed error={triggers.error} />}
      {triggers.isSuccess && next.length === 0 && <Empty>No schedule is enabled.</Empty>}
      <ul className="short-list">
        {next.map(({ trigger, at }) => (
          <li key={trigger.id}>
            <Link to="/triggers/$id" params={{ id: trigger.id }} className="truncate">
              <Name text={trigger.name} />
            </Link>
            <span className="small muted row">
              <Ago at={at} /> · <At at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
