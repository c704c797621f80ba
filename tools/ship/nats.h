/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in a stream of NATS JetStream, for those who follow a fleet live.
 *
 *     annal.events.<0 to 63>     an event; all of a session in one of these subjects
 *     bucket ANNAL_HEADS         <store>.<session>, both as hashes: how far a session was shipped
 *
 * (1) An event arrives at least once. Its headers say store, session, seq, the hash h, and that of
 *     the event before it; with these a reader knows what it has already, what it misses, and what
 *     does not belong there. JetStream's own duplicate window only makes repeats rare.
 * (2) An event that is larger than a message may be is several messages, with Annal-Part.
 * (3) A head is written after the stream acknowledged the events. It names the message of the last
 *     one, which is looked up before the session goes on: if the stream does not have it (it was
 *     restored or made again), the session is sent from its first event.
 */
#ifndef TOOLS_SHIP_NATS_H
#define TOOLS_SHIP_NATS_H

#include <annal/base.h>

#include <loaded/nats.h>

enum { NATS_PARTITIONS = 64 };

#define NATS_STREAM   "ANNAL"
#define NATS_SUBJECTS "annal.events.*"

/* Connect to all servers of nats://HOST:PORT,HOST:PORT; ANNAL_ERR_BUSY if none answers. */
annal_status nats_connect(const char *url, uint32_t quiet_ms, natsConnection **out_connection,
                          jsCtx **out_js, annal_error *err);

/* For messages: without a password. Valid until the next call. */
const char *nats_name(const char *url);

#endif
