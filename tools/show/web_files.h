/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web page of annal serve, from serve/web/dist, embedded in the program. */
#pragma once

#include <stddef.h>

struct web_file {
    const char *name; /* path, such as "assets/index-1a2b.js" */
    const char *etag;
    const char *bytes;
    size_t len;
    const char *zip; /* the file compressed with gzip; NULL if it is small, or never sent */
    size_t zip_len;
};

extern const struct web_file web_files[]; /* ended by an entry whose name is NULL */
