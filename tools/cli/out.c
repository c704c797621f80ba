/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/out.h"

#include "journal/base/io.h"
#include "journal/base/json.h"
#include "tools/cli/command.h"
#include "tools/cli/visible.h"
#include "tools/cli/width.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- The streams ---- */

/* A stream that is written to a terminal. */
struct screen {
    int fd;
    struct buf *capture; /* buffer to which output is appended; NULL: output is written to fd */
    FILE *plain;         /* the stream with which the process started */
    FILE *shown;         /* stream that makes characters visible; NULL until it is needed */
    struct visible visible;
    struct buf text;
};

static struct screen screens[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static bool write_bytes(struct screen *screen, const char *bytes, size_t len)
{
    return screen->capture != NULL ? annal__buf_append(screen->capture, bytes, len) >= 0
                                   : annal__io_write_fd(screen->fd, (annal_slice){bytes, len});
}

static bool write_text(struct screen *screen)
{
    bool written = write_bytes(screen, screen->text.ptr, screen->text.len);
    annal__buf_clear(&screen->text);
    return written;
}

/* Write bytes with control characters made visible; a write function of fopencookie(3), so it
 * returns 0 on failure. */
static ssize_t write_visible(void *arg, const char *bytes, size_t len)
{
    struct screen *screen = arg;
    if (visible_add(&screen->visible, &screen->text, (annal_slice){bytes, len}) < 0) {
        errno = ENOMEM;
        return 0;
    }
    return write_text(screen) ? (ssize_t)len : 0;
}

static void open_stream(struct screen *screen, FILE **stream)
{
    if (screen->plain == NULL)
        screen->plain = *stream;
    fflush(*stream);
    bool terminal = screen->capture != NULL || isatty(screen->fd);
    if (terminal && screen->shown == NULL) {
        screen->shown = fopencookie(screen, "w", (cookie_io_functions_t){.write = write_visible});
        if (screen->shown != NULL)
            setvbuf(screen->shown, NULL, _IOLBF, 0);
    }
    if (terminal && screen->shown == NULL)
        _exit(EXIT_STORAGE); /* memory ran out, so nothing can be printed */
    *stream = terminal ? screen->shown : screen->plain;
}

void out_open(void)
{
    open_stream(&screens[0], &stdout);
    open_stream(&screens[1], &stderr);
}

void out_capture(struct buf *text)
{
    fflush(stdout);
    screens[0].capture = text;
    open_stream(&screens[0], &stdout);
}

/* Print the bytes that are held because a character may be incomplete: no more bytes follow. */
static void end_text(struct screen *screen)
{
    if (screen->visible.held_len > 0 && visible_end(&screen->visible, &screen->text) >= 0)
        (void)write_text(screen);
}

void out_control(FILE *stream, const char *sequence)
{
    struct screen *screen = &screens[stream == stderr ? 1 : 0];
    flockfile(stream);
    if (stream == screen->shown) {
        fflush(stream);
        end_text(screen);
        (void)write_bytes(screen, sequence, strlen(sequence));
    } else {
        fputs(sequence, stream);
    }
    funlockfile(stream);
}

void out_style(const char *code)
{
    char sequence[24];
    if (!out_colours(stdout))
        return;
    snprintf(sequence, sizeof sequence, "\033[%sm", code);
    out_control(stdout, sequence);
}

/* ---- Messages ---- */

enum { MESSAGE_BYTES = 1200 };

ANNAL_PRINTF(1, 0)
static void print_message(const char *format, va_list list)
{
    char text[MESSAGE_BYTES];
    vsnprintf(text, sizeof text, format, list);
    fflush(stdout);
    /* keep the message in one piece: a thread of the library may be writing to stderr, too */
    flockfile(stderr);
    fputs("annal: ", stderr);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r')
            fprintf(stderr, "\\u%04x", *c);
        else
            fputc(*c, stderr);
    }
    fputc('\n', stderr);
    fflush(stderr);
    funlockfile(stderr);
}

void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_message(format, list);
    va_end(list);
}

int out_fail(int exit_status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    print_message(format, list);
    va_end(list);
    return exit_status;
}

