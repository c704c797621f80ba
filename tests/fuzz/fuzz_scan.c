/*
 * Walking over arbitrary bytes as if they were a journal.
 *
 * The first byte says how the rest is prepared: a mutation hardly ever hits a hash, so lines get the
 * right one in their trailer, all of them, some, or none.
 *
 * (1) The walk ends, and moves on with every step.
 * (2) An event that comes proves itself by the h before it, computed here once more from its bytes; but
 *     one whose trailer was just reported damaged.
 * (3) seq and offset rise, except that a proven line may say any seq.
 * (4) Memory stays in proportion to the file.
 * (5) The end of the journal that is read backwards lies inside it, and seeking to any seq ends.
 */
#include "journal/base/hash.h"
#include "journal/scan.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image_io.h"

#include <string.h>

#define TRAILER 25

static const struct codec *const codecs[] = {&annal__codec_json};

static void put_hash(char *trailer, uint64_t h)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(trailer, ",\"h\":\"", 6);
    for (int i = 0; i < 16; i++)
        trailer[6 + i] = digits[h >> (60 - 4 * i) & 15];
    memcpy(trailer + 22, "\"}", 2);
}

/* Give every line that is long enough the trailer that it should have; of each eight, those in mask. */
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

/* Rule (2), from the bytes alone. */
static bool proves(annal_slice file, const annal_event *event, uint64_t *out_h)
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

static void walk(struct scan *scan, annal_slice file, bool json)
{
    size_t steps = 0;
    bool after_damage = false;
    uint64_t offset = scan->offset, h;
    annal_event event;
    annal_status status;
    while ((status = annal__scan_next(scan, &event, NULL)) != ANNAL_END) {
        MUST(status >= 0);
        MUST(++steps <= 2 * file.len + 2);
        MUST(scan->offset >= offset && scan->offset <= file.len);
        MUST(status == ANNAL_DAMAGE || scan->offset > offset);
        if (status == ANNAL_OK) {
            MUST(event.offset >= offset && event.offset + event.length <= file.len);
            MUST(event.offset + event.length == scan->offset);
            MUST(!json || after_damage || proves(file, &event, &h));
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
    if (how % 4 != 0)
        mend(file, input.len, how % 4 == 1 ? 0xFF : mask);
    const struct codec *codec = codecs[how / 4 % (sizeof codecs / sizeof *codecs)];
    image_io_init(&image, (annal_slice){file, input.len});

    annal__scan_init(&scan, &image.io, 3, codec);
    walk(&scan, image.bytes, codec == &annal__codec_json);
    MUST(annal__scan_seek(&scan, seq, NULL) == ANNAL_OK);
    MUST(scan.offset <= input.len);
    annal__scan_done(&scan);
    look_at_end(&image, codec);
    free(file);
    return 0;
}
