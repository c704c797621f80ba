// SPDX-License-Identifier: Apache-2.0
// Compiled by tsc --strict, and never run: what a user may write.
import annal, { Conflict, open, type Draft, type Integer } from 'libannal';

await using store = await open('store', { level: 'batch', batchMs: 5 });
const session = store.session(annal.name('thread', '1'));
const seq: number = await session.append('tool.called', { tool: 'bash' }, { id: 'call-1', expectedSeq: 0n });
const drafts: Draft[] = [{ type: 'a', data: [1, null], ts: new Date() }];
const seqs: number[] = await session.appendMany([...drafts, ['b'], ['c', { n: 1 }]], { expectedSeq: seq });
for await (const event of session.events({ fromSeq: 2, signal: AbortSignal.timeout(1000) })) {
  const time: Integer = event.tsUs;
  const text: string = event.data.text ?? event.ref;
  await session.append('note', { text, time: String(time) }, { cause: event });
}
for await (const event of store.query({ types: ['tool.*'], since: '2026-01-01', limit: 3 })) event.seq satisfies number;
{
  await using state = await session.state({ at: seqs[0] ?? 1 });
  const rows = await state.sql('SELECT status FROM tool_calls WHERE call_id = ?1', ['c']);
  rows[0]?.[0] satisfies string | Integer | Buffer | null | undefined;
  rows.objects()[0]?.['status'];
}
using tail = session.tail({ fromNow: true });
const next = await tail.next({ timeout: 10 });
if (next !== null) await tail.commit();
try {
  await session.append('x');
} catch (error) {
  if (error instanceof Conflict && error instanceof annal.Error) error.osErrno satisfies number;
}
const sum: number = await annal.run('job', { store, session: 'job', resume: true }, async (run) => {
  for (const { callId, input } of run.recovery?.calls ?? []) await run.message('user', [callId, input ?? null]);
  const [one] = await run.step('load', () => [1, 2], { retries: 1, timeout: 100 });
  return run.tool('add', {}, async () => one ?? 0);
});
const found: annal.Found[] = await store.find(['sum', String(sum)], { places: 1 });
(await session.step('again', async (signal) => signal?.aborted ?? found.length)) satisfies number | boolean;
const add: (a: number) => Promise<number> = annal.record((a: number) => a + 1, { store });
await add(1);
// @ts-expect-error a level that does not exist
await session.append('x', {}, { level: 'soon' });

import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';
import { AnnalSaver } from 'libannal/langgraph';

const saver: BaseCheckpointSaver<string> = new AnnalSaver(store, { level: 'batch' });
await saver.deleteThread('t');

import type { Session } from '@openai/agents-core';
import { AnnalSessionStore } from 'libannal/claude-agent';
import { AnnalSession } from 'libannal/openai-agents';

const conversation: Session = new AnnalSession(store, { sessionId: 'user 42' });
await conversation.popItem();
const transcripts = new AnnalSessionStore(store);
(await transcripts.load({ projectKey: 'p', sessionId: 's' }))?.length satisfies number | undefined;
