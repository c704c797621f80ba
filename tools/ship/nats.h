/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in a stream of NATS JetStream, for programs that follow a fleet live.
 *
 *     annal.events.<0 to 63>     an event; each session uses one of these subjects
 *     bucket ANNAL_HEADS         <store>.<session>, both as hashes: the head of a session
 *
 * (1) Each event arrives at least once. Its headers contain the store, session, seq, the hash h and
 *     the hash of the event before it; from these a reader detects repeats, gaps and foreign
 *     messages. JetStream's own duplicate window only makes repeats rare.
 * (2) An event that is larger than the maximum message is sent as several messages with Annal-Part.
 * (3) A head, the record of a session's last event, is written after the stream acknowledged the
 *     events. It contains the number of the last event's message, and the shipper looks up that
 *     message before it continues the session: if the stream does not have it (the stream was
 *     restored or created again), the session is sent from its first event.
 */
#pragma once

#include <annal/base.h>

#include <loaded/nats.h>

enum { NATS_PARTITIONS = 64 };

#define NATS_STREAM   "ANNAL"
#define NATS_SUBJECTS "annal.events.*"

/* Connect to one of the servers of nats://HOST:PORT,HOST:PORT. ANNAL_ERR_BUSY if none answers. */
annal_status nats_connect(const char *url, uint32_t quiet_ms, natsConnection **out_connection,
                          jsCtx **out_js, annal_error *err);

/* Return the URL without a password, for messages. Valid until the next call. */
const char *nats_name(const char *url);
