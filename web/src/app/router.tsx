/** The addresses of the console. Each page is a chunk of its own; its state is in the address. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { Failed, Loading } from '@/design/parts';
import { meQuery } from '@/features/session/queries';
import { queryClient } from './queryClient';
import { Shell } from './shell';

type Raw = Record<string, unknown>;

/** The text of a search parameter, if there is one. */
function text(raw: Raw, key: string): string | undefined {
  const value = raw[key];
  return typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : undefined;
}

/** Reads these parameters and drops all others. */
function texts<K extends string>(...keys: K[]) {
  return (raw: Raw): { [key in K]?: string | undefined } => {
    const found: { [key in K]?: string | undefined } = {};
    for (const key of keys) {
      const value = text(raw, key);
      if (value !== undefined) found[key] = value;
    }
    return found;
  };
}

function NotFound() {
  return (
    <div className="page">
      <h1>There is no such page</h1>
      <p>
        The address may be cut off. <a href="/">Go to the overview</a>.
      </p>
    </div>
  );
}

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });

const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  validateSearch: texts('next'),
  beforeLoad: async () => {
    if (await queryClient.ensureQueryData(meQuery).catch(() => null)) throw redirect({ to: '/' });
  },
  component: lazyRouteComponent(() => import('@/features/session/page'), 'SignInPage'),
});

/** All pages behind the sign-in. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  beforeLoad: async ({ location }) => {
    const me = await queryClient.ensureQueryData(meQuery);
    if (!me) throw redirect({ to: '/login', search: { next: location.href } });
  },
  component: Shell,
});

const overview = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  component: lazyRouteComponent(() => import('@/features/overview/page'), 'OverviewPage'),
});

const executions = createRoute({
  getParentRoute: () => signedIn,
  path: '/executions',
  validateSearch: texts('status', 'workflow', 'outcome', 'trigger', 'text', 'since'),
  component: lazyRouteComponent(() => import('@/features/executions/page'), 'ExecutionsPage'),
});

const execution = createRoute({
  getParentRoute: () => signedIn,
  path: '/executions/$id',
  validateSearch: texts('view', 'step', 'attempt', 'frame'),
  component: lazyRouteComponent(() => import('@/features/execution/page'), 'ExecutionPage'),
});

const approvals = createRoute({
  getParentRoute: () => signedIn,
  path: '/approvals',
  validateSearch: texts('item', 'of'),
  component: lazyRouteComponent(() => import('@/features/approvals/page'), 'ApprovalsPage'),
});

const workflows = createRoute({
  getParentRoute: () => signedIn,
  path: '/workflows',
  validateSearch: texts('text'),
  component: lazyRouteComponent(() => import('@/features/workflows/page'), 'WorkflowsPage'),
});

const newWorkflow = createRoute({
  getParentRoute: () => signedIn,
  path: '/workflows/new',
  component: lazyRouteComponent(() => import('@/features/workflows/newPage'), 'NewWorkflowPage'),
});

const workflow = createRoute({
  getParentRoute: () => signedIn,
  path: '/workflows/$id',
  validateSearch: texts('view', 'from', 'to', 'rerun', 'proposal'),
  component: lazyRouteComponent(() => import('@/features/workflows/onePage'), 'WorkflowPage'),
});

const triggers = createRoute({
  getParentRoute: () => signedIn,
  path: '/triggers',
  validateSearch: texts('workflow', 'text'),
  component: lazyRouteComponent(() => import('@/features/triggers/page'), 'TriggersPage'),
});

const trigger = createRoute({
  getParentRoute: () => signedIn,
  path: '/triggers/$id',
  component: lazyRouteComponent(() => import('@/features/triggers/onePage'), 'TriggerPage'),
});

const installation = createRoute({
  getParentRoute: () => signedIn,
  path: '/installation',
  validateSearch: texts('section', 'text'),
  component: lazyRouteComponent(() => import('@/features/installation/page'), 'InstallationPage'),
});

export const router = createRouter({
  routeTree: root.addChildren([
    login,
    signedIn.addChildren([
      overview,
      executions,
      execution,
      approvals,
      workflows,
      newWorkflow,
      workflow,
      triggers,
      trigger,
      installation,
    ]),
  ]),
  defaultPreload: 'intent',
  defaultPendingMs: 300,
  defaultPendingComponent: () => <Loading what="the page" />,
  defaultErrorComponent: ({ error, reset }) => (
    <div className="page">
      <Failed error={error} retry={reset} />
    </div>
  ),
  scrollRestoration: true,
  // Values stay as written: `?text=1` is the text "1".
  parseSearch: search => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: search => {
    const pairs = Object.entries(search).filter(([, value]) => value !== undefined && value !== '');
    const query = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
    return query && `?${query}`;
  },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
