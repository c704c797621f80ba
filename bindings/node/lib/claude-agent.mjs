// SPDX-License-Identifier: Apache-2.0
// A session store of the Claude Agent SDK. Each transcript (and each one of a sub-agent) is a session, each line of it an event.
import named from './named.cjs';

/** The lines of a transcript; one with a uuid counts once. */
class Transcript extends named.Folded {
  reset() {
    this.lines = [];
    this.uuids = new Set();
  }

  apply({ type, data }) {
    if (type !== 'transcript.line' || this.uuids.has(data.uuid)) return;
    if (data.uuid !== undefined && data.uuid !== null) this.uuids.add(data.uuid);
    this.lines.push(data);
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
