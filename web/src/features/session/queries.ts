/** Requests of the session: the identity of the reader, sign-in and sign-out. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { ApiError, call, client, type Me, type Permission } from '@/api/client';
import { queryClient } from '@/app/queryClient';

const ME = ['me'];

/** The identity of the reader; null without a session. */
export const meQuery = queryOptions({
  queryKey: ME,
  queryFn: async (): Promise<Me | null> => {
    try {
      return await call(client.GET('/api/me'));
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

/** True if the session has the permission. Pages use it to leave out what the server would refuse. */
export function useCan(): (permission: Permission) => boolean {
  const permissions = useQuery(meQuery).data?.permissions ?? [];
  return permission => permissions.includes(permission);
}

/**
 * True if the reader may act on what belongs to this member: their own, or as an owner or admin anyone's. The server asks
 * for this besides the permission.
 */
export function mayActFor(me: Me | null, userId: string | null | undefined): boolean {
  if (!me || !userId) return false;
  const isAdmin = me.isPerson && (me.role === 'owner' || me.role === 'admin');
  return isAdmin || me.userId === userId;
}

export function useMayActFor(): (userId: string | null | undefined) => boolean {
  const me = useMe();
  return userId => mayActFor(me, userId);
}

export function useMe(): Me | null {
  return useQuery(meQuery).data ?? null;
}

export const organizationQuery = queryOptions({
  queryKey: ['organization', 'name'],
  queryFn: () => call(client.GET('/api/organization')),
  staleTime: 60_000,
});

/** Starts a session with a token. Nothing of an earlier session stays in the cache. */
export async function signIn(token: string): Promise<void> {
  await call(client.POST('/api/session', { body: { token } }));
  queryClient.clear();
}

/** Starts a session with the one-time code of an address that a command has opened. */
export async function signInWithCode(code: string): Promise<void> {
  await call(client.POST('/api/session', { body: { code } }));
  queryClient.clear();
}

/** Ends the session at the server. */
export async function signOut(): Promise<void> {
  await call(client.DELETE('/api/session'));
  queryClient.clear();
  queryClient.setQueryData(ME, null);
}

/** Forgets a session that the server no longer accepts. */
export function forgetSession() {
  queryClient.setQueryData(ME, null);
}
