/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP over HTTP: spans and log records of exporters become sessions.
 *
 * (1) A request is converted to lines of OTLP's JSON, one per resource. The importers otel and
 *     otel-logs read these lines as `annal import` would read a file of them. One importer of each
 *     kind stays open, and remembers sessions while the server runs.
 * (2) The ids of events are computed from trace, span and record, so a repeated export changes
 *     nothing. If the session already has an event with the same id and different data, from an
 *     incomplete export, that event is kept.
 * (3) A request is answered when its events are durable. Rejected items are counted in a partial
 *     success, as the protocol specifies; a failure of the store is status 503, and the exporter
 *     retries.
 * (4) As with import, a span or record that another session of the store contains is not counted
 *     again. The importer also knows the content that sessions had before it was opened.
 */
#pragma once

#include "tools/serve/serve.h"

struct otlp;

struct otlp *serve_otlp_new(annal_store *store); /* Returns NULL if memory ran out. */
void serve_otlp_free(struct otlp *otlp);         /* accepts NULL */

/* The routes. */
void serve_otlp_traces(struct serve *serve, struct request *request);
void serve_otlp_logs(struct serve *serve, struct request *request);
