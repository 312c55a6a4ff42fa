/** The parts that all sections share: a table with its heads, and the button for the next page. */
import type { ReactNode } from 'react';

export function Table({ label, heads, children }: { label: string; heads: string[]; children: ReactNode }) {
  return (
    <div className="table-scroll card" tabIndex={0} role="region" aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {heads.map((head, index) => (
              <th key={index} scope="col">
                {head || <span className="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

interface Pages {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => Promise<unknown>;
}

export function More({ pages }: { pages: Pages }) {
  if (!pages.hasNextPage) return null;
  return (
    <button
      type="button"
      className="button"
      disabled={pages.isFetchingNextPage}
      onClick={() => void pages.fetchNextPage()}
    >
      {pages.isFetchingNextPage ? 'Loading…' : 'Load more'}
    </button>
  );
}
