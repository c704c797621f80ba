#include "tests/ship/fixture.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DATABASE "fleet"

struct pg pg;
const char *url;

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
    if (pg.dir[0] == '\0')
        return;
    fleet_do("DROP SCHEMA IF EXISTS annal CASCADE; ALTER DATABASE " DATABASE " RESET ALL");
    url = strdup(pg_url(&pg, DATABASE, NULL));
}

void fleet_teardown(void)
{
    free((void *)(uintptr_t)url);
    url = NULL;
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
