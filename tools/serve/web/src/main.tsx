/* SPDX-License-Identifier: Apache-2.0 */
import { render } from 'preact';
import { useState } from 'preact/hooks';
import { Server } from './api';
import { Frame } from './app';
import { askOthers, Live } from './live';
import { takeToken } from './route';
import { openFile } from './share';
import './style.css';
import { AppContext, applyTheme, type App } from './ui';

const root = document.getElementById('app')!;
const TOKEN = 'annal.token';

function AskToken({ refused }: { refused: boolean }) {
  const [token, setToken] = useState('');
  return (
    <main class="ask">
      <form
        onSubmit={(e) => {
          e.preventDefault();
          sessionStorage.setItem(TOKEN, token.trim());
          void start();
        }}
      >
        <h1>Annal</h1>
        <p>
          {refused ? 'The server rejects this token. ' : ''}Other users of this machine could read your sessions,
          so the page needs the server's token, which is in the file <code>serve.token</code> in the directory of the store.
          On a terminal <code>annal serve</code> prints an address with it, and <code>--open</code> opens that.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={(e) => setToken(e.currentTarget.value)}
            required
          />
        </label>
        <button class="button main">Open</button>
      </form>
    </main>
  );
}

async function start(): Promise<void> {
  const file = openFile();
  if (file) {
    const app: App = { source: file, server: null, live: null, info: null };
    if (!location.hash.startsWith('#/s/')) history.replaceState(null, '', `#/s/${encodeURIComponent(file.root)}`);
    render(
      <AppContext.Provider value={app}>
        <Frame />
      </AppContext.Provider>,
      root,
    );
    return;
  }
  const given = takeToken();
  if (given) sessionStorage.setItem(TOKEN, given);
  const token = given ?? sessionStorage.getItem(TOKEN) ?? (await askOthers());
  if (!token) return render(<AskToken refused={false} />, root);
  const server = new Server(token);
  server.onUnauthorized = () => {
    sessionStorage.removeItem(TOKEN);
    render(<AskToken refused={true} />, root);
  };
  sessionStorage.setItem(TOKEN, token);
  const live = new Live(server);
  const app: App = { source: server, server, live, info: null };
  const draw = () =>
    render(
      <AppContext.Provider value={{ ...app }}>
        <Frame />
      </AppContext.Provider>,
      root,
    );
  draw();
  live.start();
  server.info().then(
    (info) => {
      app.info = info;
      if (server.token === sessionStorage.getItem(TOKEN)) draw();
    },
    () => {},
  );
}

applyTheme();
void start();
