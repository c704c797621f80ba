/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What JavaScript sees of the addon: setup(), run(), now(), append(), wait(), cancel().
 *
 * Every job ends in one call of the function that setup() got: with its ticket, its status, errno,
 * the message, and the cells and bytes of its table. Jobs of other threads return through one
 * thread-safe function for each client, all that are done in one turn of the event loop.
 */
#include "native.h"

#include <node_api.h>
#include <stdlib.h>
#include <string.h>

struct client {
    napi_env env;
    napi_ref callback;
    napi_threadsafe_function wake;
    size_t pending; /* jobs of other threads; while there are any the process stays alive */

    pthread_mutex_t lock;
    struct job *first; /* that are done */
    struct job **last;
    bool woken;
    bool dead; /* its thread of JavaScript has ended */
    unsigned users;
    struct store *stores;
    uint32_t last_store;
};

static void client_release(struct client *client)
{
    pthread_mutex_lock(&client->lock);
    bool last = --client->users == 0;
    pthread_mutex_unlock(&client->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&client->lock);
    free(client);
}

static void free_job(struct job *job)
{
    client_release(job->client);
    table_free(&job->table);
    free(job->error);
    free(job->bytes);
    free(job);
}

void job_failed(struct job *job, annal_status status, const annal_error *err)
{
    job->status = status;
    job->error = malloc(sizeof *err);
    if (job->error != NULL)
        *job->error = *err;
}

void job_done(struct job *job)
{
    struct client *client = job->client;
    job->next = NULL;
    pthread_mutex_lock(&client->lock);
    bool dead = client->dead;
    if (!dead) {
        *client->last = job;
        client->last = &job->next;
        /* Under the lock, so that the function still exists. */
        if (!client->woken)
            client->woken =
                napi_call_threadsafe_function(client->wake, NULL, napi_tsfn_nonblocking) == napi_ok;
    }
    pthread_mutex_unlock(&client->lock);
    if (dead)
        free_job(job);
}

/* ---- Stores of a client ---- */

struct store *client_add(struct client *client, struct base *base)
{
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    pthread_mutex_init(&store->lock, NULL);
    store->client = client;
    store->base = base;
    pthread_mutex_lock(&client->lock);
    store->id = ++client->last_store;
    store->next = client->stores;
    client->stores = store;
    pthread_mutex_unlock(&client->lock);
    return store;
}

