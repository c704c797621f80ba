/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports the logs of this machine's agents for the server, in processes of their own: annal watch
 * for --watch, and annal import when a user asks for it.
 *
 * (1) Both processes end with the server. If the watch ends by itself, it is started again; not
 *     while another process watches for the store.
 * (2) The routes tell where this machine has logs, and start an import. So they need the right to
 *     write, and a client on this machine: they are refused at an address that other machines
 *     reach, under a name of the server that is not local, and through a proxy.
 */
#pragma once

#include "tools/serve/serve.h"

struct intake;

/* Return NULL if memory ran out. watches: whether to run annal watch. */
struct intake *intake_new(const char *store, bool watches);

/* Start or restart the watch if it is due. The thread that calls it must live as long as the
 * server. */
void intake_tend(struct intake *intake);

/* Return whether the client of a request is on this machine (rule 2). */
bool intake_is_near(const struct serve *serve, const struct request *request);

/* End both processes. NULL is accepted. */
void intake_free(struct intake *intake);
