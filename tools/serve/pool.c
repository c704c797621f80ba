/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/serve/pool.h"

#include "journal/base/alloc.h"
#include "journal/base/thread.h"

#define WAITING_MAX 4096u

struct job {
    struct job *next;
    void (*fn)(void *arg);
    void *arg;
};

struct queue {
    struct pool *pool;
    struct job *first, **end;
    unsigned waiting, running;
    pthread_cond_t cond;
    pthread_t *threads;
    int thread_count;
};

struct pool {
    pthread_mutex_t lock;
    struct queue queues[QUEUES];
    bool stops;
};

static struct job *next_job(struct queue *queue)
{
    struct pool *pool = queue->pool;
    while (queue->first == NULL && !pool->stops)
        pthread_cond_wait(&queue->cond, &pool->lock);
    struct job *job = queue->first;
    if (job == NULL)
        return NULL;
    queue->first = job->next;
    if (queue->first == NULL)
        queue->end = &queue->first;
    queue->waiting--;
    queue->running++;
    return job;
}

static void *work(void *arg)
{
    struct queue *queue = arg;
    struct job *job;
    pthread_mutex_lock(&queue->pool->lock);
    while ((job = next_job(queue)) != NULL) {
        pthread_mutex_unlock(&queue->pool->lock);
        job->fn(job->arg);
        annal__free(job);
        pthread_mutex_lock(&queue->pool->lock);
        queue->running--;
    }
    pthread_mutex_unlock(&queue->pool->lock);
    return NULL;
}

static bool start_queue(struct pool *pool, enum pool_queue which, int threads)
{
    struct queue *queue = &pool->queues[which];
    queue->threads = annal__zalloc((size_t)threads * sizeof *queue->threads);
    while (queue->threads != NULL && queue->thread_count < threads &&
           annal__thread_start(&queue->threads[queue->thread_count], work, queue) == 0)
        queue->thread_count++;
    return queue->thread_count > 0;
}

struct pool *pool_new(const int threads[QUEUES])
{
    struct pool *pool = annal__zalloc(sizeof *pool);
    bool good = pool != NULL;
    if (!good)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    for (int i = 0; i < QUEUES; i++) {
        pool->queues[i].pool = pool;
        pool->queues[i].end = &pool->queues[i].first;
        pthread_cond_init(&pool->queues[i].cond, NULL);
    }
    for (int i = 0; i < QUEUES; i++)
        good = good && start_queue(pool, (enum pool_queue)i, threads[i]);
    if (good)
        return pool;
    pool_free(pool);
    return NULL;
}

bool pool_submit(struct pool *pool, enum pool_queue which, void (*fn)(void *arg), void *arg)
{
    struct queue *queue = &pool->queues[which];
    struct job *job = annal__zalloc(sizeof *job);
    if (job == NULL)
        return false;
    *job = (struct job){.fn = fn, .arg = arg};
    pthread_mutex_lock(&pool->lock);
    bool room = queue->waiting < WAITING_MAX && !pool->stops;
    if (room) {
        *queue->end = job;
        queue->end = &job->next;
        queue->waiting++;
        pthread_cond_signal(&queue->cond);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!room)
        annal__free(job);
    return room;
}

unsigned pool_load(struct pool *pool)
{
    unsigned load = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < QUEUES; i++)
        load += pool->queues[i].waiting + pool->queues[i].running;
    pthread_mutex_unlock(&pool->lock);
    return load;
}

void pool_stop(struct pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stops = true;
    for (int i = 0; i < QUEUES; i++)
        pthread_cond_broadcast(&pool->queues[i].cond);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < QUEUES; i++) {
        while (pool->queues[i].thread_count > 0)
            pthread_join(pool->queues[i].threads[--pool->queues[i].thread_count], NULL);
    }
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    pool_stop(pool);
    for (int i = 0; i < QUEUES; i++) {
        annal__free(pool->queues[i].threads);
        pthread_cond_destroy(&pool->queues[i].cond);
    }
    pthread_mutex_destroy(&pool->lock);
    annal__free(pool);
}
