/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the manifest of a bundle.
 *
 * (1) The parser accepts it, or refuses it with a message.
 * (2) An accepted manifest is written again as the same bytes. Its paths name journals and
 *     artifacts of its sessions; no path leads out of a store.
 */
#include "journal/base/buf.h"
#include "journal/base/slice.h"
#include "tests/fuzz/fuzz.h"
#include "tools/export/bundle.h"

#include <annal/journal.h>

#include <string.h>

static void check_path(const char *path, const char *folder)
{
    MUST(strncmp(path, folder, strlen(folder)) == 0);
    MUST(strstr(path, "..") == NULL || strstr(path, "/..") == NULL);
    MUST(strstr(path, "/.") == NULL && path[strlen(path) - 1] != '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct bundle bundle;
    struct buf again = {0};
    char path[BUNDLE_PATH_BYTES];
    annal_error err = {0};
    annal_slice text = {(const char *)bytes, len};
    annal_status status = bundle_manifest_read(text, &bundle, &err);
    if (status == ANNAL_OK) {
        MUST(bundle_manifest_write(&bundle, &again, &err) == ANNAL_OK);
        MUST(annal__slice_same(annal__buf_slice(&again), text));
        for (size_t i = 0; i < bundle.session_count; i++) {
            bundle_session_path(&bundle.sessions[i], path);
            check_path(path, "events/");
        }
        for (size_t i = 0; i < bundle.artifact_count; i++) {
            bundle_artifact_path(&bundle.artifacts[i], path);
            check_path(path, "artifacts/");
        }
    } else {
        MUST(err.message[0] != '\0');
    }
    annal__buf_done(&again);
    bundle_done(&bundle);
    return 0;
}
