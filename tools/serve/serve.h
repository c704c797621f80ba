/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal serve: what its files share. docs/serve.md describes the API and the rights.
 *
 * A complete request arrives through http.h; access.h checks its rights, and routes.c finds its
 * route. Most routes call the store in a thread of the pool (pool.h) and answer with a text; routes
 * with many events fill a flow (events.c); streams.h follows sessions live.
 */
#pragma once

#include "tools/cli/args.h"
#include "tools/serve/access.h"
#include "tools/serve/filler.h"
#include "tools/serve/http.h"
#include "tools/serve/pool.h"

#include <annal/annal.h>

#define JSON_TYPE   "application/json"
#define NDJSON_TYPE "application/x-ndjson"

struct serve {
    annal_store *store;
    annal_index *index;
    struct pool *pool;
    struct waits *waits;
    _Atomic unsigned stream_count; /* number of live streams */
    /* the streams of other programs (durable.h); NULL if they are not served */
    struct durable *durable;
    _Atomic unsigned pause_count; /* number of their requests that wait */
    struct otlp *otlp;
    struct past *past;
    struct filler *filler;
    struct intake *intake;
    struct access access;
    bool read_only;
    bool is_near; /* whether only this machine reaches the listener */
    int log_fd;   /* descriptor of the log; -1 if requests are not logged */
    int64_t begun_us;
};

struct route {
    const char *method;
    /* path of the route; {} matches one part of a path, the first {} a session id; {*} at the end
     * matches the rest of a path, the name of a stream */
    const char *path;
    enum right right;
    enum pool_queue queue;
    size_t body_max;
    void (*run)(struct serve *serve, struct request *request);
    /* names of the query parameters, each between spaces; * after a name: it may be given several
     * times; NULL: any */
    const char *params;
};

extern const struct route routes[];

/* The callbacks of struct http_program (http.h). */
void routes_admit(void *arg, struct request *request);
bool routes_run(void *arg, struct request *request);
void routes_done(void *arg, const struct request *request, uint64_t bytes);

/* ---- Answers ---- */

/* These return false, for a caller that returns whether the request is to be continued. */
bool answer_error(struct request *request, unsigned status, const char *code, const char *format,
                  ...) ANNAL_PRINTF(4, 5);

/* answer_failure_status() returns the HTTP status for a failure of the library; answer_failure()
 * answers a request with the failure. */
unsigned answer_failure_status(const annal_error *err);
bool answer_failure(struct request *request, const annal_error *err);
bool answer_no_memory(struct request *request);

/* Complete the JSON in request->answer, which has no final line break, with status 200. If status
 * is a failure, answer with err instead. */
void answer_json(struct request *request, annal_status status, const annal_error *err);

/* Compress the answer, if it is long, and the client accepts gzip. */
void answer_compress(struct request *request);

/* ---- Parameters. If one is invalid, these answer the request and return false ---- */

bool answer_number(struct request *request, const char *name, uint64_t most, uint64_t *out);
/* Read the parameter limit, from 1 to most. If it is invalid, answers the request and returns
 * false. */
bool answer_limit(struct request *request, uint64_t most, uint64_t *out);
/* Read since and until. A range whose end is before its beginning is invalid. */
bool answer_range(struct request *request, struct time_range *out);
bool answer_choice(struct request *request, const char *name, const char *const *choices, int *out);

/* Read all values of a parameter, at most `most`. They point into the request; free *out with
 * annal__free(). */
bool answer_list(struct request *request, const char *name, size_t most, annal_slice **out,
                 size_t *out_count);

/* ---- Routes ---- */

void serve_sessions_list(struct serve *serve, struct request *request);
void serve_sessions_one(struct serve *serve, struct request *request);
void serve_sessions_children(struct serve *serve, struct request *request);
void serve_sessions_facets(struct serve *serve, struct request *request);
void events_list(struct serve *serve, struct request *request);
void serve_append_events(struct serve *serve, struct request *request);
void serve_append_fork(struct serve *serve, struct request *request);
void transfer_get(struct serve *serve, struct request *request);
void transfer_admit(struct serve *serve, struct request *request);
void transfer_put(struct serve *serve, struct request *request);
void transfer_received(struct serve *serve, struct request *request);
void serve_verify_run(struct serve *serve, struct request *request);
void serve_metrics_get(struct serve *serve, struct request *request);
void serve_watch_get(struct serve *serve, struct request *request);
void intake_logs(struct serve *serve, struct request *request);
void intake_state(struct serve *serve, struct request *request);
void intake_import(struct serve *serve, struct request *request);
void serve_proof_get(struct serve *serve, struct request *request);
void serve_timeline_get(struct serve *serve, struct request *request);
void share_get(struct serve *serve, struct request *request);
void serve_mcp_post(struct serve *serve, struct request *request);
void serve_state_state(struct serve *serve, struct request *request);
void serve_state_diff(struct serve *serve, struct request *request);
void question_post(struct serve *serve, struct request *request);
void ask_schema(struct serve *serve, struct request *request);
void ask_usage(struct serve *serve, struct request *request);
void ask_search(struct serve *serve, struct request *request);
void ask_diff(struct serve *serve, struct request *request);

/* Append an event (answer_event_json()) or damage (answer_damage_json()) as one line of JSON
 * without a line break. */
annal_status answer_event_json(struct buf *out, annal_slice session, const annal_event *event);
annal_status answer_damage_json(struct buf *out, annal_slice session, const annal_damage *damage);

/* Answer with a file of the embedded web page (web.c). Returns false if the page has no such
 * file. */
bool web_answer(struct request *request);
