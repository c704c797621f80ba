/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP: spans and log records of exporters become sessions.
 *
 * (1) A request is made into lines of OTLP's JSON, one for each resource, and these go through the
 *     importers otel and otel-logs, as `annal import` would pass a file of them. One importer of
 *     each kind is kept open: what a session was asked already is known as long as the server runs.
 * (2) Events have ids that are made of trace, span and record, so what is exported again changes
 *     nothing. An event whose id is in the session with other data was made of less; it stays.
 * (3) A request is answered when its events are durable. What cannot be taken is counted in a
 *     partial success, as the protocol says; a failure of the store is 503, and the exporter comes
 *     again.
 * (4) A span or record that another session of the store has is not counted again, as with import.
 *     What a session had before the importer was opened is known.
 */
#ifndef TOOLS_SERVE_OTLP_H
#define TOOLS_SERVE_OTLP_H

#include "tools/serve/serve.h"

struct otlp;

struct otlp *otlp_new(annal_store *store); /* NULL: no memory */
void otlp_free(struct otlp *otlp);         /* NULL is accepted */

/* The routes. */
void otlp_traces(struct serve *serve, struct request *request);
void otlp_logs(struct serve *serve, struct request *request);

#endif
