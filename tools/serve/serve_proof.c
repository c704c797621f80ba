/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with the line of an event in its journal and the hashes that prove it; docs/format.md
 * explains the proof. */
#include "journal/base/error.h"
#include "journal/base/json.h"
#include "tools/cli/args.h"
#include "tools/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_BYTES_MAX ((uint64_t)8 << 20)

struct proof {
    uint64_t seq;
    /* id of the session whose journal contains the event: the session or an ancestor */
    char journal[ANNAL_SESSION_ID_BYTES_MAX + 1];
    uint64_t previous;
    annal_event event;
    annal_format format;
    bool proved;
    const char *why;
};

static int note_part(void *arg, const annal_lineage_part *part)
{
    struct proof *proof = arg;
    if (proof->seq < part->from_seq || proof->seq > part->to_seq)
        return 0;
    snprintf(proof->journal, sizeof proof->journal, "%.*s", ANNAL_FMT(part->session));
    return 1;
}

/* Read the bytes of the event's line as they are in the journal, without parsing them. */
static annal_status read_line(struct serve *serve, const struct proof *proof, struct buf *line,
                              annal_error *err)
{
    SCOPED_BUF path = {0};
    annal_status status = annal__buf_printf(&path, "%s/events/%s.jsonl",
                                            annal_store_path(serve->store), proof->journal);
    if (status >= 0)
        status = annal__buf_reserve(line, (size_t)proof->event.length);
    if (status < 0 || annal__buf_cstr(&path) == NULL) {
        return annal__fail(err, ANNAL_ERR_NOMEM, "read an event of session '%s': out of memory",
                           proof->journal);
    }
    int fd = open(path.ptr, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t len =
        fd < 0 ? -1 : pread(fd, line->ptr, (size_t)proof->event.length, (off_t)proof->event.offset);
    if (len < 0)
        status = annal__fail_errno(err, "cannot read the journal '%s'", path.ptr);
    else
        line->len = (size_t)len;
    if (fd >= 0)
        close(fd);
    return status;
}

static annal_status find_event(annal_cursor *cursor, struct proof *proof, annal_error *err)
{
    proof->previous = annal_cursor_position(cursor).h_before;
    annal_status status = annal_cursor_next(cursor, &proof->event, err);
    proof->proved = status == ANNAL_OK && proof->event.seq == proof->seq;
    proof->format = proof->event.format;
    if (status == ANNAL_END || (status == ANNAL_OK && !proof->proved))
        return annal__fail(err, ANNAL_ERR_NOTFOUND, "session '%s' has no event %" PRIu64,
                           proof->journal, proof->seq);
    if (status == ANNAL_DAMAGE) {
        annal_damage damage = annal_cursor_damage(cursor);
        proof->event =
            (annal_event){.seq = damage.seq, .offset = damage.offset, .length = damage.length};
        proof->why = damage.what;
    }
    return status < 0 ? status : ANNAL_OK;
}

static annal_status put_proof(struct request *request, const struct proof *proof,
                              const struct buf *line)
{
    struct buf *out = &request->answer;
    size_t len = line->len > 0 && line->ptr[line->len - 1] == '\n' ? line->len - 1 : line->len;
    annal__buf_printf(
        out,
        "{\"session_id\":\"%s\",\"seq\":%" PRIu64 ",\"format\":\"%s\",\"offset\":%" PRIu64
        ",\"bytes\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\",\"previous\":\"%016" PRIx64
        "\",\"proved\":%s,\"why\":",
        proof->journal, proof->seq, proof->format == ANNAL_FORMAT_MSGPACK ? "msgpack" : "jsonl",
        proof->event.offset, proof->event.length, proof->event.h, proof->previous,
        proof->proved ? "true" : "false");
    return annal__json_put(out, "!,\"line\":!}", annal_slice_of(proof->why),
                           (annal_slice){len == 0 ? NULL : line->ptr, len});
}

void serve_proof_get(struct serve *serve, struct request *request)
{
    char number[24];
    annal_error err = {0};
    struct proof proof = {0};
    SCOPED_BUF line = {.limit = LINE_BYTES_MAX + 1};
    annal_cursor *cursor = NULL;
    snprintf(number, sizeof number, "%.*s", ANNAL_FMT(request->item));
    if (request->item.len >= sizeof number || !fields_parse_number(number, &proof.seq) ||
        proof.seq == 0) {
        answer_error(request, 400, "invalid", "the path must contain the seq of an event");
        return;
    }
    annal_status status = annal_lineage_each(serve->store, request->id, note_part, &proof, &err);
    if (status >= 0 && proof.journal[0] == '\0')
        status = annal__fail(&err, ANNAL_ERR_NOTFOUND, "session '%.*s' has no event %" PRIu64,
                             ANNAL_FMT(request->id), proof.seq);
    if (status >= 0)
        status = annal_cursor_open(serve->store, annal_slice_of(proof.journal), proof.seq, &cursor,
                                   &err);
    if (status >= 0)
        status = find_event(cursor, &proof, &err);
    if (status >= 0 && proof.format != ANNAL_FORMAT_MSGPACK && proof.event.length <= LINE_BYTES_MAX)
        status = read_line(serve, &proof, &line, &err);
    if (status >= 0)
        status = put_proof(request, &proof, &line);
    if (cursor != NULL)
        annal_cursor_close(cursor);
    answer_json(request, status, &err);
}
