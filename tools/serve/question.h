/* SPDX-License-Identifier: Apache-2.0 */
/* An SQL statement that the server runs in a process of its own (question.c). */
#pragma once

#include "tools/cli/args.h"

/* Return whether a server started this process to run an SQL statement. */
bool question_is_asked(void);
int question_run(const struct args *args);

/* Answer a request with the rows of a SELECT that a process of its own runs. body has the form of
 * the body of POST /sql; the request's parameter zone is the time zone of the process. */
struct serve;
struct request;
void question_ask(struct serve *serve, struct request *request, annal_slice body,
                  uint32_t timeout_ms);
