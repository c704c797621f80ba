/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/plot/plot.h"

#include "index/sys/view.h"
#include "journal/base/slice.h"
#include "tools/cli/catch_up.h"
#include "tools/cli/store_open.h"

#include <string.h>

enum { COLUMNS_DEFAULT = 80, COLUMNS_MAX = 400 };

/* ---- The command line ---- */

static int read_options(struct plot *plot)
{
    const struct args *args = plot->args;
    int by = fields_choice(args, "by");
    plot->by = by < 0 ? BY_NONE : (enum by)(BY_HOUR + by);
    if (by >= 0 && args->operand_count > 0)
        return fail_usage("--by needs a picture of the store: a session has one axis of time");
    fields_range(args, &plot->range);
    plot->svg = args_get(args, "svg");
    if (plot->svg != NULL && strcmp(plot->svg, "-") == 0 && args->json)
        return fail_usage(
            "--json and '--svg -' both write to standard output: give --svg a file name");
    int columns = out_columns();
    plot->columns = columns == 0 ? COLUMNS_DEFAULT : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    return 0;
}

/* ---- The verb ---- */

/* Add an ancestor of a fork to the list, because its events must be in the index, too. */
static int add_ancestor(void *arg, const annal_lineage_part *part)
{
    struct session_list *list = arg;
    if (!annal__slice_is(part->session, list->names[0].id))
        sessions_add(list, part->session, 0);
    return 0;
}

static int name_session(struct plot *plot)
{
    annal_error err = {0};
    if (plot->args->operand_count == 0)
        return 0;
    int exit_status = sessions_collect(plot->store, plot->args, &plot->list);
    if (exit_status != 0)
        return exit_status;
    annal_slice id = annal_slice_of(plot->args->operands[0]);
    int status = annal_session_lineage(plot->store, id, add_ancestor, &plot->list, &err);
    return status < 0 ? fail_error(&err) : status;
}

static int plot_all(struct plot *plot)
{
    annal_error err = {0};
    if (annal__view_open(plot->index, &plot->view, &err) < 0)
        return fail_error(&err);
    int exit_status = plot->list.count > 0 ? plot_session(plot) : plot_store(plot);
    annal__view_close(plot->view);
    return exit_status;
}

int plot_run(const struct args *args)
{
    struct plot plot = {.args = args};
    int exit_status = read_options(&plot);
    if (exit_status == 0)
        exit_status = store_open(args, OPEN_READ, 0, &plot.store);
    if (exit_status == 0)
        exit_status = name_session(&plot);
    if (exit_status == 0)
        exit_status = catch_up_open(plot.store, &plot.list, &plot.index);
    if (exit_status == 0)
        exit_status = plot_all(&plot);
    sessions_done(&plot.list);
    annal_index_close(plot.index);
    return store_close(plot.store, exit_status);
}
