/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/human.h"

#include "journal/base/calendar.h"

#include <annal/base.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void human_time(char text[HUMAN_TIME_BYTES], int64_t time_us)
{
    char wall[ANNAL_TIME_BYTES];
    annal_time_format(annal__calendar_wall(time_us), wall);
    snprintf(text, HUMAN_TIME_BYTES, "%.10s %.8s", wall, wall + 11);
}

const char *human_zone(char text[HUMAN_ZONE_BYTES])
{
    struct tm local;
    time_t now = time(NULL);
    const char *zone = getenv("TZ");
    if (zone != NULL && *zone == ':')
        zone++;
    if (zone == NULL || *zone == '\0')
        zone = localtime_r(&now, &local) != NULL ? local.tm_zone : "UTC";
    int quoted = *zone == '<' ? (int)strcspn(zone + 1, ">") : 0;
    /* TZ is an offset, as --zone sets it: "<+0530>-05:30"; print the quoted name as "+05:30" */
    if (quoted == 5)
        snprintf(text, HUMAN_ZONE_BYTES, "%.3s:%.2s", zone + 1, zone + 4);
    else
        snprintf(text, HUMAN_ZONE_BYTES, "%.*s", quoted > 0 ? quoted : HUMAN_ZONE_BYTES,
                 zone + (quoted > 0));
    return text;
}

const char *human_bytes(char text[HUMAN_BYTES], uint64_t bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
    double amount = (double)bytes;
    size_t unit = 0;
    while (amount >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        amount /= 1000;
        unit++;
    }
    snprintf(text, HUMAN_BYTES, unit == 0 || amount >= 99.5 ? "%.0f %s" : "%.1f %s", amount,
             units[unit]);
    return text;
}

const char *human_count(char text[HUMAN_BYTES], uint64_t count)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *to = text;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

const char *human_age(char text[HUMAN_BYTES], int64_t time_us, int64_t now_us)
{
    int64_t seconds = (now_us - time_us) / 1000000;
    if (seconds < -60)
        snprintf(text, HUMAN_BYTES, "in the future");
    else if (seconds < 5)
        snprintf(text, HUMAN_BYTES, "just now");
    else if (seconds < 60)
        snprintf(text, HUMAN_BYTES, "%" PRId64 " s ago", seconds);
    else if (seconds < 3600)
        snprintf(text, HUMAN_BYTES, "%" PRId64 " min ago", seconds / 60);
    else if (seconds < 86400)
        snprintf(text, HUMAN_BYTES, "%" PRId64 " h ago", seconds / 3600);
    else if (seconds < 172800)
        snprintf(text, HUMAN_BYTES, "yesterday");
    else
        snprintf(text, HUMAN_BYTES, "%" PRId64 " d ago", seconds / 86400);
    return text;
}
