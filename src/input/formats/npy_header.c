#include "input/formats/npy_header.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file_read.h"
#include "core/regular.h"

static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { VERSION_BYTES = 8, MAX_HEADER = 1 << 20 };

bool ps_npy_is_file(const char *path) {
    uint8_t start[sizeof magic];
    return ps_file_start(path, start, sizeof start) == sizeof start && memcmp(start, magic, sizeof magic) == 0;
}

/* The text behind 'key': in the header's dictionary, or NULL. */
static const char *find_value(const char *text, const char *key) {
    size_t length = strlen(key);
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
        if (at == text || (at[-1] != '\'' && at[-1] != '"') || at[length] != at[-1]) continue;
        const char *value = at + length + 1;
        while (isspace((unsigned char)*value)) value++;
        if (*value++ != ':') continue;
        while (isspace((unsigned char)*value)) value++;
        return value;
    }
    return NULL;
}

typedef struct {
    char kind;
    int bytes;
    ps_dtype dtype;
} npy_type;

static const npy_type types[] = {{'u', 1, PS_U8},  {'u', 2, PS_U16}, {'u', 4, PS_U32}, {'i', 1, PS_I8}, {'i', 2, PS_I16},
                                 {'i', 4, PS_I32}, {'f', 4, PS_F32}, {'f', 8, PS_F64}, {'b', 1, PS_U8}};

static ps_code parse_type(const char *name, const char *text, ps_npy_header *header, ps_error *error) {
    const char *descr = find_value(text, "descr");
    if (!descr) return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header has no 'descr'", name);
    if (*descr == '\'' || *descr == '"') {
        char order = descr[1], kind = order ? descr[2] : '\0';
        int bytes = kind && isdigit((unsigned char)descr[3]) && descr[4] == descr[0] ? descr[3] - '0' : 0;
        for (size_t i = 0; strchr("<>|=", order) && i < sizeof types / sizeof *types; i++)
            if (types[i].kind == kind && types[i].bytes == bytes) {
                header->dtype = types[i].dtype;
                header->big_endian = order == '>' && bytes > 1;
                return PS_OK;
            }
    }
    const char *end = *descr == '\'' || *descr == '"' ? strchr(descr + 1, *descr) : NULL;
    enum { SHOWN = 24 };
    int length = end && end - descr < SHOWN ? (int)(end + 1 - descr) : SHOWN;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: the .npy file has elements of type %.*s; expected unsigned or signed integers of 1, 2 or 4 bytes, "
                   "float32 or float64 (convert with array.astype)",
                   name, length, descr);
}

static ps_code parse_shape(const char *name, const char *text, ps_npy_header *header, ps_error *error) {
    const char *at = find_value(text, "shape");
    if (!at || *at != '(') return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header has no 'shape'", name);
    header->n_elements = 1;
    for (at++; *at && *at != ')';) {
        char *end = NULL;
        errno = 0;
        long long size = strtoll(at, &end, 10);
        if (end == at || errno || size < 0 || header->rank == PS_NPY_MAX_RANK ||
            __builtin_mul_overflow(header->n_elements, (int64_t)size, &header->n_elements))
            return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header has an impossible shape: %.60s", name, find_value(text, "shape"));
        header->shape[header->rank++] = size;
        at = end;
        while (*at == ',' || isspace((unsigned char)*at)) at++;
    }
    if (*at != ')') return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header's shape does not end", name);
    return PS_OK;
}

static ps_code parse_text(const char *name, const char *text, ps_npy_header *header, ps_error *error) {
    PS_TRY(parse_type(name, text, header, error));
    const char *order = find_value(text, "fortran_order");
    if (!order || (strncmp(order, "True", 4) != 0 && strncmp(order, "False", 5) != 0))
        return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header does not say 'fortran_order'", name);
    header->fortran_order = *order == 'T';
    return parse_shape(name, text, header, error);
}

ps_code ps_npy_parse(const char *name, const uint8_t *start, size_t n_bytes, ps_npy_header *header, size_t *needed, ps_error *error) {
    *header = (ps_npy_header){0};
    *needed = VERSION_BYTES + 4;
    if (n_bytes < *needed) return PS_OK;
    if (memcmp(start, magic, sizeof magic) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: not a .npy file", name);
    int major = start[6];
    if (major < 1 || major > 3) return PS_FAIL(error, PS_E_INPUT, "%s: .npy version %d, known are 1 to 3", name, major);
    size_t length = start[8] | (size_t)start[9] << 8, prefix = VERSION_BYTES + 2;
    if (major > 1) {
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
        prefix += 2;
    }
    if (length > MAX_HEADER) return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header says it has %zu bytes", name, length);
    if (prefix + length > *needed) *needed = prefix + length;
    if (*needed > n_bytes) return PS_OK;
    char *text = strndup((const char *)start + prefix, length);
    if (!text) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a .npy header");
    ps_code code = parse_text(name, text, header, error);
    header->data_offset = (int64_t)(prefix + length);
    free(text);
    return code;
}

static ps_code read_header(const char *path, int descriptor, ps_npy_header *header, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = 128, needed = 0;
    uint8_t *start = NULL;
    for (int attempt = 0; attempt < 3; attempt++, n = needed) {
        uint8_t *larger = realloc(start, n);
        PS_GO_ALLOC(error, larger);
        start = larger;
        size_t got = 0;
        PS_GO(ps_file_read_some(path, descriptor, 0, n, start, &got, error));
        PS_GO(ps_npy_parse(path, start, got, header, &needed, error));
        if (needed <= got) goto done;
        if (got < n) break;
    }
    code = PS_FAIL(error, PS_E_INPUT, "%s: the .npy file ends inside its header (expected %zu bytes)", path, needed);
done:
    free(start);
    return code;
}

static ps_code check_size(const char *path, int descriptor, const ps_npy_header *header, ps_error *error) {
    struct stat status;
    int64_t bytes = 0;
    if (fstat(descriptor, &status) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: cannot stat: %s", path, strerror(errno));
    if (__builtin_mul_overflow(header->n_elements, (int64_t)ps_dtype_bytes(header->dtype), &bytes) ||
        __builtin_add_overflow(bytes, header->data_offset, &bytes) || bytes > status.st_size)
        return PS_FAIL(error, PS_E_INPUT, "%s: the .npy header promises %" PRId64 " elements of %zu bytes, the file has only %lld bytes",
                       path, header->n_elements, ps_dtype_bytes(header->dtype), (long long)status.st_size);
    return PS_OK;
}

ps_code ps_npy_open(const char *path, ps_npy_header *header, int *descriptor, ps_error *error) {
    PS_TRY(ps_regular_open(path, PS_E_INPUT, descriptor, error));
    ps_code code = read_header(path, *descriptor, header, error);
    if (code == PS_OK) code = check_size(path, *descriptor, header, error);
    if (code != PS_OK) {
        close(*descriptor);
        *descriptor = -1;
    }
    return code;
}
