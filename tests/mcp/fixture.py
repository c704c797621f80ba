#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fixture.py ANNAL COMMAND...: run COMMAND beside a server, and exit with its status.

The server is annal serve with a store of one session. In front of it is a proxy, whose address is the environment's MCP_URL:
a word @URL of COMMAND, too. It adds the token, and maps the names of the conformance suite's own server (test_simple_text, test://static-text) to tools and
resources of Annal, because the suite knows no other names."""

import http.client
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

TOOLS = {"test_simple_text": ("list", {}), "test_error_handling": ("open", {"handle": "nothing-here"})}
RESOURCES = {
    "test://static-text": "annal://session/conformance",
    "test://template/123/data": "annal://session/conformance/event/2",
}
EVENTS = """{"type":"session.created","data":{"agent_id":"test","title":"Conformance"}}
{"type":"message.added","data":{"role":"user","content":"This is the content, with 123 in it."}}
"""


def renamed(message):
    """Map the names in a request; returns it and the name that its headers must have."""
    params = message.get("params") if isinstance(message, dict) else None
    if not isinstance(params, dict):
        return message, None
    if params.get("name") in TOOLS:
        params["name"], params["arguments"] = TOOLS[params["name"]]
        return message, params["name"]
    if params.get("uri") in RESOURCES:
        params["uri"] = RESOURCES[params["uri"]]
        return message, params["uri"]
    return message, None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client may close its connection at any time


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port, token = 0, ""

    def log_message(self, *_):
        pass

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "content-length", "host")}
        headers["Authorization"] = f"Bearer {self.token}"
        host = self.headers.get("Host", "")
        headers["Host"] = host.replace(str(self.server.server_port), str(self.port))
        if "Origin" in headers:
            headers["Origin"] = headers["Origin"].replace(str(self.server.server_port), str(self.port))
        try:
            message, name = renamed(json.loads(body))
        except ValueError:
            message, name = None, None
        if name is not None:
            body = json.dumps(message).encode()
            headers = {k: name if k.lower() == "mcp-name" else v for k, v in headers.items()}
        upstream = http.client.HTTPConnection("127.0.0.1", self.port)
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in ("content-length", "connection", "date"):
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        upstream.close()

    do_GET = do_POST = do_DELETE = pass_on


def main():
    annal, command = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="annal-mcp-") as directory:
        store = os.path.join(directory, "store")
        subprocess.run([annal, "--store", store, "append", "conformance"], input=EVENTS, text=True, check=True,
                       stdout=subprocess.DEVNULL)
        server = subprocess.Popen([annal, "--store", store, "serve", "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        Proxy.port = int(server.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        with open(os.path.join(store, "serve.token")) as file:
            Proxy.token = file.read().split()[-1]
        proxy = Server(("127.0.0.1", 0), Proxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        environment = {
            **os.environ,
            "MCP_URL": f"http://127.0.0.1:{proxy.server_port}/mcp",
            "MCP_STORE": store,
            "MCP_COMMAND": os.path.abspath(annal),
        }
        try:
            words = [environment["MCP_URL"] if word == "@URL" else word for word in command]
            status = subprocess.run(words, env=environment).returncode
        finally:
            server.terminate()
            server.wait()
            proxy.shutdown()
    sys.exit(status)


if __name__ == "__main__":
    main()
