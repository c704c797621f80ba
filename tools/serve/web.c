/* SPDX-License-Identifier: Apache-2.0 */
/* The web page: files of web/dist, embedded at build time. The build creates web_files.c, which
 * lists them. */
#include "tools/serve/serve.h"
#include "tools/show/web_files.h"

#include <string.h>

/* Headers that allow only scripts and styles from this server, no frames, and no forms that submit
 * to other sites. */
static const char policy[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action "
    "'none'; "
    "frame-ancestors 'none'\n"
    "Cross-Origin-Opener-Policy: same-origin\nCross-Origin-Resource-Policy: "
    "same-origin\nX-Frame-Options: DENY\n";

static const char *type_of(const char *name)
{
    static const struct {
        const char *end, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".svg", "image/svg+xml"},
                 {".png", "image/png"},
                 {".ico", "image/x-icon"},
                 {".json", "application/json"},
                 {".webmanifest", "application/manifest+json"},
                 {".woff2", "font/woff2"}};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].end, end) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

static const struct web_file *find(const char *path)
{
    for (const struct web_file *file = web_files; file->name != NULL; file++) {
        if (strcmp(file->name, path) == 0)
            return file;
    }
    return NULL;
}

bool web_answer(struct request *request)
{
    const char *path = strcmp(request->path, "/") == 0 ? "index.html" : request->path + 1;
    const struct web_file *file = find(path);
    const char *have = http_header(request, "If-None-Match");
    const char *codings = http_header(request, "Accept-Encoding");
    if (file == NULL)
        return false;
    bool zips = file->zip != NULL && codings != NULL && strstr(codings, "gzip") != NULL;
    request->status = 200;
    request->type = type_of(path);
    request->constant =
        zips ? (annal_slice){file->zip, file->zip_len} : (annal_slice){file->bytes, file->len};
    /* The name of an asset contains the hash of its content, so it can be cached forever. */
    (void)annal__buf_printf(
        &request->headers, "%sETag: \"%s%s\"\nVary: Accept-Encoding\n%sCache-Control: %s\n", policy,
        file->etag, zips ? ".gz" : "", zips ? "Content-Encoding: gzip\n" : "",
        strncmp(path, "assets/", 7) == 0 ? "public, max-age=31536000, immutable" : "no-cache");
    if (have != NULL && strstr(have, file->etag) != NULL) {
        request->status = 304;
        request->constant.len = 0;
    }
    return true;
}