int error_exit(annal_status status)
{
    switch (status) {
    case ANNAL_ERR_NOTFOUND:
    case ANNAL_ERR_INVALID:
    case ANNAL_ERR_BUSY:
    case ANNAL_ERR_LIMIT:
    case ANNAL_ERR_CONFLICT:
    case ANNAL_ERR_CORRUPT:
    case ANNAL_ERR_SQL:
    case ANNAL_ERR_REFUSED:
        return EXIT_REFUSED;
    default:
        return EXIT_STORAGE;
    }
}

int fail_error(const annal_error *err)
{
    say("%s", err->message);
    return error_exit(err->status);
}

void say_log(void *arg, annal_log_level level, const char *message)
{
    (void)arg;
    if (level == ANNAL_LOG_WARNING)
        say("%s", message);
}

/* ---- stdout ---- */

bool out_flush(void)
{
    return fflush(stdout) == 0 && !ferror(stdout);
}

bool out_wanted(void)
{
    return !ferror(stdout);
}

bool out_reader_is_gone(void)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    return poll(&reader, 1, 0) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0;
}

int out_finish(int exit_status)
{
    errno = 0;
    if (out_flush()) {
        if (stdout == screens[0].shown)
            end_text(&screens[0]);
        return exit_status;
    }
    /* reason of the failure; 0 if an earlier write failed, because stdio does not keep its
     * reason */
    int why = errno;
    if (why == EPIPE || out_reader_is_gone())
        return exit_status;
    return fail_storage("print to standard output: %s",
                        why != 0 ? strerror(why) : "the output could be written only in part");
}

void out_slice(annal_slice slice)
{
    if (slice.len > 0)
        fwrite(slice.ptr, 1, slice.len, stdout);
}

/* Return whether a character is printed as a space in texts on one line. */
static bool is_space(char c)
{
    return c == '\n' || c == '\r' || c == '\t' || c == '\0';
}

void out_plain(annal_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        fputc(is_space(text.ptr[i]) ? ' ' : text.ptr[i], stdout);
}

int out_cut(int columns, annal_slice text)
{
    SCOPED_BUF line = {0};
    int used = 0;
    if (columns > 0 && out_line(&line, text) >= 0 && annal__buf_append(&line, "", 1) >= 0) {
        size_t len = width_fitting(line.ptr, columns);
        bool cut = line.ptr[len] != '\0';
        if (cut)
            len = width_fitting(line.ptr, columns - 1);
        fwrite(line.ptr, 1, len, stdout);
        fputs(cut ? "…" : "", stdout);
        line.ptr[len] = '\0';
        used = width_of_text(line.ptr) + cut;
    }
    return used;
}

annal_status out_line(struct buf *out, annal_slice text)
{
    bool shown = stdout == screens[0].shown;
    SCOPED_BUF line = {0};
    struct buf *plain = shown ? &line : out;
    size_t begin = plain->len;
    annal_status status = annal__buf_append_slice(plain, text);
    for (size_t i = begin; i < plain->len; i++)
        plain->ptr[i] = is_space(plain->ptr[i]) ? ' ' : plain->ptr[i];
    if (status == ANNAL_OK && shown)
        status = visible_append(out, annal__buf_slice(&line));
    return status;
}

void out_json_fill(const char *format, const annal_slice *values, size_t count)
{
    SCOPED_BUF text = {0};
    if (annal__json_fill(&text, format, values, count) == ANNAL_OK)
        out_slice(annal__buf_slice(&text));
}

annal_slice out_json_time(char text[ANNAL_TIME_BYTES], int64_t time_us)
{
    annal_time_format(time_us, text);
    return annal_slice_of(text);
}

bool out_colours(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (no_color != NULL && no_color[0] != '\0')
        return false;
    if (stream == stdout && screens[0].capture != NULL)
        return true;
    return isatty(stream == stderr ? STDERR_FILENO : STDOUT_FILENO) &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

int out_columns(void)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    if (!isatty(STDOUT_FILENO)) {
        long asked = columns == NULL ? 0 : strtol(columns, NULL, 10);
        return asked > 0 && asked < 10000 ? (int)asked : 0;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col;
}

void out_shown_time(int64_t time_us)
{
    char text[ANNAL_TIME_BYTES];
    _Static_assert(HUMAN_TIME_BYTES <= ANNAL_TIME_BYTES, "either text fits");
    if (isatty(STDOUT_FILENO))
        human_time(text, time_us);
    else
        annal_time_format(time_us, text);
    fputs(text, stdout);
}
