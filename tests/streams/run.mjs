// SPDX-License-Identifier: Apache-2.0
// run.mjs ANNAL EXPECTED: run the conformance suite and the official client against annal serve --streams, in a folder with
// suite.test.mjs and node_modules. Fails unless exactly the tests of EXPECTED fail or are skipped.
import { spawn, spawnSync } from "node:child_process";
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DurableStream } from "@durable-streams/client";

const [annal, expectedFile] = process.argv.slice(2);
const store = mkdtempSync(join(tmpdir(), "annal-streams-"));
const words = ["--store", store, "serve", "--streams", "--listen", "127.0.0.1:0"];
const server = spawn(annal, words, { stdio: ["ignore", "pipe", "inherit"] });
const line = await new Promise((resolve) => server.stdout.once("data", (bytes) => resolve(String(bytes))));
const address = /http:\S+:\d+/.exec(line)[0];
const token = readFileSync(join(store, "serve.token"), "utf8").trim().split(" ").at(-1);

/** The names of a list of EXPECTED. */
function names(list) {
    const lines = readFileSync(expectedFile, "utf8").split(`${list}:\n`)[1].split(/^\w/m)[0].split("\n");
    return lines.filter((text) => text.startsWith("  - ")).map((text) => text.slice(4));
}

/** The client of docs/streams.md. */
async function useClient() {
    const headers = { Authorization: `Bearer ${token}` };
    const stream = await DurableStream.create({ url: `${address}/v1/stream/docs`, headers, contentType: "application/json" });
    await stream.append(JSON.stringify({ text: "hello" }));
    await stream.append(JSON.stringify({ text: "world" }));
    const read = await stream.stream({ offset: "-1", live: false });
    assert.deepEqual(await read.json(), [{ text: "hello" }, { text: "world" }]);
}

try {
    await useClient();
    writeFileSync("vitest.config.mjs", 'export default { test: { include: ["suite.test.mjs"], testTimeout: 30000 } };\n');
    const suite = spawnSync("node_modules/.bin/vitest", ["run", "--reporter=json", "--outputFile=out.json"], {
        env: { ...process.env, ANNAL_URL: address, ANNAL_TOKEN: token },
        encoding: "utf8",
    });
    const tests = JSON.parse(readFileSync("out.json", "utf8")).testResults.flatMap((file) => file.assertionResults);
    for (const test of tests.filter(({ status }) => status === "failed"))
        console.log(`${test.fullName}: ${test.failureMessages[0].split("\n")[0]}`);
    const of = (...all) => tests.filter(({ status }) => all.includes(status)).map(({ fullName }) => fullName).sort();
    assert.deepEqual(of("failed"), names("failed").sort(), suite.stderr);
    assert.deepEqual(of("skipped", "pending", "todo"), names("skipped").sort());
    assert.ok(tests.length >= 321, `the suite has only ${tests.length} tests`);
    console.log(`streams: ${of("passed").length} of ${tests.length} tests of the conformance suite pass, and the client`);
} finally {
    server.kill();
    await new Promise((resolve) => server.once("exit", resolve));
    rmSync(store, { recursive: true });
}
