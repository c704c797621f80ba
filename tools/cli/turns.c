/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/turns.h"

#include "journal/base/thread.h"
#include "tools/cli/fields.h"

#include <stdint.h>
#include <unistd.h>

unsigned turns_jobs(const struct args *args)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t jobs = fields_count(args, "jobs", cores < 1 ? 1 : (uint64_t)cores);
    return jobs > TURNS_JOBS_MAX ? TURNS_JOBS_MAX : (unsigned)jobs;
}

void turns_run(struct turns *turns, size_t items, void *(*work)(void *worker), void *const *workers,
               unsigned count)
{
    pthread_t threads[TURNS_JOBS_MAX];
    unsigned started = 1;
    *turns = (struct turns){
        .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER, .count = items};
    while (started < count && annal__thread_start(&threads[started], work, workers[started]) == 0)
        started++;
    (void)work(workers[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
}

size_t turns_take(struct turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    size_t item = turns->next < turns->count ? turns->next++ : SIZE_MAX;
    pthread_mutex_unlock(&turns->lock);
    return item;
}

bool turns_has(struct turns *turns, size_t item)
{
    pthread_mutex_lock(&turns->lock);
    bool has = turns->turn == item;
    pthread_mutex_unlock(&turns->lock);
    return has;
}

void turns_wait(struct turns *turns, size_t item)
{
    pthread_mutex_lock(&turns->lock);
    while (turns->turn != item)
        pthread_cond_wait(&turns->moved, &turns->lock);
    pthread_mutex_unlock(&turns->lock);
}

void turns_pass(struct turns *turns, size_t item)
{
    turns_wait(turns, item);
    pthread_mutex_lock(&turns->lock);
    turns->turn++;
    pthread_cond_broadcast(&turns->moved);
    pthread_mutex_unlock(&turns->lock);
}

void turns_end(struct turns *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->count = turns->next;
    pthread_mutex_unlock(&turns->lock);
}
