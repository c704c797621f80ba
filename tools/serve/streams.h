/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live sessions as server-sent events: history first, then each event once it is durable, from the
 * tails of the store.
 *
 * (1) The thread of waits.h fills all streams. It waits for the descriptors of their tails, reads
 *     the available events, and continues with the next stream. The stream of a slow client is full
 *     and is not read until the client has received its bytes. So it neither delays another stream
 *     nor uses more memory than FLOW_BYTES and one event.
 * (2) The server stores nothing about a client. The id of an event contains, for each session of
 *     the stream, a position: the seq and the hash of the last sent event. A client that reconnects
 *     with Last-Event-ID continues from these positions. If a journal has a different event there,
 *     or none, the client receives `event: resync` and everything from the start of the stream; it
 *     must discard what it received earlier. For a stream of all sessions see struct place_of_all.
 * (3) An idle stream sends a comment every HEARTBEAT_S seconds: only then does the connection
 *     notice that its client has disconnected (http.h, 4).
 */
#pragma once

#include "tools/serve/serve.h"

#define HEARTBEAT_S         15
#define STREAM_SESSIONS_MAX 16u /* maximum number of sessions that a stream may name */

/* The route that opens a stream. */
void streams_open(struct serve *serve, struct request *request);
