// SPDX-License-Identifier: Apache-2.0
// A session store of the Claude Agent SDK. Each transcript (and each one of a sub-agent) is a session, each line of it an event.
import named from './named.cjs';

/** The line that the Python package wrote in events of the core pack: what is null in it is in one of these events. */
function told(seq, data, events) {
  const { value, moved } = structuredClone(data.extra);
  for (const [path, back = 0, member = path.at(-1)] of moved) {
    const last = path.slice(0, -1).reduce((part, step) => part[step], value);
    last[path.at(-1)] = structuredClone(events.get(seq - back)[member]);
  }
  return value;
}

/** The lines of a transcript; one with a uuid counts once. */
class Transcript extends named.Folded {
  reset() {
    this.lines = [];
    this.uuids = new Set();
    this.told = new Map(); // the events since the last line
  }

  apply({ type, data, seq }) {
    if (/^(message\.added|tool\.(called|returned|failed|output))$/.test(type)) this.told.set(seq, data);
    const isTold = this.told.has(seq) && data.extra?.moved !== undefined;
    if (!isTold && type !== 'transcript.line') return;
    const line = isTold ? told(seq, data, this.told) : data;
    this.told.clear();
    if (this.uuids.has(line.uuid)) return;
    if (line.uuid !== undefined && line.uuid !== null) this.uuids.add(line.uuid);
    this.lines.push(line);
  }
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
    const lines = structuredClone(entries);
    return transcript.locked(async () => {
      await transcript.refresh();
      const fresh = lines.filter(({ uuid }) => uuid === undefined || uuid === null || !transcript.uuids.has(uuid));
      if (fresh.length > 0) await transcript.append(fresh.map((line) => ['transcript.line', line]));
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
