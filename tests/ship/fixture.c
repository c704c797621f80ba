/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ship/fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DATABASE "fleet"

struct pg pg;
const char *url;
const char *second;

void fleet_start(void)
{
    if (pg_start(&pg))
        pg_do(&pg, "postgres", "CREATE DATABASE " DATABASE);
}

void fleet_stop(void)
{
    pg_stop(&pg);
}

void fleet_setup(void)
{
    cli_setup();
    second = strdup(tmpdir_path(&cli.dir, "second"));
    if (pg.dir[0] == '\0')
        return;
    /* the server may still run a statement of a command that the test before has killed */
    fleet_do("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE"
             " datname = current_database() AND backend_type = 'client backend' AND"
             " pid <> pg_backend_pid()");
    fleet_do("DROP SCHEMA IF EXISTS annal CASCADE; ALTER DATABASE " DATABASE " RESET ALL");
    url = strdup(pg_url(&pg, DATABASE, NULL));
}

void fleet_teardown(void)
{
    free((void *)(uintptr_t)url);
    free((void *)(uintptr_t)second);
    url = second = NULL;
    cli_teardown();
}

char *fleet_ask(const char *sql)
{
    return pg_ask(&pg, DATABASE, sql);
}

void fleet_do(const char *sql)
{
    pg_do(&pg, DATABASE, sql);
}

pid_t fleet_spawn(const char *const *words)
{
    int in, out;
    pid_t pid = cli_start(&cli, words, &in, &out);
    close(in);
    close(out);
    return pid;
}

int fleet_join(pid_t pid)
{
    int status = -1;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void fleet_same_journals(const char *session)
{
    char name[300];
    size_t len = 0, other_len = 0;
    char *bytes = cli_journal(&cli, session, &len);
    snprintf(name, sizeof name, "second/events/%s.jsonl", session);
    char *other_bytes = file_read(tmpdir_path(&cli.dir, name), &other_len);
    ck_assert_uint_eq(len, other_len);
    ck_assert_mem_eq(bytes, other_bytes, len);
    free(bytes);
    free(other_bytes);
}

void fleet_wait_for(const char *sql, const char *want)
{
    for (int i = 0; i < 1000; i++) {
        char *got = fleet_ask(sql);
        bool same = strcmp(got, want) == 0;
        free(got);
        if (same)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_abort_msg("%s never became %s", sql, want);
}

void fleet_same(const char *sql)
{
    char out[100];
    const char *const words[] = {"--csv", "-h", pg.dir, "-U", "boss", "-c", sql, "fleet", NULL};
    snprintf(out, sizeof out, "%s/answer", pg.dir);
    pg_program(&pg, "psql", words, out);
    CLI(&cli, NULL, "sql", "--format", "csv", sql);
    char *want = strdup(cli.out), *to = want, *got = file_read(out, NULL);
    for (const char *from = cli.out; *from != '\0'; from++) /* RFC 4180 ends a line with two */
        if (*from != '\r')
            *to++ = *from;
    *to = '\0';
    ck_assert_ptr_nonnull(strchr(want, '\n'));
    ck_assert_ptr_nonnull(strchr(got, '\n'));
    ck_assert_str_eq(strchr(got, '\n'), strchr(want, '\n')); /* names are in small letters there */
    free(want);
    free(got);
}
