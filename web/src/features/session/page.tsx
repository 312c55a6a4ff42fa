/** Sign-in with a token or at the OpenID Connect provider. */
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Failed, Field } from '@/design/parts';
import { signIn, signInWithCode } from './queries';
import './style.css';

/** True if the server has a provider: it then redirects, which the request does not follow. */
async function hasProvider(next: string): Promise<boolean> {
  const response = await fetch(providerPath(next), { redirect: 'manual', credentials: 'omit' });
  return response.type === 'opaqueredirect';
}

function providerPath(next: string): string {
  return `/sign-in/oidc?next=${encodeURIComponent(next)}`;
}

/**
 * Takes the one-time code out of the address, so that it stays neither on screen nor in the history. A second call finds
 * none.
 */
function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code) window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}

export function SignInPage() {
  const next = useSearch({ strict: false }).next ?? '/';
  const navigate = useNavigate();
  const provider = useQuery({
    queryKey: ['provider'],
    queryFn: () => hasProvider(next),
    staleTime: Infinity,
    retry: false,
  });
  const [token, setToken] = useState('');
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  const enter = async (begin: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await begin();
      await navigate({ to: next, replace: true });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };

  useEffect(() => {
    const code = takeCode();
    if (code) void enter(() => signInWithCode(code));
  });

  return (
    <main className="sign-in">
      <form
        className="card sign-in-card"
        onSubmit={event => {
          event.preventDefault();
          void enter(() => signIn(token.trim()));
        }}
      >
        <h1>Sign in to Mainspring</h1>
        {provider.data && (
          <a className="button primary" href={providerPath(next)}>
            Sign in with your organization
          </a>
        )}
        <Field label="Token" hint="An administrator creates tokens. `mainspring token` does as well.">
          {attributes => (
            <input
              {...attributes}
              className="input mono"
              type="password"
              autoComplete="current-password"
              autoFocus
              required
              value={token}
              onChange={event => setToken(event.target.value)}
            />
          )}
        </Field>
        {error !== undefined && <Failed error={error} />}
        <button className={provider.data ? 'button' : 'button primary'} disabled={isBusy || token.trim() === ''}>
          {isBusy ? 'Signing in…' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
