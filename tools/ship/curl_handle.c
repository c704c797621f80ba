/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/ship/curl_handle.h"

#include "journal/base/error.h"

annal_status curl_handle_open(char *why, uint32_t quiet_ms, CURL **out_curl, annal_error *err)
{
    CURL *curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_easy_init() : NULL;
    if (curl == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "start libcurl: out of memory");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)quiet_ms);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1000L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)(quiet_ms / 1000));
    *out_curl = curl;
    return ANNAL_OK;
}
