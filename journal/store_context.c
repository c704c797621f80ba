/* SPDX-License-Identifier: Apache-2.0 */
/* What other folders ask a store: its interfaces, its waits, its log callback. */
#include "journal/store.h"
#include "journal/sys/say.h"
#include "journal/sys/seam.h"

#include <stdarg.h>

uint64_t annal__store_keep_free(const annal_store *store)
{
    return store->events.keep_free_bytes;
}

void annal__say(const annal_store *store, annal_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    annal__context_say_args(&store->context, level, format, args);
    va_end(args);
}

void annal__store_say_damage(annal_store *store, annal_slice session, uint64_t seq, uint64_t offset)
{
    atomic_fetch_add(&store->damages_said, 1);
    annal__say(store, ANNAL_LOG_WARNING,
               "session '%.*s', event %llu at byte %llu is damaged: run 'annal verify' for details",
               ANNAL_FMT(session), (unsigned long long)seq, (unsigned long long)offset);
}

uint64_t annal__store_damages_said(const annal_store *store)
{
    return atomic_load(&store->damages_said);
}

const uint8_t *annal__store_boot(const annal_store *store)
{
    return store->context.boot;
}

const struct io *annal__store_io(const annal_store *store)
{
    return store->context.io;
}

const struct clock *annal__store_clock(const annal_store *store)
{
    return store->context.clock;
}

bool annal__store_has_keeper(const annal_store *store)
{
    return store->keeper.alarm.running;
}

struct tails_place *annal__store_tails(annal_store *store)
{
    return &store->tails;
}

uint32_t annal__store_wait_ms(const annal_store *store)
{
    return store->context.wait_ms;
}

void annal__store_limit_waits(annal_store *store, uint32_t limit_ms)
{
    annal__context_limit_waits(&store->context, limit_ms);
}

int64_t annal__store_waited_us(annal_store *store)
{
    return annal__context_waited_us(&store->context);
}

int64_t annal__store_may_wait(annal_store *store, int64_t wait_us)
{
    return annal__context_may_wait(&store->context, wait_us);
}

uint32_t annal__store_may_wait_ms(annal_store *store, uint32_t wait_ms)
{
    return (uint32_t)(annal__context_may_wait(&store->context, (int64_t)wait_ms * 1000) / 1000);
}

void annal__store_wait(annal_store *store, int64_t us)
{
    annal__context_wait(&store->context, us);
}

void annal__store_wait_begin(annal_store *store)
{
    annal__context_wait_begin(&store->context);
}

void annal__store_wait_end(annal_store *store)
{
    annal__context_wait_end(&store->context);
}

void annal_store_metrics_get(annal_store *store, annal_metrics_of of, annal_metrics *out_metrics)
{
    annal__metrics_read(&store->metrics, of, out_metrics);
}
