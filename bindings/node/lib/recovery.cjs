// SPDX-License-Identifier: Apache-2.0
// The information that a new process needs to continue a session: `annal show --recovery` prints the same.
'use strict';

const LOOK_BACK = 20_480; // events in which the last messages are looked for

async function readRecovery(session) {
  const state = await session.state();
  let status = '';
  let calls;
  let turns;
  try {
    if (state.seq > 0) [[status]] = await state.sql('SELECT status FROM sessions');
    calls = (await state.sql('SELECT call_id, tool, seq, called_at, turn_id FROM dangling ORDER BY seq')).objects();
    turns = (
      await state.sql('SELECT turn_id, seq, status, created_at, sequence FROM turns WHERE completed_at IS NULL ORDER BY sequence')
    ).objects();
  } finally {
    await state.close();
  }
  const last = new Map();
  for await (const event of session.reversed()) {
    if (event.seq <= state.seq - LOOK_BACK || (last.has('user') && last.has('assistant'))) break;
    const role = event.type === 'message.added' && event.seq <= state.seq ? event.data?.role : undefined;
    if (role !== undefined && !last.has(role)) last.set(role, event);
  }
  const input = async (seq) => {
    const data = (await session.at(seq - 1))?.data;
    return data?.input ?? data?.arguments;
  };
  return {
    session: session.id,
    seq: state.seq,
    status,
    calls: await Promise.all(
      calls.map(async ({ call_id: callId, tool, seq, called_at: calledAt, turn_id: turnId }) => ({
        callId, tool, input: await input(seq), seq, calledAt, turnId,
      })),
    ),
    turns: turns.map(({ turn_id: turnId, seq, status: now, created_at: createdAt, sequence }) => ({
      turnId, seq, status: now, createdAt, sequence,
    })),
    lastUser: last.get('user') ?? null,
    lastAssistant: last.get('assistant') ?? null,
  };
}

module.exports = { readRecovery };
