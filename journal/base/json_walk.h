/*
 * Walking over JSON that is known to be valid, without building it: values keep their bytes.
 */
#ifndef JOURNAL_BASE_JSON_WALK_H
#define JOURNAL_BASE_JSON_WALK_H

#include "journal/base/buf.h"

#include <annal/base.h>

struct json_walk {
    const char *at;
    const char *end;
};

/* Begin in an object: its first byte after spaces is '{'. False: it is something else. */
bool annal__json_walk_object(struct json_walk *walk, annal_slice object);

/* The next member: the raw string that is its name, and its raw value. False: there are no more. */
bool annal__json_walk_next(struct json_walk *walk, annal_slice *out_name, annal_slice *out_value);

/* As above, for an array and its items. */
bool annal__json_walk_array(struct json_walk *walk, annal_slice array);
bool annal__json_walk_item(struct json_walk *walk, annal_slice *out_value);

/*
 * The text of a raw string. Without escapes it is a slice of the raw bytes; otherwise it is added
 * to scratch, in which room should be reserved if several are kept. ANNAL_ERR_INVALID: half a
 * surrogate pair, which is not a character.
 */
annal_status annal__json_text(annal_slice raw, struct buf *scratch, annal_slice *out);

/* The raw value of a member, "id" or "run.id"; empty if there is none. Names with escapes are not
 * found. */
annal_slice annal__json_member(annal_slice object, const char *path);

#endif
