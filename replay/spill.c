/*
 * A fold of a million events writes more pages than should stand in memory. So now and then they
 * are put away in a file without a name, in the store's directory, over which the state goes on: a
 * fold of any length takes a bounded amount of memory. The file goes with the last who needs it,
 * also when the process dies. Where none can be made (a store on read-only media), and from when
 * the disk is full, the pages stay in memory: what was written over pages of the file counts for
 * nothing before the state is over them.
 */
#include "replay/spill.h"

#include "journal/base/alloc.h"
#include "journal/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct spill {
    int fd;    /* -1: there is no file */
    bool full; /* it takes nothing more: the disk is full */
    unsigned refs;
};

void annal__spill_unref(struct spill *spill)
{
    if (spill == NULL || --spill->refs > 0)
        return;
    if (spill->fd >= 0)
        close(spill->fd);
    annal__free(spill);
}

static void spill_close(void *arg)
{
    annal__spill_unref(arg);
}

static annal_status transfer(struct spill *spill, uint64_t page, char *bytes, bool writes,
                             annal_error *err)
{
    off_t offset = (off_t)(page - 1) * ANNAL_STATE_PAGE_BYTES;
    for (size_t done = 0; done < ANNAL_STATE_PAGE_BYTES;) {
        size_t left = ANNAL_STATE_PAGE_BYTES - done;
        ssize_t n = writes ? pwrite(spill->fd, bytes + done, left, offset + (off_t)done)
                           : pread(spill->fd, bytes + done, left, offset + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return annal__fail_errno(err, "the pages of a state that were put away in a file");
        }
        done += (size_t)n;
    }
    return ANNAL_OK;
}

static annal_status read_page(void *arg, uint64_t page, void *out, annal_error *err)
{
    return transfer(arg, page, out, false, err);
}

struct writing {
    struct spill *spill;
    annal_state *state;
    annal_error *err;
};

static int write_page(void *arg, uint64_t page)
{
    struct writing *writing = arg;
    char bytes[ANNAL_STATE_PAGE_BYTES];
    annal_status status = annal_state_page(writing->state, page, bytes, writing->err);
    if (status < 0)
        return status;
    writing->spill->full = transfer(writing->spill, page, bytes, true, NULL) < 0;
    return writing->spill->full ? ANNAL_END : ANNAL_OK;
}

static annal_status make(struct spill **out_spill, annal_store *store, annal_error *err)
{
    struct spill *spill = annal__zalloc(sizeof *spill);
    if (spill == NULL)
        return annal__fail(err, ANNAL_ERR_NOMEM, "the pages of a state");
    spill->refs = 1;
    spill->fd = open(annal_store_path(store), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    *out_spill = spill;
    return ANNAL_OK;
}

annal_status annal__spill(struct spill **spill, annal_store *store, annal_state *state,
                          annal_error *err)
{
    annal_status status = *spill == NULL ? make(spill, store, err) : ANNAL_OK;
    if (status < 0 || (*spill)->fd < 0 || (*spill)->full)
        return status;
    struct writing writing = {*spill, state, err};
    annal_state_source source = {.read = read_page, .close = spill_close, .arg = *spill};
    status = annal_state_page_count(state, &source.page_count, err);
    if (status == ANNAL_OK)
        status = annal_state_changed(state, write_page, &writing, err);
    if (status == ANNAL_OK)
        status = annal_state_rebase(state, &source, err);
    if (status == ANNAL_OK)
        (*spill)->refs++;
    return status == ANNAL_END ? ANNAL_OK : status;
}
