/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ship/pg.h"

#include "tests/support/runner.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 24, NOBODY = 65534 };

/* The directory for the directories of servers. */
static const char *disk;

/* Where its programs are; "": nowhere. */
static const char *bin_directory(void)
{
    static char path[200];
    glob_t found = {0};
    if (path[0] == '\0' && glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0)
        snprintf(path, sizeof path, "%.*s", (int)strlen(found.gl_pathv[found.gl_pathc - 1]) - 7,
                 found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return path;
}

/* The server does not run as root. */
static void user_of(uid_t *uid, gid_t *gid)
{
    const struct passwd *user = getpwnam("postgres");
    *uid = geteuid() != 0 ? geteuid() : user != NULL ? user->pw_uid : NOBODY;
    *gid = geteuid() != 0 ? getegid() : user != NULL ? user->pw_gid : NOBODY;
}

void clock_set(const char *offset)
{
    if (offset == NULL) {
        unsetenv("LD_PRELOAD");
        return;
    }
    setenv("LD_PRELOAD", "/usr/$LIB/faketime/libfaketime.so.1", 1);
    setenv("FAKETIME", offset, 1);
    setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
}

static pid_t start(const struct pg *pg, const char *program, const char *const *words,
                   const char *out)
{
    char path[300], log[100];
    const char *argv[WORDS_MAX] = {path};
    uid_t uid;
    gid_t gid;
    snprintf(path, sizeof path, "%s%s%s", *program != '/' ? bin_directory() : "",
             *program != '/' ? "/" : "", program);
    snprintf(log, sizeof log, "%s/log", pg->dir);
    for (int i = 0; words[i] != NULL && i + 2 < WORDS_MAX; i++)
        argv[i + 1] = words[i];
    user_of(&uid, &gid);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(gid) < 0 || setuid(uid) < 0))
        _exit(126);
    int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int fd = out != NULL ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600) : log_fd;
    if (chdir(pg->dir) < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(log_fd, STDERR_FILENO) < 0)
        _exit(126);
    closefrom(STDERR_FILENO + 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    clock_set(pg->clock);
    execv(path, (char *const *)argv);
    _exit(127);
}

void pg_program(const struct pg *pg, const char *program, const char *const *words, const char *out)
{
    int status = -1;
    pid_t pid = start(pg, program, words, out);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "%s ended with status %d: see %s/log", program, status, pg->dir);
}

const char *pg_url(const struct pg *pg, const char *database, const char *role)
{
    static char url[200];
    snprintf(url, sizeof url, "postgresql:///%s?host=%s&user=%s", database, pg->dir,
             role != NULL ? role : "boss");
    return url;
}

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

static PGconn *connect(const struct pg *pg, const char *database)
{
    PGconn *conn = PQconnectdb(pg_url(pg, database, NULL));
    PQsetNoticeProcessor(conn, ignore_notice, NULL);
    return conn;
}

static bool answers(const struct pg *pg)
{
    PGconn *conn = connect(pg, "postgres");
    bool ready = PQstatus(conn) == CONNECTION_OK;
    PQfinish(conn);
    return ready;
}

/* A server refuses to start while processes of a killed server are left. */
void pg_restart(struct pg *pg)
{
    const char *const words[] = {"-D", "data",
                                 "-k", pg->dir,
                                 "-c", "listen_addresses=",
                                 "-c", "fsync=off",
                                 "-c", "max_connections=30",
                                 "-c", "shared_buffers=32MB",
                                 "-c", "min_wal_size=32MB",
                                 "-c", "max_wal_size=128MB",
                                 NULL};
    for (int i = 0; i < 3000; i++) {
        if (pg->pid == 0 || waitpid(pg->pid, NULL, WNOHANG) == pg->pid)
            pg->pid = start(pg, "postgres", words, NULL);
        if (answers(pg))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_abort_msg("PostgreSQL does not start: see %s/log", pg->dir);
}

bool pg_make_small_disk(void)
{
    bool made = unshare(CLONE_NEWNS) == 0 &&
                mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                mount("tmpfs", "/srv", "tmpfs", 0, "size=1g") == 0;
    if (made)
        disk = "/srv";
    return made;
}

/* Not in $TMPDIR: the path of a socket is short, and the server is another user. */
static void make_directory(struct pg *pg)
{
    uid_t uid;
    gid_t gid;
    if (disk == NULL)
        disk = getenv("ANNAL_TEST_SERVERS");
    if (disk == NULL)
        disk = "/tmp";
    *pg = (struct pg){0};
    snprintf(pg->dir, sizeof pg->dir, "%s/annal-pg-XXXXXX", disk);
    ck_assert_ptr_nonnull(mkdtemp(pg->dir));
    user_of(&uid, &gid);
    ck_assert_int_eq(chown(pg->dir, uid, gid), 0);
}

bool pg_start(struct pg *pg)
{
    const char *const words[] = {
        "-D", "data", "-N", "-A", "trust", "-U", "boss", "-E", "UTF8", "--locale=C.UTF-8", NULL};
    *pg = (struct pg){0};
    if (bin_directory()[0] == '\0') {
        fprintf(stderr, "SKIPPED: no PostgreSQL here: install the package postgresql\n");
        return false;
    }
    make_directory(pg);
    pg_program(pg, "initdb", words, NULL);
    pg_restart(pg);
    return true;
}

void pg_start_standby(const struct pg *primary, struct pg *standby)
{
    const char *const words[] = {"-h",   primary->dir, "-U", "boss", "-D",
                                 "data", "-R",         "-c", "fast", NULL};
    make_directory(standby);
    pg_program(standby, "pg_basebackup", words, NULL);
    pg_restart(standby);
}

void pg_promote(const struct pg *standby)
{
    pg_do(standby, "postgres", "SELECT pg_promote()");
}

pid_t pg_start_pooler(const struct pg *pg)
{
    char path[100];
    uid_t uid;
    gid_t gid;
    snprintf(path, sizeof path, "%s/pooler.ini", pg->dir);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(
        file,
        "[databases]\n* = host=%s user=boss\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
        "unix_socket_dir = %s\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 4\n",
        pg->dir, pg->dir);
    ck_assert_int_eq(fclose(file), 0);
    user_of(&uid, &gid);
    ck_assert_int_eq(chown(path, uid, gid), 0);
    return start(pg, "/usr/sbin/pgbouncer", (const char *const[]){"-q", path, NULL}, NULL);
}

void pg_kill(struct pg *pg, int with_signal)
{
    if (pg->pid <= 0)
        return;
    kill(pg->pid, with_signal);
    waitpid(pg->pid, NULL, 0);
    pg->pid = 0;
}

void pg_stop(struct pg *pg)
{
    char command[100];
    if (pg->dir[0] == '\0')
        return;
    pg_kill(pg, SIGQUIT);
    snprintf(command, sizeof command, "rm -rf '%s'", pg->dir);
    ck_assert_int_eq(system(command), 0);
    *pg = (struct pg){0};
}

char *pg_ask(const struct pg *pg, const char *database, const char *sql)
{
    PGconn *conn = connect(pg, database);
    ck_assert_msg(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    PGresult *result = PQexec(conn, sql);
    ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK ||
                      PQresultStatus(result) == PGRES_COMMAND_OK,
                  "%.300s: %s", sql, PQresultErrorMessage(result));
    char *value = strdup(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
    return value;
}

void pg_do(const struct pg *pg, const char *database, const char *sql)
{
    free(pg_ask(pg, database, sql));
}
