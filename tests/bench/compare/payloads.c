/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/compare/payloads.h"

#include "journal/base/hash.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CARDS         16384u
#define LARGE_CARDS   4u
#define LARGE_ONE_IN  16384u /* events, of which one is above 1 MB */
#define FIXED_CARDS   16u
#define DECK_MAX      ((size_t)1 << 30)
#define NAME_BYTES    12
#define HEAD          "{\"serial\":\""
#define SERIAL_BYTES  16
#define PAYLOAD_LEAST 64

/* The share of all events that have at most so many bytes. */
static const struct {
    double share;
    double bytes;
} sizes[] = {{0, 80},        {0.077, 256},    {0.183, 512},     {0.5, 995},     {0.783, 2048},
             {0.883, 4096},  {0.9, 5020},     {0.937, 8192},    {0.969, 16384}, {0.99, 41547},
             {0.997, 65536}, {0.999, 100629}, {0.9999, 262144}, {1, 1000000}};

static const char *const small_types[] = {"tool.called",     "message.added",  "agent.turn.usage",
                                          "turn.started",    "turn.completed", "session.updated",
                                          "reasoning.added", "progress.hook",  "mode.changed"};
static const char *const large_types[] = {"tool.returned", "tool.failed", "file.snapshot"};

static const char *const words[] = {
    "the ",     "a ",    "of ",   "to ",        "file ",     "test ",     "error ",
    "return ",  "if ",   "not ",  "and ",       "value ",    "session ",  "function ",
    "build ",   "line ", "src/",  "index.ts ",  "main.c ",   "{ ",        "} ",
    "() ",      "== ",   "null ", "127.0.0.1 ", "warning: ", "expected ", "commit ",
    "diff ",    "+++ ",  "@@ ",   "I ",         "will ",     "now ",      "read ",
    "because ", "look ", "at ",   "how ",       "this ",     "works ",    "timeout "};
static const char *const marked_words[] = {"\\n   ", "\\n", "\\t", "\\\"name\\\": ", "\\\\"};
static const char *const foreign_words[] = {"\xc3\xa9t\xc3\xa9 ", "\xe2\x80\x94 "};

struct card {
    size_t offset;
    uint32_t bytes;
    uint32_t type;
};

struct payloads {
    size_t map_bytes; /* size of this struct and all data after it */
    uint64_t seed;
    unsigned cards, sessions;
    double mean_bytes;
    struct card deck[CARDS + LARGE_CARDS];
    size_t names, text; /* offsets from here */
};

static const char *base(const struct payloads *payloads)
{
    return (const char *)payloads;
}

static size_t size_at(double share)
{
    size_t i = 1;
    while (share > sizes[i].share)
        i++;
    double part = (share - sizes[i - 1].share) / (sizes[i].share - sizes[i - 1].share);
    return (size_t)(sizes[i - 1].bytes * pow(sizes[i].bytes / sizes[i - 1].bytes, part));
}

/* ---- Text ---- */

/* How many of 64 words are escapes, and whether there are letters beyond ASCII. */
struct manner {
    unsigned marked;
    bool foreign;
};

static const char *next_word(struct random *random, const struct manner *manner, char hex[16])
{
    uint64_t at = random_below(random, 64);
    if (at < manner->marked)
        return marked_words[random_below(random, sizeof marked_words / sizeof *marked_words)];
    if (manner->foreign && at < manner->marked + 2u)
        return foreign_words[at % 2];
    if (at > 58) {
        snprintf(hex, 16, "%llx ", (unsigned long long)random_below(random, 1u << 31));
        return hex;
    }
    return words[random_below(random, sizeof words / sizeof *words)];
}

static void write_text(struct random *random, char *out, size_t len)
{
    struct manner manner = {random_below(random, 2) == 0 ? 0 : 4, random_below(random, 100) < 15};
    size_t done = 0;
    for (;;) {
        char hex[16];
        const char *word = next_word(random, &manner, hex);
        size_t word_len = strlen(word);
        if (done + word_len > len)
            break;
        memcpy(out + done, word, word_len);
        done += word_len;
    }
    memset(out + done, 'x', len - done);
}

