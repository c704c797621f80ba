/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annal serve: what its files share. README: docs/serve.md says what is served, and who gets in.
 *
 * A request comes whole through http.h, is let in by access.h, and finds its route in routes.c.
 * Most routes ask the store in a thread of the pool (pool.h) and answer with a text; those that
 * answer with many events fill a flow (events.c); streams.h follows sessions live.
 */
#ifndef TOOLS_SERVE_SERVE_H
#define TOOLS_SERVE_SERVE_H

#include "tools/cli/args.h"
#include "tools/serve/access.h"
#include "tools/serve/http.h"
#include "tools/serve/pool.h"

#include <annal/annal.h>

#define JSON_TYPE   "application/json"
#define NDJSON_TYPE "application/x-ndjson"

struct serve {
    annal_store *store;
    annal_index *index;
    struct pool *pool;
    struct streams *streams;
    struct otlp *otlp;
    struct past *past;
    struct access access;
    bool read_only;
    int log_fd; /* -1: requests are not logged */
    int64_t begun_us;
};

struct route {
    const char *method;
    const char *path; /* {} is a session id */
    enum right right;
    enum lane lane;
    size_t body_max;
    void (*run)(struct serve *serve, struct request *request);
    const char *params; /* of the query, a space before and after each; * after one: many times */
};

extern const struct route routes[];

/* How http.h calls this program. */
void serve_admit(void *arg, struct request *request);
bool serve_run(void *arg, struct request *request);
void serve_done(void *arg, const struct request *request, uint64_t bytes);

/* ---- Answers ---- */

void answer_error(struct request *request, unsigned status, const char *code, const char *format,
                  ...) ANNAL_PRINTF(4, 5);

/* What the library could not do, with the status of HTTP that fits it. */
unsigned failure_status(const annal_error *err);
void answer_failure(struct request *request, const annal_error *err);
void answer_no_memory(struct request *request);

/* The answer is there, without a line break at its end; or it failed, and err says why. */
void answer_json(struct request *request, annal_status status, const annal_error *err);

/* ---- Parameters; false: it is wrong, and the request is answered ---- */

bool query_number(struct request *request, const char *name, uint64_t most, uint64_t *out);
bool query_limit(struct request *request, uint64_t most, uint64_t *out); /* at least 1 */
/* since and until; a backward range is refused. */
bool query_range(struct request *request, struct time_range *out);
bool query_choice(struct request *request, const char *name, const char *const *choices, int *out);

/* All values of a parameter, as slices of the request; free *out with annal__free(). */
bool query_list(struct request *request, const char *name, size_t most, annal_slice **out,
                size_t *out_count);

/* ---- Routes ---- */

void sessions_list(struct serve *serve, struct request *request);
void sessions_one(struct serve *serve, struct request *request);
void session_children(struct serve *serve, struct request *request);
void facets_get(struct serve *serve, struct request *request);
void events_list(struct serve *serve, struct request *request);
void events_append(struct serve *serve, struct request *request);
void session_fork(struct serve *serve, struct request *request);
void bundle_get(struct serve *serve, struct request *request);
void bundle_admit(struct serve *serve, struct request *request);
void bundle_put(struct serve *serve, struct request *request);
void bundle_received(struct serve *serve, struct request *request);
void verify_run(struct serve *serve, struct request *request);
void metrics_get(struct serve *serve, struct request *request);
void event_proof(struct serve *serve, struct request *request);
void session_outline(struct serve *serve, struct request *request);
void session_tools(struct serve *serve, struct request *request);
void session_turns(struct serve *serve, struct request *request);
void session_usage(struct serve *serve, struct request *request);
void session_share(struct serve *serve, struct request *request);
void session_state(struct serve *serve, struct request *request);
void session_diff(struct serve *serve, struct request *request);
void sql_ask(struct serve *serve, struct request *request);
void schema_get(struct serve *serve, struct request *request);
void usage_get(struct serve *serve, struct request *request);
void search_get(struct serve *serve, struct request *request);
void diff_two(struct serve *serve, struct request *request);

/* The events of an answer in JSON: a line without its break. */
annal_status event_json(struct buf *out, annal_slice session, const annal_event *event);
annal_status damage_json(struct buf *out, annal_slice session, const annal_damage *damage);

/* The page, embedded: web.c. False: there is no such file. */
bool web_answer(struct request *request);

#endif
