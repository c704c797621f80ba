/* Embedded files. */
#ifndef TOOLS_SERVE_WEB_H
#define TOOLS_SERVE_WEB_H

#include <stddef.h>

struct web_file {
    const char *name; /* "assets/index-1a2b.js" */
    const char *etag;
    const char *bytes;
    size_t len;
};

extern const struct web_file web_files[]; /* ends with a name of NULL */

#endif
