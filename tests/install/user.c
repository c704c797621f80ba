/* A program of somebody who has only the installed library. */
#include <annal/base.h>

#include <stdio.h>

int main(void)
{
    int64_t time_us;
    annal_error err;
    if (annal_time_parse(annal_slice_of("2026-01-06T07:24:00Z"), &time_us, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("annal %s\n", annal_version());
    return 0;
}