static void write_payload(struct random *random, char *out, size_t len)
{
    static const char middle[] = "\",\"text\":\"", tail[] = "\"}";
    size_t head = sizeof HEAD - 1, text = head + SERIAL_BYTES + sizeof middle - 1;
    memcpy(out, HEAD, head);
    memset(out + head, '0', SERIAL_BYTES);
    memcpy(out + head + SERIAL_BYTES, middle, sizeof middle - 1);
    write_text(random, out + text, len - text - (sizeof tail - 1));
    memcpy(out + len - (sizeof tail - 1), tail, sizeof tail - 1);
}

/* ---- The deck ---- */

static size_t plan(struct payloads *plan, size_t bytes)
{
    size_t total = 0, part = bytes == PAYLOADS_HALF_MIX ? 2 : 1;
    bool mixed = bytes == PAYLOADS_MIX || bytes == PAYLOADS_HALF_MIX;
    plan->cards = mixed ? CARDS : FIXED_CARDS;
    for (unsigned i = 0; i < plan->cards + LARGE_CARDS; i++) {
        struct card *card = &plan->deck[i];
        size_t size = i < plan->cards ? size_at((i + 0.5) / plan->cards)
                                      : 1050000u + 130000u * (i - plan->cards);
        size = mixed ? size / part : bytes;
        size = size < PAYLOAD_LEAST ? PAYLOAD_LEAST : size;
        *card = (struct card){.offset = total, .bytes = (uint32_t)size};
        total += size;
        if (i < plan->cards)
            plan->mean_bytes += (double)size / plan->cards;
    }
    if (mixed)
        plan->mean_bytes += 1245000.0 / LARGE_ONE_IN / (double)part;
    return total;
}

static const char *const *types_of(const struct card *card, size_t *out_count)
{
    bool large = card->bytes > 4096;
    *out_count =
        large ? sizeof large_types / sizeof *large_types : sizeof small_types / sizeof *small_types;
    return large ? large_types : small_types;
}

static void fill(struct payloads *payloads)
{
    struct random random = {payloads->seed};
    for (unsigned i = 0; i < payloads->cards + LARGE_CARDS; i++) {
        size_t count;
        struct card *card = &payloads->deck[i];
        types_of(card, &count);
        card->type = (uint32_t)random_below(&random, count);
        write_payload(&random, (char *)payloads + payloads->text + card->offset, card->bytes);
    }
    for (unsigned i = 0; i < payloads->sessions; i++)
        snprintf((char *)payloads + payloads->names + (size_t)i * NAME_BYTES, NAME_BYTES,
                 "sess_%05u", i % 100000);
}

