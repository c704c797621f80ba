/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the page of annal serve, serve/web/dist, in embedded form. */
#ifndef TOOLS_SHOW_WEB_FILES_H
#define TOOLS_SHOW_WEB_FILES_H

#include <stddef.h>

struct web_file {
    const char *name; /* "assets/index-1a2b.js" */
    const char *etag;
    const char *bytes;
    size_t len;
    const char *zip; /* compressed with gzip; NULL: it is small, or never sent */
    size_t zip_len;
};

extern const struct web_file web_files[]; /* ended by a name of NULL */

#endif
