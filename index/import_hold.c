/* Lines that are not JSON, held in JSON. */
#include "index/import.h"

#include "journal/base/base64.h"
#include "journal/base/json.h"

#include <inttypes.h>

static annal_status append_text(struct buf *out, annal_slice bytes)
{
    annal_status status = annal__buf_printf(out, ",\"text\":");
    return status < 0 ? status : annal__json_quote(out, bytes);
}

static annal_status append_bytes(struct buf *out, annal_slice bytes)
{
    annal_status status = annal__buf_printf(out, ",\"base64\":\"");
    if (status >= 0)
        status = annal__base64_put(out, bytes);
    return status < 0 ? status : annal__buf_append(out, "\"", 1);
}

annal_status annal__import_hold(struct buf *out, const annal_import_line *line, const char *reason)
{
    annal_status status = annal__buf_printf(out, "{\"reason\":\"%s\"", reason);
    if (status >= 0 && line->part > 0)
        status = annal__buf_printf(out, ",\"part\":%" PRIu32, line->part);
    if (status >= 0)
        status = annal__is_utf8(line->bytes) ? append_text(out, line->bytes)
                                             : append_bytes(out, line->bytes);
    return status < 0 ? status : annal__buf_append(out, "}", 1);
}
