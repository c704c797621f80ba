// SPDX-License-Identifier: Apache-2.0
// A session store of the Claude Agent SDK. Each transcript (and each one of a sub-agent) is a session, its lines
// are messages, calls of tools, their results, tokens and turns of the core pack; a line that is none of these is an event of its own.
import { Conflict, name } from './index.mjs';
import meaning from './meaning.cjs';
import named from './named.cjs';

const LINE = 'transcript.line';
const SPEECH = new Set(['text', 'thinking', 'redacted_thinking', 'image', 'document']);

/** The lines of a transcript; one with a uuid counts once. */
class Transcript extends meaning.Told {
  reset() {
    super.reset();
    this.lines = [];
    this.uuids = new Set();
  }

  birth() {
    const created = { agent_id: this.agent, provider: 'anthropic' };
    if (this.parts.length > 3) created.parent_session_id = name(...this.parts.slice(0, 3));
    return [['session.created', created]];
  }

  apply(event) {
    this.hear(event);
    const line = this.whole(event, LINE);
    if (line === undefined || this.uuids.has(line.uuid)) return;
    if (line.uuid !== undefined && line.uuid !== null) this.uuids.add(line.uuid);
    this.lines.push(line);
  }
}

/** The events of a line. */
function tell(telling, entry) {
  const { type, message } = entry;
  if ((type === 'user' || type === 'assistant') && typeof message === 'object' && message !== null && !Array.isArray(message)) {
    tellMessage(telling, entry, message);
  } else if (type === 'custom-title' || type === 'ai-title') {
    const title = entry.customTitle ?? entry.aiTitle;
    if (typeof title === 'string') telling.add('session.updated', { set: { title } });
  }
}

function tellMessage(telling, entry, message) {
  const { type: role } = entry;
  const { content, usage } = message;
  const whole = ['message', 'content'];
  const said = { id: String(entry.uuid || message.id || '~').slice(0, 8), role };
  const blocks = Array.isArray(content) ? content : [];
  const kinds = new Set(blocks.map((block) => block?.type));
  const byAgent = entry.isMeta || entry.isCompactSummary || kinds.has('tool_result');
  if (role === 'user' && !byAgent && (typeof content === 'string' || kinds.has('text'))) telling.ask();
  if (typeof content === 'string' || (blocks.length > 0 && [...kinds].every((kind) => SPEECH.has(kind))))
    telling.add('message.added', { ...said, content: null }, { content: whole });
  else blocks.forEach((block, place) => tellBlock(telling, said, block, [...whole, place]));
  if (role !== 'assistant' || typeof usage !== 'object' || usage === null) return;
  tellUsage(telling, entry, message, usage);
  if (message.stop_reason === 'end_turn' || message.stop_reason === 'stop_sequence') telling.answer();
}

function tellBlock(telling, said, block, path) {
  if (block?.type === 'text' && typeof block.text === 'string') {
    telling.add('message.added', { ...said, content: null }, { content: [...path, 'text'] });
  } else if (block?.type === 'tool_use' && typeof block.id === 'string') {
    const [data, moved] = 'input' in block ? [{ input: null }, { input: [...path, 'input'] }] : [{}, {}];
    telling.call(block.id, String(block.name), data, moved);
  } else if (block?.type === 'tool_result' && typeof block.tool_use_id === 'string') {
    const [data, moved] = 'content' in block ? [{ output: null }, { output: [...path, 'content'] }] : [{}, {}];
    telling.result(block.tool_use_id, Boolean(block.is_error), data, moved);
  }
}

/** The tokens of a message, which each of its lines repeats: what is new. */
function tellUsage(telling, entry, message, usage) {
  const count = (member) => (Number.isSafeInteger(usage[member]) ? usage[member] : 0);
  const of = String(message.id || entry.uuid);
  const [read, written] = [count('cache_read_input_tokens'), count('cache_creation_input_tokens')];
  const tokens = { output_tokens: count('output_tokens') };
  const known = telling.counted(of);
  if (known === undefined) {
    tokens.input_tokens = count('input_tokens') + read + written;
    Object.assign(tokens, { cached_input_tokens: read, cache_write_tokens: written });
  } else {
    tokens.output_tokens -= known;
  }
  telling.usage(message.model, tokens, of);
}

const partsOf = ({ projectKey, sessionId, subpath }) =>
  subpath === undefined || subpath === null ? [projectKey, sessionId] : [projectKey, sessionId, subpath];

/** Transcripts in a store, durable when append() resolves. The store stays the caller's. */
export class AnnalSessionStore {
  #transcripts;
  #fold;

  /** With the SDK's foldSessionSummary(), listSessionSummaries() exists. */
  constructor(store, { foldSessionSummary } = {}) {
    this.#transcripts = new named.Named(store, 'claude-agent', Transcript);
    this.#fold = foldSessionSummary;
    if (foldSessionSummary === undefined) this.listSessionSummaries = undefined;
  }

  /** Append lines: all of them, or none. A uuid that exists already is left out. */
  append(key, entries) {
    const transcript = this.#transcripts.get(...partsOf(key));
    const lines = JSON.stringify(entries);
    return transcript.locked(async () => {
      for (;;) {
        await transcript.refresh();
        const fresh = JSON.parse(lines).filter(({ uuid }) => uuid === undefined || uuid === null || !transcript.uuids.has(uuid));
        if (fresh.length === 0) return;
        let telling;
        const drafts = fresh.flatMap((line) => {
          tell((telling = new meaning.Telling(transcript, telling)), line);
          return telling.drafts(LINE, line);
        });
        try {
          await transcript.append(drafts, transcript.seq);
          return;
        } catch (error) {
          if (!(error instanceof Conflict)) throw error; // another process appended lines
        }
      }
    });
  }

  /** All lines of a transcript; null if the transcript does not exist. */
  load(key) {
    const transcript = this.#transcripts.get(...partsOf(key));
    return transcript.locked(async () => ((await transcript.refresh()) ? structuredClone(transcript.lines) : null));
  }

  async #names(...beginning) {
    const found = [];
    for await (const parts of this.#transcripts.all())
      if (beginning.every((part, place) => parts[place] === part)) found.push(parts);
    return found;
  }

  /** The transcripts of a project, without the transcripts of sub-agents. */
  async listSessions(projectKey) {
    const names = (await this.#names(projectKey)).filter((parts) => parts.length === 2);
    return Promise.all(
      names.map(async (parts) => ({
        sessionId: parts[1],
        mtime: Math.floor(Number((await this.#transcripts.get(...parts).session.info()).lastTsUs) / 1000),
      })),
    );
  }

  /** What the SDK makes of each transcript of a project. */
  async listSessionSummaries(projectKey) {
    const found = [];
    for (const { sessionId, mtime } of await this.listSessions(projectKey)) {
      const key = { projectKey, sessionId };
      const entries = await this.load(key);
      if (entries?.length > 0) found.push({ ...this.#fold(undefined, key, entries), mtime });
    }
    return found;
  }

  /** Delete a transcript for good, and with a session the transcripts of its sub-agents. */
  async delete(key) {
    const parts = partsOf(key);
    const below = parts.length === 2 ? (await this.#names(...parts)).filter((name) => name.length === 3) : [];
    for (const gone of [...below, parts]) { // the main transcript last: an interrupted call can be repeated
      const transcript = this.#transcripts.get(...gone);
      await transcript.locked(() => named.remove(transcript.session));
    }
  }

  /** The subpaths of a session. */
  async listSubkeys({ projectKey, sessionId }) {
    return (await this.#names(projectKey, sessionId)).filter((parts) => parts.length === 3).map((parts) => parts[2]);
  }
}
