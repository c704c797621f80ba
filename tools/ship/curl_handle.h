/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of libcurl for every kind of server. */
#pragma once

#include <annal/base.h>

#include <loaded/curl.h>

/* Open a handle for http and https; library_curl must be loaded. Requests fail after quiet_ms
 * with less than 1000 bytes a second. libcurl writes messages to why (CURL_ERROR_SIZE bytes). */
annal_status curl_handle_open(char *why, uint32_t quiet_ms, CURL **out_curl, annal_error *err);
