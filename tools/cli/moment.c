#include "tools/cli/moment.h"

#include "tools/cli/args.h"

bool parse_moment(const char *text, annal_moment *out)
{
    annal_moment moment = {0};
    if (parse_number(text, &moment.seq))
        moment.kind = ANNAL_AT_SEQ;
    else if (parse_time(text, &moment.time_us))
        moment.kind = ANNAL_AT_TIME;
    else
        return false;
    *out = moment;
    return true;
}
