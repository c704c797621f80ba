/* SPDX-License-Identifier: Apache-2.0 */
/* A statement of SQL that the server asks in a process of its own: sql.c. */
#ifndef TOOLS_SERVE_QUESTION_H
#define TOOLS_SERVE_QUESTION_H

#include "tools/cli/args.h"

bool question_is_asked(void); /* this process was started for one */
int question_run(const struct args *args);

/*
 * Answer a request with the rows of a SELECT that such a process runs. body is what POST /sql
 * takes; the parameter zone of the request is the zone of that process.
 */
struct serve;
struct request;
void question_ask(struct serve *serve, struct request *request, annal_slice body,
                  uint32_t timeout_ms);

#endif
