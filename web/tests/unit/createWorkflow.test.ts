import { beforeEach, expect, test, vi } from 'vitest';
import { ApiError, client } from '@/api/client';
import { queryClient } from '@/app/queryClient';
import { meQuery } from '@/features/session/queries';
import { createOrFind } from '@/features/workflows/queries';

const answer = (data: unknown) =>
  Promise.resolve({ data, response: new Response(null, { headers: { etag: '"3-1"' } }) }) as never;

const refused = (status: number) => Promise.reject(new ApiError(status, 'X', 'no', null)) as never;

let get = vi.spyOn(client, 'GET');
let post = vi.spyOn(client, 'POST');

beforeEach(() => {
  get = vi.spyOn(client, 'GET');
  post = vi.spyOn(client, 'POST');
  queryClient.setQueryData(meQuery.queryKey, { userId: 'ann' } as never);
  post.mockImplementation(() => answer({ id: 'created' }));
});

const DATA = { name: 'a' };

test('an existing workflow with the slug is found and not replaced', async () => {
  get.mockImplementation(() => answer({ id: 'wf-1', slug: 'deploy', userId: 'ann' }));
  expect(await createOrFind('deploy', DATA)).toEqual({
    existing: { workflow: { id: 'wf-1', slug: 'deploy', userId: 'ann' }, etag: '"3-1"' },
  });
  expect(post).not.toHaveBeenCalled();
});

test('a new workflow has an id of its own, so that the server refuses a slug that is taken in the meantime', async () => {
  get
    .mockImplementationOnce(() => refused(404))
    .mockImplementation(() => answer({ id: 'wf-1', slug: 'deploy', userId: 'ann' }));
  post.mockImplementation(() => refused(409));
  expect(await createOrFind('deploy', DATA)).toHaveProperty('existing.workflow.id', 'wf-1');
  expect(post).toHaveBeenCalledWith('/api/workflows/sync', {
    body: { id: expect.stringMatching(/^wf-[\da-f]{16}$/) as string, slug: 'deploy', data: DATA },
  });
});

test('the workflow of another member with the slug does not matter', async () => {
  get.mockImplementation(() => answer({ id: 'wf-1', slug: 'deploy', userId: 'bob' }));
  expect(await createOrFind('deploy', DATA)).toEqual({ created: { id: 'created' } });
});

test('without a slug nothing is looked up', async () => {
  expect(await createOrFind('', DATA)).toEqual({ created: { id: 'created' } });
  expect(get).not.toHaveBeenCalled();
});

test('other refusals are reported', async () => {
  get.mockImplementation(() => refused(404));
  post.mockImplementation(() => refused(400));
  await expect(createOrFind('deploy', DATA)).rejects.toMatchObject({ status: 400 });
});
