#include "core/file_read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/busy.h"
#include "core/regular.h"

static ps_code read_some(const char *path, int descriptor, int64_t offset, size_t n_bytes, void *bytes, size_t *got, ps_error *error) {
    *got = 0;
    while (*got < n_bytes) {
        ssize_t n = pread(descriptor, (char *)bytes + *got, n_bytes - *got, (off_t)(offset + (int64_t)*got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return PS_FAIL(error, PS_E_INPUT, "%s: cannot read at byte %lld: %s", path, (long long)offset + (long long)*got,
                           strerror(errno));
        if (n == 0) break;
        *got += (size_t)n;
    }
    return PS_OK;
}

ps_code ps_file_read_some(const char *path, int descriptor, int64_t offset, size_t n_bytes, void *bytes, size_t *got, ps_error *error) {
    PS_ASSERT(descriptor >= 0 && offset >= 0 && (bytes || n_bytes == 0));
    return PS_BUSY(PS_RESOURCE_FILE, read_some(path, descriptor, offset, n_bytes, bytes, got, error));
}

ps_code ps_file_read(const char *path, int descriptor, int64_t offset, size_t n_bytes, void *bytes, ps_error *error) {
    size_t got = 0;
    PS_TRY(ps_file_read_some(path, descriptor, offset, n_bytes, bytes, &got, error));
    if (got < n_bytes)
        return PS_FAIL(error, PS_E_INPUT, "%s: ends at byte %lld, expected %zu more bytes", path, (long long)offset + (long long)got,
                       n_bytes - got);
    return PS_OK;
}

size_t ps_file_start(const char *path, void *bytes, size_t n_bytes) {
    int descriptor = -1;
    if (ps_regular_open(path, PS_E_INPUT, &descriptor, NULL) != PS_OK) return 0;
    size_t got = 0;
    if (ps_file_read_some(path, descriptor, 0, n_bytes, bytes, &got, NULL) != PS_OK) got = 0;
    close(descriptor);
    return got;
}