struct payloads *payloads_new(uint64_t seed, size_t bytes, unsigned sessions)
{
    struct payloads *first = calloc(1, sizeof *first);
    if (first == NULL)
        return NULL;
    size_t text_bytes = plan(first, bytes);
    first->seed = seed;
    first->sessions = sessions;
    first->names = sizeof *first;
    first->text = first->names + (size_t)sessions * NAME_BYTES;
    first->map_bytes = first->text + text_bytes;
    void *map = first->map_bytes > DECK_MAX ? MAP_FAILED
                                            : mmap(NULL, first->map_bytes, PROT_READ | PROT_WRITE,
                                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct payloads *payloads = map == MAP_FAILED ? NULL : map;
    if (payloads != NULL) {
        *payloads = *first;
        fill(payloads);
    }
    free(first);
    return payloads;
}

void payloads_free(struct payloads *payloads)
{
    if (payloads != NULL)
        munmap(payloads, payloads->map_bytes);
}

annal_slice payloads_name(const struct payloads *payloads, unsigned session)
{
    return annal_slice_of(base(payloads) + payloads->names + (size_t)session * NAME_BYTES);
}

unsigned payloads_session(annal_slice name)
{
    unsigned session = 0;
    for (size_t i = sizeof "sess_" - 1; i < name.len; i++)
        session = session * 10 + (unsigned)(name.ptr[i] - '0');
    return session;
}

double payloads_mean_bytes(const struct payloads *payloads)
{
    return payloads->mean_bytes;
}

/* ---- Events ---- */

static const struct card *card_of(const struct payloads *payloads, const struct batch_key *key)
{
    struct random random = {payloads->seed ^ ((uint64_t)key->session << 40) ^ key->seq};
    uint64_t drawn = random_next(&random);
    if ((drawn >> 32) % LARGE_ONE_IN == 0)
        return &payloads->deck[payloads->cards + drawn % LARGE_CARDS];
    return &payloads->deck[drawn % payloads->cards];
}

static void write_serial(char *data, const struct batch_key *key)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t serial = (uint64_t)key->session << 40 | key->seq;
    char *to = data + sizeof HEAD - 1 + SERIAL_BYTES;
    for (int i = 0; i < SERIAL_BYTES; i++, serial >>= 4)
        *--to = digits[serial & 15];
}

void payloads_envelope(const struct payloads *payloads, const struct batch_key *key,
                       struct bench_event *out)
{
    size_t count;
    const struct card *card = card_of(payloads, key);
    *out = (struct bench_event){.session = key->session,
                                .seq = key->seq,
                                .ts_us = INT64_C(1767690240000000) + (int64_t)key->seq * 676123 +
                                         key->session,
                                .name = payloads_name(payloads, key->session),
                                .type = annal_slice_of(types_of(card, &count)[card->type])};
}

static void make_event(const struct payloads *payloads, const struct batch_key *key, char *bytes,
                       struct bench_event *out)
{
    const struct card *card = card_of(payloads, key);
    payloads_envelope(payloads, key, out);
    memcpy(bytes, base(payloads) + payloads->text + card->offset, card->bytes);
    write_serial(bytes, key);
    out->data = (annal_slice){bytes, card->bytes};
}

static bool reserve(struct batch *batch, size_t count, size_t bytes)
{
    if (count > batch->room) {
        struct bench_event *events = realloc(batch->events, count * sizeof *events);
        if (events == NULL)
            return false;
        batch->events = events;
        batch->room = count;
    }
    if (bytes > batch->bytes_room) {
        free(batch->bytes);
        batch->bytes = malloc(bytes);
        batch->bytes_room = batch->bytes == NULL ? 0 : bytes;
    }
    return batch->bytes != NULL;
}

uint64_t batch_make(struct batch *batch, const struct payloads *payloads,
                    const struct batch_key *keys, size_t count)
{
    size_t bytes = 0, done = 0;
    for (size_t i = 0; i < count; i++)
        bytes += card_of(payloads, &keys[i])->bytes;
    batch->count = 0;
    if (!reserve(batch, count, bytes))
        return 0;
    for (size_t i = 0; i < count; i++) {
        make_event(payloads, &keys[i], batch->bytes + done, &batch->events[i]);
        done += batch->events[i].data.len;
    }
    batch->count = count;
    return bytes;
}

void batch_done(struct batch *batch)
{
    free(batch->events);
    free(batch->bytes);
    *batch = (struct batch){0};
}

static bool same_slice(annal_slice left, annal_slice right)
{
    return left.len == right.len && memcmp(left.ptr, right.ptr, left.len) == 0;
}

bool payloads_same(const struct payloads *payloads, const struct bench_event *event)
{
    struct batch batch = {0};
    struct batch_key key = {event->session, event->seq};
    bool same = batch_make(&batch, payloads, &key, 1) != 0 && batch.events->ts_us == event->ts_us &&
                same_slice(batch.events->type, event->type) &&
                same_slice(batch.events->data, event->data);
    batch_done(&batch);
    return same;
}
