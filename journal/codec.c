/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/codec.h"

#include "journal/base/error.h"
#include "journal/base/hex.h"
#include "journal/base/slice.h"
#include "journal/envelope.h"

const struct codec *const annal__codecs[CODEC_COUNT] = {&annal__codec_json, &annal__codec_msgpack};

const struct codec *annal__codec_of(unsigned format)
{
    for (size_t i = 0; i < CODEC_COUNT; i++) {
        if (annal__codecs[i]->format == format)
            return annal__codecs[i];
    }
    return NULL;
}

bool annal__codec_proves(const struct codec *codec, annal_slice frame, uint64_t offset,
                         uint64_t h_before, uint64_t *out_h)
{
    uint64_t h = 0;
    if (!codec->trailer(frame, &h) || !codec->ends(frame) ||
        codec->hash(frame, offset, h_before) != h)
        return false;
    *out_h = h;
    return true;
}

bool annal__codec_event(const struct codec *codec, annal_slice frame, annal_event *out_event,
                        const char **out_fault)
{
    annal_event event;
    bool shaped = codec->parse_event(frame, &event);
    const char *fault = shaped ? annal__envelope_fault(&event) : NULL;
    if (out_fault != NULL)
        *out_fault = fault;
    if (shaped && fault == NULL)
        *out_event = event;
    return shaped && fault == NULL;
}

bool annal__codec_first(const struct codec *codec, annal_slice bytes,
                        struct frame_header *out_header, uint64_t *out_h)
{
    size_t length = bytes.len == 0 ? 0 : codec->measure(bytes, 0, true);
    annal_slice frame = {bytes.ptr, length};
    return length > 0 && annal__codec_proves(codec, frame, 0, 0, out_h) &&
           codec->parse_header(frame, out_header);
}

annal_status annal__codec_check_owner(const struct frame_header *header, annal_slice session,
                                      annal_error *err)
{
    /* whether the header names a session; a header of a newer version may do this in a way that
     * this program does not know */
    bool says = header->version <= FRAME_VERSION || header->session.len > 0;
    if (!says || annal__slice_same(header->session, session))
        return ANNAL_OK;
    return annal__fail(err, ANNAL_ERR_CORRUPT,
                       "the journal of session '%.*s' belongs to session '%.*s' and was moved or "
                       "copied there: move this file out of the store",
                       ANNAL_FMT(session), ANNAL_FMT(header->session));
}

void annal__codec_file_id_text(const uint8_t file[FRAME_FILE_ID_BYTES], char out[33])
{
    annal__hex_text(file, FRAME_FILE_ID_BYTES, out);
}
