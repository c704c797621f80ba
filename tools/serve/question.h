/* SPDX-License-Identifier: Apache-2.0 */
/* An SQL statement that the server runs in a process of its own: question.c. */
#ifndef TOOLS_SERVE_QUESTION_H
#define TOOLS_SERVE_QUESTION_H

#include "tools/cli/args.h"

bool question_is_asked(void); /* this process was started to run a statement */
int question_run(const struct args *args);

/* Answer a request with the rows of a SELECT that such a process runs. body has the form of POST
 * /sql; the parameter zone of the request is the time zone of the process. */
struct serve;
struct request;
void question_ask(struct serve *serve, struct request *request, annal_slice body,
                  uint32_t timeout_ms);

#endif
