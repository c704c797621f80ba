#include "tools/cli/open.h"

#include "journal/base/alloc.h"
#include "journal/base/buf.h"
#include "journal/base/clock.h"
#include "journal/base/default_store.h"
#include "journal/sys/seam.h"
#include "tools/cli/out.h"
#include "tools/cli/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *store_path(const struct args *args)
{
    struct buf path = {0};
    char *copy = NULL;
    if (annal__place_default(args->store, getenv("XDG_DATA_HOME"), getenv("HOME"), &path) ==
        ANNAL_OK)
        copy = annal__strndup(path.ptr, path.len);
    annal__buf_done(&path);
    return copy;
}

bool store_is_there(const struct args *args)
{
    struct buf path = {0};
    struct stat info;
    char *store = store_path(args);
    bool missing = store != NULL && annal__buf_printf(&path, "%s/events", store) == ANNAL_OK &&
                   annal__buf_cstr(&path) != NULL && stat(path.ptr, &info) != 0 && errno == ENOENT;
    annal__buf_done(&path);
    annal__free(store);
    return !missing;
}

/* The directories above the store, so that the default place works on a new machine. */
static int make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        int why = errno;
        *slash = '/';
        if (failed)
            return fail_storage("make the store '%s': %s", path, strerror(why));
    }
    return 0;
}

static bool is_read_only_media(const annal_error *err)
{
    return err->os_errno == EROFS || err->os_errno == EACCES || err->os_errno == EPERM;
}

/* So much of --wait, but at most a tenth, is left for the work around the waits. */
#define WORK_MS 100

static uint32_t to_wait(const struct args *args)
{
    return args->wait_ms - (args->wait_ms / 10 < WORK_MS ? args->wait_ms / 10 : WORK_MS);
}

void store_wait_anew(const struct args *args, annal_store *store)
{
    annal__store_limit_waits(store, to_wait(args));
}

void store_wait_each(annal_store *store)
{
    annal__store_limit_waits(store, UINT32_MAX);
}

void store_wait_within(const struct args *args, annal_store *store, int64_t begun_us)
{
    int64_t took_us = annal__monotonic_us() - begun_us;
    int64_t left_us = (int64_t)to_wait(args) * 1000 - took_us;
    left_us = annal__store_may_wait(store, left_us < 0 ? 0 : left_us);
    annal__store_limit_waits(store, (uint32_t)(left_us / 1000));
}

/* What is left of --wait: opening may have waited, too. */
static void limit_waits(const struct args *args, annal_store *store)
{
    int64_t waited_ms = annal__store_waited_us(store) / 1000;
    uint32_t most_ms = to_wait(args);
    annal__store_limit_waits(store, waited_ms < most_ms ? most_ms - (uint32_t)waited_ms : 0);
}

int store_open(const struct args *args, enum open_mode mode, uint32_t wait_ms,
               annal_store **out_store)
{
    annal_store_options options = {
        .create = mode == OPEN_CREATE,
        .no_keeper = mode != OPEN_CREATE,
        .wait_ms = wait_ms != 0 && wait_ms < args->wait_ms ? wait_ms : args->wait_ms,
        .log = say_log};
    annal_error err = {0};
    if (mode == OPEN_CREATE && args_has(args, "format"))
        args_journal_format(args, &options.format);
    char *path = store_path(args);
    if (path == NULL)
        return fail_usage("there is no $HOME to find the store in: name it with --store DIR");
    int exit_status = mode == OPEN_CREATE ? make_parents(path) : 0;
    if (exit_status != 0)
        goto done;

    annal_status status = annal_store_open(path, &options, out_store, &err);
    if (mode == OPEN_READ &&
        (status == ANNAL_ERR_UNSUPPORTED || (status == ANNAL_ERR_IO && is_read_only_media(&err)))) {
        options.read_only = true;
        status = annal_store_open(path, &options, out_store, &err);
    }
    if (status == ANNAL_ERR_NOTFOUND)
        exit_status = fail_storage("there is no store at '%s': append, import or pack enable makes "
                                   "one, --store DIR names another",
                                   path);
    else if (status < 0)
        exit_status = fail_error(&err);
    else
        limit_waits(args, *out_store);
    if (exit_status == 0)
        exit_status = sessions_resolve(*out_store, args);

done:
    annal__free(path);
    return exit_status;
}

int store_close(annal_store *store, int exit_status)
{
    annal_error err = {0};
    if (annal_store_close(store, &err) < 0) {
        int failed = fail_error(&err);
        return exit_status == EXIT_DONE ? failed : exit_status;
    }
    return exit_status;
}
