#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, BAR_CELLS = 30 };

static ps_log_options options = {.level = PS_LOG_INFO, .n_ranks = 1};
static atomic_bool bar_on_terminal; /* a bar is on the terminal's last line; any thread may log */

double ps_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void ps_log_configure(const ps_log_options *wanted) {
    options = *wanted;
}

static const char *level_name(ps_log_level level) {
    static const char *const names[] = {"debug", "info", "warning", "error"};
    return names[level];
}

/* Appends text as the inside of a JSON string; stops before the line is full. */
static size_t append_json(char *line, size_t used, const char *text) {
    for (; *text && used + 8 < LINE_BYTES; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            line[used++] = '\\';
            line[used++] = (char)c;
        } else if (c < 0x20) {
            used += (size_t)snprintf(line + used, 7, "\\u%04x", c);
        } else {
            line[used++] = (char)c;
        }
    }
    return used;
}

static size_t format_json(char *line, ps_log_level level, const char *text) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t used = (size_t)snprintf(line, LINE_BYTES, "{\"time\":%.3f,\"level\":\"%s\",\"rank\":%d,\"message\":\"",
                                   (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, level_name(level), options.rank);
    used = append_json(line, used, text);
    return used + (size_t)snprintf(line + used, LINE_BYTES - used, "\"}");
}

static size_t format_plain(char *line, ps_log_level level, const char *text) {
    const char *mark = level == PS_LOG_ERROR ? "error: " : level == PS_LOG_WARNING ? "warning: " : "";
    char rank[32] = "";
    if (options.n_ranks > 1) snprintf(rank, sizeof rank, "[rank %d] ", options.rank);
    int used = snprintf(line, LINE_BYTES, "%s%s%s%s", bar_on_terminal ? "\r\033[K" : "", rank, mark, text);
    return used < 0 ? 0 : used >= LINE_BYTES ? LINE_BYTES - 2 : (size_t)used;
}

void ps_log(ps_log_level level, const char *format, ...) {
    if (level < options.level) return;
    char text[LINE_BYTES / 2], line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t used = options.json ? format_json(line, level, text) : format_plain(line, level, text);
    line[used++] = '\n';
    atomic_store(&bar_on_terminal, false);
    if (write(STDERR_FILENO, line, used) < 0) return; /* a lost log line is not worth failing for */
}

struct ps_progress {
    char what[64];
    int64_t total, done, shown;
    double begin_s, interval_s, shown_s;
    bool terminal;
};

ps_progress *ps_progress_begin(const char *what, int64_t total, double interval_s) {
    ps_progress *progress = calloc(1, sizeof *progress);
    if (!progress) return NULL;
    snprintf(progress->what, sizeof progress->what, "%s", what);
    progress->total = total;
    progress->begin_s = ps_seconds();
    progress->interval_s = interval_s;
    progress->shown_s = progress->begin_s;
    progress->terminal = isatty(STDERR_FILENO) && !options.json;
    return progress;
}

static void format_duration(double seconds, char *text, size_t bytes) {
    long s = (long)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, bytes, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, bytes, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(text, bytes, "%ld s", s);
}

static void draw_bar(ps_progress *progress, const char *eta, const char *note) {
    char cells[BAR_CELLS + 1], line[512];
    int64_t filled = progress->total > 0 ? progress->done * BAR_CELLS / progress->total : 0;
    for (int i = 0; i < BAR_CELLS; i++) cells[i] = i < filled ? '#' : '.';
    cells[BAR_CELLS] = '\0';
    int used = snprintf(line, sizeof line, "\r\033[K%s [%s] %lld/%lld  %s  %s", progress->what, cells, (long long)progress->done,
                        (long long)progress->total, eta, note ? note : "");
    if (used > 0 && write(STDERR_FILENO, line, (size_t)used < sizeof line ? (size_t)used : sizeof line - 1) > 0) bar_on_terminal = true;
}

void ps_progress_update(ps_progress *progress, int64_t done, const char *note) {
    if (!progress) return;
    progress->done = done;
    double now = ps_seconds();
    bool last = done >= progress->total;
    if (done == progress->shown && !progress->terminal) return;
    if (!last && now - progress->shown_s < (progress->terminal ? 0.1 : progress->interval_s)) return;
    progress->shown_s = now;
    progress->shown = done;
    char eta[64] = "", left[48];
    if (done > 0) {
        double elapsed = now - progress->begin_s;
        format_duration(last ? elapsed : elapsed / (double)done * (double)(progress->total - done), left, sizeof left);
        snprintf(eta, sizeof eta, last ? "took %s" : "%s left", left);
    }
    if (progress->terminal)
        draw_bar(progress, eta, note);
    else
        ps_log(PS_LOG_INFO, "%s: %lld of %lld  %s  %s", progress->what, (long long)done, (long long)progress->total, eta, note ? note : "");
}

void ps_progress_end(ps_progress *progress) {
    if (!progress) return;
    if (progress->terminal && bar_on_terminal && write(STDERR_FILENO, "\n", 1) > 0) bar_on_terminal = false;
    free(progress);
}
