/* SPDX-License-Identifier: Apache-2.0 */
/* What libcurl has to know of every server. */
#ifndef TOOLS_SHIP_CURL_HANDLE_H
#define TOOLS_SHIP_CURL_HANDLE_H

#include <annal/base.h>

#include <loaded/curl.h>

/* With library_curl loaded: a handle for http and https that gives up a server that is silent for
 * quiet_ms. Messages of its failures go to why (CURL_ERROR_SIZE bytes). */
annal_status curl_handle_open(char *why, uint32_t quiet_ms, CURL **out_curl, annal_error *err);

#endif
