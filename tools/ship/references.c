/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/references.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"
#include "journal/base/sha256.h"
#include "tools/cli/out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

annal_status references_note(void *arg, annal_slice session, annal_slice sha256, annal_error *err)
{
    struct references *references = arg;
    struct reference *item = annal__array_add(&references->all, &references->count, sizeof *item);
    if (item == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "ship: out of memory");
    snprintf(item->session, sizeof item->session, "%.*s", ANNAL_FMT(session));
    snprintf(item->sha256, sizeof item->sha256, "%.*s", ANNAL_FMT(sha256));
    return ANNAL_OK;
}

/* Send one artifact, unless the target stores it. *out_has is set to whether the target stores the
 * artifact on return. */
static annal_status send_one(const struct reference *reference, annal_store *store,
                             const struct ship_kind *kind, struct ship_target *target,
                             bool *out_has, annal_error *err)
{
    annal_slice content = {0};
    annal_error why = {0};
    annal_status status = kind->source->has(target, reference->sha256, out_has, err);
    if (status < 0 || *out_has)
        return status;
    status = annal_artifact_get(store, annal_slice_of(reference->session),
                                annal_slice_of(reference->sha256), SHIP_ARTIFACT_BYTES_MAX,
                                &content, &why);
    if (status == ANNAL_ERR_NOMEM)
        return annal__fail(err, status, "%s", why.message);
    if (annal__error_is_io(status) || status == ANNAL_ERR_CORRUPT)
        say("%s: the artifact was not shipped", why.message);
    if (status < 0)
        return ANNAL_OK;
    status = kind->source->keep(target, reference->sha256, content, err);
    *out_has = status >= 0;
    annal_free((void *)(uintptr_t)content.ptr);
    return status;
}

static int by_content(const void *a, const void *b)
{
    const struct reference *x = a, *y = b;
    return strcmp(x->sha256, y->sha256);
}

void references_sort(struct references *references)
{
    if (references->count > 0)
        qsort(references->all, references->count, sizeof *references->all, by_content);
}

void references_clear(struct references *references)
{
    annal__free(references->all);
    *references = (struct references){0};
}

annal_status references_send(struct references *references, annal_store *store,
                             const struct ship_kind *kind, struct ship_target *target,
                             annal_error *err)
{
    const struct reference *all = references->all;
    annal_status status = ANNAL_OK;
    bool has = false;
    references_sort(references);
    for (size_t i = 0; i < references->count && status >= 0; i++) {
        has = has && by_content(&all[i - 1], &all[i]) == 0;
        if (!has)
            status = send_one(&all[i], store, kind, target, &has, err);
    }
    return status;
}

bool references_is_content(annal_slice content, const char *sha256)
{
    uint8_t sum[SHA256_BYTES];
    char text[SHA256_TEXT_BYTES];
    annal__sha256_of(content.ptr, content.len, sum);
    annal__sha256_text(sum, text);
    return strcmp(text, sha256) == 0;
}

annal_status references_fetch(annal_slice session, const char *sha256, annal_store *store,
                              const struct ship_kind *kind, struct ship_target *target,
                              annal_error *err)
{
    SCOPED_BUF content = {0};
    annal_artifact_info info;
    annal_status status = kind->source->fetch(target, sha256, &content, err);
    if (status >= 0 && !references_is_content(annal__buf_slice(&content), sha256))
        status = annal__fail(err, ANNAL_ERR_CORRUPT,
                             "artifact %s has different content at the target", sha256);
    return status < 0 ? status
                      : annal_artifact_put(store, session, annal__buf_slice(&content), &info, err);
}
