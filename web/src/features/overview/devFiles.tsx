/** The files that `mainspring dev` watches: saved ones, the mistakes of the others, and the results of their scenarios. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Name, Outside } from '@/design/text';
import { devFilesQuery } from './queries';

export function DevFiles() {
  const files = useQuery(devFilesQuery).data?.files ?? [];
  if (files.length === 0) return null;
  return (
    <section className="card" aria-labelledby="dev-files">
      <div className="card-head">
        <h2 id="dev-files">Files of this folder</h2>
      </div>
      <ul className="short-list">
        {files.map(file => {
          const errors = file.diagnostics.filter(found => found.severity === 'error');
          return (
            <li key={file.name}>
              <span className="row wrap">
                <Name text={file.name} max={60} />
                <span className="spacer" />
                {errors.length > 0 && <span className="status tone-bad">Not saved</span>}
                {errors.length === 0 && file.workflowId && <span className="status tone-ok">Saved</span>}
                {file.casesFailed > 0 && (
                  <span className="status tone-bad">
                    {file.casesFailed} of {file.casesPassed + file.casesFailed} cases failed
                  </span>
                )}
                {file.casesFailed === 0 && file.casesPassed > 0 && (
                  <span className="status tone-ok">{file.casesPassed} cases passed</span>
                )}
                {file.workflowId && (
                  <Link to="/workflows/$id" params={{ id: file.workflowId }}>
                    Workflow
                  </Link>
                )}
              </span>
              {file.diagnostics.map((found, index) => (
                <span key={index} className="small">
                  <span className="muted">{found.line ? `line ${found.line}: ` : ''}</span>
                  <Outside text={found.message} max={300} />
                  {found.help && (
                    <span className="muted">
                      {' '}
                      <Outside text={found.help} max={300} />
                    </span>
                  )}
                </span>
              ))}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
