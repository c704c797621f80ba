#include "tools/export/target.h"

#include "journal/base/io.h"
#include "tools/command.h"
#include "tools/out.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_aside(struct export_target *target)
{
    struct stat st;
    if (stat(target->path, &st) == 0 && !S_ISREG(st.st_mode))
        return open(target->path, O_WRONLY | O_CLOEXEC);
    if (annal__buf_printf(&target->aside, "%s.partial-%ld", target->path, (long)getpid()) < 0 ||
        annal__buf_cstr(&target->aside) == NULL)
        return -1;
    const char *path = annal__buf_cstr(&target->aside);
    (void)unlink(path); /* of a process of the same id that died */
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
}

int export_target_begin(struct export_target *target, const char *path)
{
    *target = (struct export_target){.path = path, .saved_stdout = -1};
    if (path == NULL)
        return EXIT_DONE;
    fflush(stdout);
    int fd = open_aside(target);
    if (fd >= 0) {
        target->saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (target->saved_stdout >= 0 && dup2(fd, STDOUT_FILENO) < 0) {
            close(target->saved_stdout);
            target->saved_stdout = -1;
        }
    }
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (target->saved_stdout >= 0)
        return EXIT_DONE;
    if (fd >= 0 && target->aside.len > 0)
        (void)unlink(annal__buf_cstr(&target->aside));
    annal__buf_done(&target->aside);
    return fail_storage("write '%s': %s", path, strerror(why));
}

static int sync_parent(const char *path)
{
    annal_error err = {0};
    struct buf copy = {0};
    annal_status status = annal__buf_printf(&copy, "%s", path);
    if (status == ANNAL_OK && annal__buf_cstr(&copy) != NULL)
        status = annal__sync_dir(&annal__system_io, dirname(copy.ptr), &err);
    annal__buf_done(&copy);
    return status < 0 ? fail_error(&err) : EXIT_DONE;
}

static int publish(struct export_target *target)
{
    const char *aside = annal__buf_cstr(&target->aside);
    if (fsync(STDOUT_FILENO) == 0 && rename(aside, target->path) == 0)
        return sync_parent(target->path);
    int why = errno;
    (void)unlink(aside);
    return fail_storage("write '%s': %s", target->path, strerror(why));
}

int export_target_end(struct export_target *target, bool whole)
{
    int exit_status = EXIT_DONE;
    if (target->saved_stdout < 0)
        return EXIT_DONE;
    errno = 0;
    bool written = out_flush();
    if (whole && !written)
        exit_status = fail_storage("write '%s': %s", target->path,
                                   errno != 0 ? strerror(errno) : "not all could be written");
    else if (whole && target->aside.len > 0)
        exit_status = publish(target);
    if (!(whole && written) && target->aside.len > 0)
        (void)unlink(annal__buf_cstr(&target->aside));
    clearerr(stdout);
    (void)dup2(target->saved_stdout, STDOUT_FILENO);
    close(target->saved_stdout);
    annal__buf_done(&target->aside);
    target->saved_stdout = -1;
    return exit_status;
}