void client_remove(struct client *client, struct store *store)
{
    pthread_mutex_lock(&client->lock);
    struct store **at = &client->stores;
    while (*at != store)
        at = &(*at)->next;
    *at = store->next;
    pthread_mutex_unlock(&client->lock);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static struct store *find_store(struct client *client, uint32_t id)
{
    pthread_mutex_lock(&client->lock);
    struct store *store = client->stores;
    while (store != NULL && store->id != id)
        store = store->next;
    pthread_mutex_unlock(&client->lock);
    return store;
}

/* ---- Answers ---- */

static napi_value new_buffer(napi_env env, const void *bytes, size_t len)
{
    napi_value buffer = NULL;
    void *data = NULL;
    if (len == 0 || napi_create_arraybuffer(env, len, &data, &buffer) != napi_ok)
        napi_get_undefined(env, &buffer);
    else
        memcpy(data, bytes, len);
    return buffer;
}

static void call_back(napi_env env, struct job *job)
{
    napi_handle_scope scope;
    if (napi_open_handle_scope(env, &scope) != napi_ok)
        return;
    annal_status status = job->table.failed ? ANNAL_ERR_NOMEM : job->status;
    const char *message = job->error != NULL ? job->error->message : "";
    if (status < 0 && message[0] == '\0')
        message = annal_status_name(status);
    napi_value callback, receiver, values[6];
    napi_get_reference_value(env, job->client->callback, &callback);
    napi_get_undefined(env, &receiver);
    napi_create_uint32(env, job->ticket, &values[0]);
    napi_create_int32(env, status, &values[1]);
    napi_create_int32(env, job->error != NULL ? job->error->os_errno : 0, &values[2]);
    napi_create_string_utf8(env, message, NAPI_AUTO_LENGTH, &values[3]);
    values[4] = new_buffer(env, job->table.cells, job->table.cell_count * sizeof(uint32_t));
    values[5] = new_buffer(env, job->table.bytes, job->table.len);
    napi_call_function(env, receiver, callback, 6, values, NULL);
    napi_close_handle_scope(env, scope);
}

/* On the thread of JavaScript: answer the jobs that other threads have done. */
static void answer(napi_env env, napi_value callback, void *arg, void *data)
{
    struct client *client = arg;
    (void)callback;
    (void)data;
    pthread_mutex_lock(&client->lock);
    struct job *jobs = client->first;
    client->first = NULL;
    client->last = &client->first;
    client->woken = false;
    pthread_mutex_unlock(&client->lock);
    while (jobs != NULL) {
        struct job *job = jobs;
        jobs = job->next;
        if (env != NULL) {
            call_back(env, job);
            if (--client->pending == 0)
                napi_unref_threadsafe_function(env, client->wake);
        }
        free_job(job);
    }
}

/* ---- Jobs ---- */

/* NULL, with an exception: no memory, or a store that was closed. The arguments are (store, ticket,
 * bytes, length) from `values` on; store 0 means no store. */
static struct job *new_job(napi_env env, const napi_value *values)
{
    struct client *client = NULL;
    uint32_t id = 0, ticket = 0, len = 0;
    void *bytes = NULL;
    size_t room = 0;
    napi_get_instance_data(env, (void **)&client);
    napi_get_value_uint32(env, values[0], &id);
    napi_get_value_uint32(env, values[1], &ticket);
    napi_get_typedarray_info(env, values[2], NULL, &room, &bytes, NULL, NULL);
    napi_get_value_uint32(env, values[3], &len);
    struct store *store = id != 0 ? find_store(client, id) : NULL;
    struct job *job = calloc(1, sizeof *job);
    char *copy = len <= room ? malloc((size_t)len + 1) : NULL;
    if (job == NULL || copy == NULL || (id != 0 && store == NULL)) {
        free(job);
        free(copy);
        napi_throw_error(env, NULL, store == NULL ? "the store is closed" : "out of memory");
        return NULL;
    }
    if (len > 0)
        memcpy(copy, bytes, len);
    *job = (struct job){.client = client, .store = store, .ticket = ticket, .bytes = copy};
    job->args = (struct args){.at = copy, .end = copy + len};
    pthread_mutex_lock(&client->lock);
    client->users++;
    pthread_mutex_unlock(&client->lock);
    return job;
}

static void run_job(struct job *job)
{
    annal_error err = {0};
    annal_status status = job->run(job, &err);
    if (status < 0)
        job_failed(job, status, &err);
}

static void execute(napi_env env, void *arg)
{
    (void)env;
    run_job(arg);
}

static void complete(napi_env env, napi_status status, void *arg)
{
    struct job *job = arg;
    (void)status;
    call_back(env, job);
    napi_delete_async_work(env, job->work);
    free_job(job);
}

/* The operation that the first argument names; NULL, with an exception, if it is unknown. */
static op_fn take_op(napi_env env, napi_value value)
{
    char name[32];
    op_fn run = NULL;
    if (napi_get_value_string_utf8(env, value, name, sizeof name, NULL) == napi_ok)
        run = op_find(name);
    if (run == NULL)
        napi_throw_error(env, NULL, "this operation is unknown");
    return run;
}

/* The job of a call whose arguments are those of new_job(). NULL, with an exception, as there. */
static struct job *take_job(napi_env env, napi_callback_info info)
{
    napi_value values[4];
    size_t count = 4;
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    return new_job(env, values);
}

/* The same, of a call whose first argument names its operation. */
static struct job *take_op_job(napi_env env, napi_callback_info info)
{
    napi_value values[5];
    size_t count = 5;
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    op_fn run = take_op(env, values[0]);
    struct job *job = run != NULL ? new_job(env, values + 1) : NULL;
    if (job != NULL)
        job->run = run;
    return job;
}

/* run(op, store, ticket, bytes, length): in the pool. */
static napi_value js_run(napi_env env, napi_callback_info info)
{
    napi_value name;
    struct job *job = take_op_job(env, info);
    if (job == NULL)
        return NULL;
    napi_async_work work = NULL;
    napi_create_string_utf8(env, "libannal", NAPI_AUTO_LENGTH, &name);
    if (napi_create_async_work(env, NULL, name, execute, complete, job, &work) != napi_ok) {
        free_job(job);
        napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    job->work = work;
    napi_queue_async_work(env, work);
    return NULL;
}

/* now(op, store, ticket, bytes, length): at once, for what never waits. */
static napi_value js_now(napi_env env, napi_callback_info info)
{
    struct job *job = take_op_job(env, info);
    if (job == NULL)
        return NULL;
    run_job(job);
    call_back(env, job);
    free_job(job);
    return NULL;
}

static void keep_alive(napi_env env, struct client *client)
{
    if (client->pending++ == 0)
        napi_ref_threadsafe_function(env, client->wake);
}

/* append(store, ticket, bytes, length): by the appender of the store. */
static napi_value js_append(napi_env env, napi_callback_info info)
{
    struct job *job = take_job(env, info);
    if (job == NULL)
        return NULL;
    struct appender *appender = base_appender(job->store->base);
    if (appender == NULL) {
        free_job(job);
        napi_throw_error(env, NULL, "out of memory");
        return NULL;
    }
    keep_alive(env, job->client);
    appender_submit(appender, job);
    return NULL;
}

/* wait(store, ticket, bytes, length): the bytes are the handle of a tail, and how many events to
 * take at most. */
static napi_value js_wait(napi_env env, napi_callback_info info)
{
    struct job *job = take_job(env, info);
    if (job == NULL)
        return NULL;
    annal_error err = {0};
    annal_status status = ANNAL_ERR_CLOSED;
    strcpy(err.message, "this tail was closed before");
    job->handle = handle_find(job->store, (uint32_t)args_number(&job->args));
    job->max = (size_t)args_number(&job->args);
    struct waiters *waiters = NULL;
    if (job->handle != NULL) {
        status = annal_tail_fd(job->handle->pointer, &job->fd, &err);
        waiters = base_waiters(job->store->base, true);
        if (status >= 0 && waiters == NULL)
            status = ANNAL_ERR_NOMEM;
    }
    keep_alive(env, job->client);
    if (status >= 0) {
        waiters_submit(waiters, job);
    } else {
        job_failed(job, status, &err);
        job_done(job);
    }
    return NULL;
}

/* cancel(store, ticket): end a wait; its answer then has no events. */
static napi_value js_cancel(napi_env env, napi_callback_info info)
{
    napi_value values[2];
    size_t count = 2;
    struct client *client = NULL;
    uint32_t id = 0, ticket = 0;
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    napi_get_instance_data(env, (void **)&client);
    napi_get_value_uint32(env, values[0], &id);
    napi_get_value_uint32(env, values[1], &ticket);
    struct store *store = find_store(client, id);
    struct waiters *waiters = store != NULL ? base_waiters(store->base, false) : NULL;
    if (waiters != NULL && ticket != 0)
        waiters_cancel(waiters, store, ticket);
    return NULL;
}

/* ---- Begin and end ---- */

/*
 * The thread of JavaScript ends: close what it left open. Its work in the pool has ended before.
 * The appender still appends its events, without an answer.
 */
static void end_client(void *arg)
{
    struct client *client = arg;
    pthread_mutex_lock(&client->lock);
    client->dead = true;
    pthread_mutex_unlock(&client->lock);
    while (client->stores != NULL)
        store_close(client->stores, NULL);
    answer(NULL, NULL, client, NULL);
    client_release(client);
}

/* setup(callback): once for each thread of JavaScript. */
static napi_value js_setup(napi_env env, napi_callback_info info)
{
    napi_value callback, name;
    size_t count = 1;
    struct client *client = NULL;
    napi_get_cb_info(env, info, &count, &callback, NULL, NULL);
    napi_get_instance_data(env, (void **)&client);
    napi_create_string_utf8(env, "libannal", NAPI_AUTO_LENGTH, &name);
    if (napi_create_reference(env, callback, 1, &client->callback) != napi_ok ||
        napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, client, answer,
                                        &client->wake) != napi_ok)
        napi_throw_error(env, NULL, "out of memory");
    else
        napi_unref_threadsafe_function(env, client->wake);
    napi_add_env_cleanup_hook(env, end_client, client);
    return NULL;
}

static pthread_once_t locks_once = PTHREAD_ONCE_INIT;
static int locks_result;

static void own_locks(void)
{
    locks_result = libannal_own_locks();
}

NAPI_MODULE_INIT()
{
    static const napi_property_descriptor functions[] = {
        {"setup", NULL, js_setup, NULL, NULL, NULL, napi_default, NULL},
        {"run", NULL, js_run, NULL, NULL, NULL, napi_default, NULL},
        {"now", NULL, js_now, NULL, NULL, NULL, napi_default, NULL},
        {"append", NULL, js_append, NULL, NULL, NULL, napi_default, NULL},
        {"wait", NULL, js_wait, NULL, NULL, NULL, napi_default, NULL},
        {"cancel", NULL, js_cancel, NULL, NULL, NULL, napi_default, NULL},
    };
    struct client *client = calloc(1, sizeof *client);
    pthread_once(&locks_once, own_locks);
    if (client == NULL || locks_result != 0) {
        free(client);
        napi_throw_error(env, NULL, "SQLite of libannal does not take locks of its own");
        return NULL;
    }
    client->env = env;
    client->last = &client->first;
    client->users = 1;
    pthread_mutex_init(&client->lock, NULL);
    napi_set_instance_data(env, client, NULL, NULL);
    napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions);
    return exports;
}
