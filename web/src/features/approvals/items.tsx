/** The items of an approval: a table where they are a list of objects, else a tree. */
import { Json } from '@/design/json';
import { Outside } from '@/design/text';

/** Rows and columns up to which items are a table. */
const ROWS_MAX = 200;
const COLUMNS_MAX = 12;

type Row = Record<string, unknown>;

/** The columns of a list of objects; null if it is none, or too wide. */
function columnsOf(items: unknown): string[] | null {
  if (!Array.isArray(items) || items.length === 0) return null;
  if (!items.every(item => typeof item === 'object' && item !== null && !Array.isArray(item))) return null;
  const columns = [...new Set(items.slice(0, ROWS_MAX).flatMap(item => Object.keys(item as Row)))];
  return columns.length > 0 && columns.length <= COLUMNS_MAX ? columns : null;
}

/** False for an empty list and for null: the approval is its prompt alone. */
export const hasItems = (items: unknown) => (Array.isArray(items) ? items.length > 0 : (items ?? null) !== null);

export function Items({ items }: { items: unknown }) {
  const columns = columnsOf(items);
  if (Array.isArray(items) && items.length === 0) return <p className="muted">The approval has no items.</p>;
  if (!columns) return <Json value={items} />;
  const rows = items as Row[];
  return (
    <div className="table-scroll card" tabIndex={0} role="region" aria-label="Items">
      <table className="table">
        <thead>
          <tr>
            {columns.map(column => (
              <th key={column} scope="col">
                <Outside text={column} max={80} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS_MAX).map((row, index) => (
            <tr key={index}>
              {columns.map(column => (
                <td key={column}>
                  <Cell value={row[column]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS_MAX && <p className="empty">{rows.length - ROWS_MAX} more items are not shown.</p>}
    </div>
  );
}

function Cell({ value }: { value: unknown }) {
  if (value === undefined) return null;
  if (typeof value === 'string') return <Outside text={value} max={500} />;
  if (typeof value === 'object' && value !== null) return <Json value={value} />;
  return <>{String(value)}</>;
}
