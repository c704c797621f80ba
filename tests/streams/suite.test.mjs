// SPDX-License-Identifier: Apache-2.0
// The conformance suite of Durable Streams, with the token of the server in each request: the suite sends none.
import { runConformanceTests } from "@durable-streams/server-conformance-tests";

const bare = globalThis.fetch;
globalThis.fetch = (input, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("Authorization", `Bearer ${process.env.ANNAL_TOKEN}`);
    return bare(input, { ...init, headers });
};
runConformanceTests({ baseUrl: process.env.ANNAL_URL });
