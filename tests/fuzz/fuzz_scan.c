/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over arbitrary bytes as a journal.
 *
 * The first byte says how the other bytes are prepared: a mutation hardly ever hits a hash, so all,
 * some or none of the lines get a correct hash in their trailer.
 *
 * (1) The walk ends, and moves on with every step.
 * (2) Each event proves itself by the h before it, which this test computes again from the bytes,
 *     unless a damaged trailer was just reported.
 * (3) seq and offset increase, except that a proven line may have any seq.
 * (4) Memory stays in proportion to the file.
 * (5) The end of the journal, which is searched backwards, lies inside it, and a seek to any seq
 *     ends.
 */
#include "journal/base/hash.h"
#include "journal/scan.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image_io.h"

#include <string.h>

#define TRAILER 25

static const struct codec *const codecs[] = {&annal__codec_json, &annal__codec_msgpack};

static void put_hash(char *trailer, uint64_t h)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(trailer, ",\"h\":\"", 6);
    for (int i = 0; i < 16; i++)
        trailer[6 + i] = digits[h >> (60 - 4 * i) & 15];
    memcpy(trailer + 22, "\"}", 2);
}

/* Give every line that is long enough the trailer that it should have; of each eight, those in
 * mask. */
static void mend(char *bytes, size_t len, uint8_t mask)
{
    uint64_t h = 0;
    unsigned number = 0;
    for (size_t start = 0; start < len;) {
        char *newline = memchr(bytes + start, '\n', len - start);
        if (newline == NULL)
            return;
        size_t line = (size_t)(newline - bytes) + 1 - start;
        if (line > TRAILER) {
            uint64_t right = annal__hash(bytes + start, line - TRAILER, h);
            if (mask >> number % 8 & 1)
                put_hash(newline - TRAILER + 1, right);
            h = right;
        }
        number++;
        start += line;
    }
}

static uint64_t take_number(const char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number = number << 8 | (uint8_t)at[i];
    return number;
}

static void put_number(char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (char)(number >> 8 * (bytes - 1 - i));
}

/* The same for msgpack: a frame is as long as it says, if it can be. */
static void mend_msgpack(char *bytes, size_t len, uint8_t mask)
{
    uint64_t h = 0;
    unsigned number = 0;
    for (size_t start = 0; start + 43 <= len;) {
        char *frame = bytes + start;
        size_t length = (size_t)take_number(frame + 2, 4);
        if (length < 43 || length > len - start)
            return;
        uint64_t right = annal__hash(frame, length - 9, h ^ start);
        if (mask >> number % 8 & 1) {
            frame[length - 14] = (char)0xce;
            put_number(frame + length - 13, length, 4);
            right = annal__hash(frame, length - 9, h ^ start);
            frame[length - 9] = (char)0xcf;
            put_number(frame + length - 8, right, 8);
        }
        h = right;
        number++;
        start += length;
    }
}

static bool proves_msgpack(annal_slice file, const annal_event *event, uint64_t *out_h)
{
    const char *frame = file.ptr + event->offset;
    uint64_t before = event->offset < 8 ? 0 : take_number(frame - 8, 8);
    *out_h = annal__hash(frame, (size_t)event->length - 9, before ^ event->offset);
    return take_number(frame + event->length - 8, 8) == *out_h;
}

/* Rule (2), from the bytes alone. */
static bool proves_json(annal_slice file, const annal_event *event, uint64_t *out_h)
{
    const char *line = file.ptr + event->offset;
    char expected[TRAILER];
    uint64_t before = 0;
    if (event->offset >= TRAILER) {
        annal_slice above = {file.ptr, (size_t)event->offset};
        if (!annal__codec_json.trailer(above, &before))
            return false;
    }
    *out_h = annal__hash(line, (size_t)event->length - TRAILER, before);
    put_hash(expected, *out_h);
    return memcmp(line + event->length - TRAILER, expected, TRAILER - 1) == 0;
}

static void walk(struct scan *scan, annal_slice file)
{
    bool (*proves)(annal_slice, const annal_event *, uint64_t *) =
        scan->codec == &annal__codec_json ? proves_json : proves_msgpack;
    size_t steps = 0;
    bool after_damage = false;
    uint64_t offset = scan->offset, h;
    annal_event event;
    annal_status status;
    while ((status = annal__scan_next(scan, &event, NULL)) != ANNAL_END) {
        if (status == ANNAL_ERR_UNSUPPORTED) /* its header says that it is of a newer version */
            return;
        MUST(status >= 0);
        MUST(++steps <= 2 * file.len + 2);
        MUST(scan->offset >= offset && scan->offset <= file.len);
        MUST(status == ANNAL_DAMAGE || scan->offset > offset);
        if (status == ANNAL_OK) {
            MUST(event.offset >= offset && event.offset + event.length <= file.len);
            MUST(event.offset + event.length == scan->offset);
            MUST(after_damage || proves(file, &event, &h));
            MUST(event.data.len > 0 && event.data.len < event.length);
        } else {
            MUST(scan->damage.offset >= offset && scan->damage.what != NULL);
            MUST(scan->damage.offset + scan->damage.length <= file.len);
        }
        /* A sound event whose trailer is damaged is reported first; what follows hangs on its h. */
        after_damage = status == ANNAL_DAMAGE || (after_damage && !proves(file, &event, &h));
        offset = scan->offset;
        MUST(scan->window.cap <= 4 * file.len + ((size_t)1 << 20));
    }
    MUST(annal__scan_next(scan, &event, NULL) == ANNAL_END);
}

static void look_at_end(const struct image_io *image, const struct codec *codec)
{
    struct journal_tail tail;
    size_t len = image->bytes.len;
    MUST(annal__scan_tail(&image->io, 3, codec, &tail, NULL) == ANNAL_OK);
    MUST(tail.size == len && tail.end <= len && tail.offset <= tail.end);
    MUST(tail.state != TAIL_WHOLE || tail.end == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    annal_slice input = {(const char *)bytes, len};
    uint8_t how = take_byte(&input), mask = take_byte(&input), seq = take_byte(&input);
    struct image_io image;
    struct scan scan;
    char *file = malloc(input.len + 1);
    MUST(file != NULL);
    memcpy(file, input.ptr, input.len);
    const struct codec *codec = codecs[how / 4 % (sizeof codecs / sizeof *codecs)];
    if (how % 4 != 0)
        (codec == &annal__codec_json ? mend : mend_msgpack)(file, input.len,
                                                            how % 4 == 1 ? 0xFF : mask);
    image_io_init(&image, (annal_slice){file, input.len});

    annal__scan_init(&scan, &image.io, 3, codec);
    walk(&scan, image.bytes);
    annal_status status = annal__seek(&scan, seq, NULL);
    MUST(status == ANNAL_OK || status == ANNAL_ERR_UNSUPPORTED);
    MUST(scan.offset <= input.len);
    annal__scan_done(&scan);
    look_at_end(&image, codec);
    free(file);
    return 0;
}
