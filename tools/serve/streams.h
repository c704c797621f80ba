/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions live, as server-sent events: history, then each event once it is durable, by the store's
 * tails.
 *
 * (1) One thread fills all streams. It waits for the descriptors of their tails, reads what is
 *     there, and goes on to the next: a stream whose client is slow is full, and is not read until
 *     the client took its bytes. So it costs no other stream anything, and no memory beyond
 *     FLOW_BYTES and one event.
 * (2) Nothing is remembered of a client. The id of an event says for each session of the stream
 *     after which event it is, and the hash of that event: a client that comes back with
 *     Last-Event-ID goes on right there. If a journal has another event there, or none, the client
 *     gets `event: resync` and everything from where the stream began: what it knows of the stream
 *     is to be thrown away.
 *     Of a stream of all sessions: stream.h.
 * (3) A stream that has nothing to say says so every HEARTBEAT_S seconds: only by that a connection
 *     notices that its client is gone (http.h, 4).
 */
#ifndef TOOLS_SERVE_STREAMS_H
#define TOOLS_SERVE_STREAMS_H

#include "tools/serve/serve.h"

#define HEARTBEAT_S         15
#define STREAM_SESSIONS_MAX 16u /* named in one stream */

struct streams;

annal_status streams_new(struct serve *serve, struct streams **out_streams, annal_error *err);

/* The route. */
void streams_open(struct serve *serve, struct request *request);

unsigned streams_count(struct streams *streams);

/* End all streams; then free, when no route runs any more. NULL is accepted. */
void streams_stop(struct streams *streams);
void streams_free(struct streams *streams);

#endif
