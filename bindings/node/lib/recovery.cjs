// SPDX-License-Identifier: Apache-2.0
// The information that a new process needs to continue a session: annal_recovery_get().
'use strict';

/** The input of a call that the library did not read, because there are so many; undefined if it has none. */
async function inputOf(session, seq) {
  const data = (await session.at(seq - 1))?.data;
  return data?.input ?? data?.arguments;
}

/** The answer of the operation `recovery` about this session. */
async function readRecovery(session, table) {
  const [seq, status, userSeq, assistantSeq, callCount] = Array.from({ length: 5 }, () => table.next());
  const calls = Array.from({ length: callCount }, () =>
    table.row(6, (callId, tool, input, at, calledAt, turnId) => ({
      callId, tool, input: input === null ? undefined : JSON.parse(input), seq: at, calledAt, turnId,
    })),
  );
  const turns = table.rows(5, (turnId, at, now, createdAt, sequence) => ({ turnId, seq: at, status: now, createdAt, sequence }));
  for (const call of calls) if (call.input === undefined) call.input = await inputOf(session, call.seq);
  const message = async (at) => (at > 0 ? ((await session.at(at - 1)) ?? null) : null);
  return {
    session: session.id, seq, status, calls, turns,
    lastUser: await message(userSeq), lastAssistant: await message(assistantSeq),
  };
}

module.exports = { readRecovery };
