/* SPDX-License-Identifier: Apache-2.0 */
/* Servers of contenders: started in the run's directory, gone with the run. */
#pragma once

#include "tests/bench/compare/contender.h"

#define SERVER_PATH_BYTES 512

/* Where a program stands: in PATH, or where Debian puts servers. False: nowhere; why says so. */
bool server_find(const char *program, const char *package, char out_path[SERVER_PATH_BYTES],
                 char why[BENCH_WHY_BYTES]);

/* The version that a program prints; empty if it is missing. */
void server_version(const char *program, char out[BENCH_VERSION_BYTES]);

/*
 * Start a program, as another user when user is not NULL and we are root; what it says goes to
 * server.log. It gets death_signal when the supervisor dies. Sets place->server.
 */
void server_start(struct place *place, const char *const *arguments, const char *user,
                  int death_signal);

/* Run a program to its end, which must be 0. */
void server_run(struct place *place, const char *const *arguments, const char *user);

/* Call fn in a process of its own, which may start threads. */
void server_apart(struct place *place, void (*fn)(struct place *place));

/* After a server could not be reached: bench_fail() if it has ended, else wait a little. */
void server_check(struct place *place, const char *name);

/* Ask it to end, and wait for that; after half a minute it is killed. */
void server_stop(struct place *place, int with_signal);

/* A port of this machine without a listener. */
unsigned server_port(void);

/* Give a directory to a user. */
void server_give(const char *dir, const char *user);
