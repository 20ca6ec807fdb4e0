#include "input/recording_files.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/text.h"
#include "hdf5/linked_file.h"
#include "hdf5/util.h"
#include "input/formats/empad_xml.h"
#include "input/open.h"
#include "input/source.h"

enum { MAX_XML_BYTES = 4 << 20 };

static bool is_regular(const char *path, struct stat *status) {
    return stat(path, status) == 0 && S_ISREG(status->st_mode);
}

/* The files found so far, and which they are on disk: names alone do not tell, and files may name each other in a circle. */
typedef struct {
    ps_name_list *names;
    struct {
        dev_t device;
        ino_t inode;
    } * seen; /* [n] */
    int64_t n, room;
} found_files;

static bool is_seen(const found_files *files, const struct stat *status) {
    for (int64_t i = 0; i < files->n; i++)
        if (files->seen[i].inode == status->st_ino && files->seen[i].device == status->st_dev) return true;
    return false;
}

static ps_code remember(found_files *files, const struct stat *status) {
    if (files->n == files->room) {
        int64_t room = files->room ? 2 * files->room : 16;
        void *larger = realloc(files->seen, (size_t)room * sizeof *files->seen);
        if (!larger) return PS_E_MEMORY;
        files->seen = larger;
        files->room = room;
    }
    files->seen[files->n].device = status->st_dev;
    files->seen[files->n++].inode = status->st_ino;
    return PS_OK;
}

/* Takes path (NULL: out of memory). One that is not there, or was found before, is left out. */
static ps_code add_path(found_files *files, char *path, ps_error *error) {
    struct stat status;
    ps_code code = path ? PS_OK : PS_E_MEMORY;
    if (path && is_regular(path, &status) && !is_seen(files, &status)) {
        code = remember(files, &status);
        if (code == PS_OK) code = ps_name_list_add(files->names, path);
    }
    free(path);
    return code == PS_OK ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the names of linked files");
}

/* ---- what an HDF5 file names ---- */

typedef struct {
    const char *path; /* of the file that is gone through */
    found_files *files;
    ps_code code;
    ps_error *error;
} search;

static ps_code add_pattern(search *s, const char *pattern) {
    glob_t found = {0};
    ps_code code = PS_OK;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && code == PS_OK; i++) code = add_path(s->files, strdup(found.gl_pathv[i]), s->error);
    globfree(&found);
    return code;
}

/* The folders of a list "a:b:c" in the environment, ${ORIGIN} in them for the folder of the HDF5 file. */
static ps_code add_prefixed(search *s, const char *folders, const char *folder, const char *name) {
    static const char origin[] = "${ORIGIN}";
    ps_code code = PS_OK;
    for (const char *at = folders; at && *at && code == PS_OK; at += *at == ':') {
        int length = (int)strcspn(at, ":"), skip = strncmp(at, origin, sizeof origin - 1) == 0 ? (int)sizeof origin - 1 : 0;
        char *path = ps_text_format("%s%.*s/%s", skip ? folder : "", length - skip, at + skip, name);
        code = add_path(s->files, path, s->error);
        at += length;
    }
    return code;
}

/* HDF5 looks at prefixes, beside the file and beside what it is a link to, and where the program was started; all of them count. */
static ps_code add_named(search *s, const char *written, const char *prefix_variable) {
    char real[PATH_MAX];
    const char *slash = strrchr(written, '/'), *name = written[0] == '/' ? slash + 1 : written;
    char *folder = ps_path_directory(s->path), *behind = realpath(s->path, real) ? ps_path_directory(real) : NULL;
    char *found = ps_linked_file_find(s->path, written);
    ps_code code = folder ? add_path(s->files, ps_path_resolve(".", written), s->error)
                          : PS_FAIL(s->error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (code == PS_OK && found) code = add_path(s->files, strdup(found), s->error);
    if (code == PS_OK) code = add_path(s->files, ps_text_format("%s/%s", folder, name), s->error);
    if (code == PS_OK && behind) code = add_path(s->files, ps_text_format("%s/%s", behind, name), s->error);
    if (code == PS_OK) code = add_prefixed(s, getenv(prefix_variable), folder, name);
    free(found);
    free(behind);
    free(folder);
    return code;
}

/* "part_%3b.h5" becomes "part_*.h5", in place. */
static void free_numbers(char *name) {
    char *out = name;
    for (const char *in = name; *in; in++) {
        size_t digits = *in == '%' ? strspn(in + 1, "0123456789") : 0;
        bool number = *in == '%' && in[1 + digits] == 'b';
        *out++ = number ? '*' : *in;
        if (number) in += digits + 1;
    }
    *out = '\0';
}

/* Numbered source files of a virtual dataset: whatever is in the place of the number. */
static ps_code add_numbered(search *s, char *written) {
    ps_code code = PS_OK;
    char *folder = ps_path_directory(s->path), *pattern = NULL;
    free_numbers(written);
    pattern = folder ? ps_path_resolve(folder, written) : NULL;
    code = pattern ? add_pattern(s, pattern) : PS_FAIL(s->error, PS_E_MEMORY, "cannot allocate memory for a path");
    free(pattern);
    free(folder);
    return code;
}

static ps_code add_sources(search *s, hid_t plist) {
    size_t n = 0;
    if (H5Pget_virtual_count(plist, &n) < 0) return PS_OK;
    for (size_t i = 0; i < n; i++) {
        ssize_t length = H5Pget_virtual_filename(plist, i, NULL, 0);
        char *name = length > 0 ? calloc((size_t)length + 1, 1) : NULL;
        ps_code code = PS_OK;
        if (name && H5Pget_virtual_filename(plist, i, name, (size_t)length + 1) >= 0 && strcmp(name, ".") != 0)
            code = strchr(name, '%') ? add_numbered(s, name) : add_named(s, name, "HDF5_VDS_PREFIX");
        free(name);
        PS_TRY(code);
    }
    return PS_OK;
}

static ps_code add_storage(search *s, hid_t plist) {
    int n = H5Pget_external_count(plist);
    for (int i = 0; i < n; i++) {
        char name[4096] = "";
        if (H5Pget_external(plist, (unsigned)i, sizeof name - 1, name, NULL, NULL) < 0) continue;
        PS_TRY(add_path(s->files, ps_external_file_place(s->path, name), s->error));
        PS_TRY(add_named(s, name, "HDF5_EXTFILE_PREFIX"));
    }
    return PS_OK;
}

static ps_code look_at_dataset(search *s, hid_t group, const char *name) {
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT), plist = dataset < 0 ? -1 : H5Dget_create_plist(dataset);
    if (plist >= 0 && H5Pget_layout(plist) == H5D_VIRTUAL) code = add_sources(s, plist);
    if (plist >= 0 && H5Pget_layout(plist) == H5D_CONTIGUOUS && code == PS_OK) code = add_storage(s, plist);
    if (plist >= 0) H5Pclose(plist);
    if (dataset >= 0) H5Dclose(dataset);
    return code;
}

static ps_code look_at_link(search *s, hid_t group, const char *name, size_t bytes) {
    const char *file = NULL, *object = NULL;
    unsigned flags;
    ps_code code = PS_OK;
    char *value = malloc(bytes + 1);
    if (!value) return PS_FAIL(s->error, PS_E_MEMORY, "cannot allocate memory for a link");
    if (H5Lget_val(group, name, value, bytes, H5P_DEFAULT) >= 0 && H5Lunpack_elink_val(value, bytes, &flags, &file, &object) >= 0)
        code = add_named(s, file, "HDF5_EXT_PREFIX");
    free(value);
    return code;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    search *s = context;
    H5O_info_t object;
    if (info->type == H5L_TYPE_EXTERNAL)
        s->code = look_at_link(s, group, name, info->u.val_size);
    else if (info->type == H5L_TYPE_HARD && H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
             object.type == H5O_TYPE_DATASET)
        s->code = look_at_dataset(s, group, name);
    return s->code == PS_OK ? 0 : -1;
}

static ps_code search_hdf5(const char *path, found_files *files, ps_error *error) {
    search s = {.path = path, .files = files, .code = PS_OK, .error = error};
    hid_t file = H5I_INVALID_HID;
    ps_hdf5_lock();
    if (ps_hdf5_is_file(path) && ps_hdf5_open(path, &file, NULL) == PS_OK) {
        H5Lvisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit_link, &s);
        H5Fclose(file);
    }
    ps_hdf5_unlock();
    return s.code;
}

/* ---- companions of other formats ---- */

static bool has_ending(const char *path, const char *ending) {
    size_t n = strlen(path), tail = strlen(ending);
    return n > tail && strcasecmp(path + n - tail, ending) == 0;
}

/* The raw file that an EMPAD .xml names, without folders; false: it is no such file. */
static bool read_xml(const char *path, ps_empad_metadata *metadata) {
    struct stat status;
    char *text = NULL;
    size_t n = 0;
    if (!is_regular(path, &status) || status.st_size > MAX_XML_BYTES) return false;
    bool good = ps_text_read_file(path, &text, &n, NULL) == PS_OK && ps_empad_parse(path, text, n, metadata, NULL) == PS_OK;
    free(text);
    return good;
}

static ps_code add_xml_of(const char *raw, const char *folder, found_files *files, ps_error *error) {
    const char *slash = strrchr(raw, '/'), *name = slash ? slash + 1 : raw;
    ps_code code = PS_OK;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && code == PS_OK && (entry = readdir(directory));) {
        ps_empad_metadata metadata;
        char *path = has_ending(entry->d_name, ".xml") ? ps_text_format("%s/%s", folder, entry->d_name) : NULL;
        if (path && read_xml(path, &metadata) && strcmp(metadata.raw_file, name) == 0)
            code = add_path(files, path, error);
        else
            free(path);
    }
    if (directory) closedir(directory);
    return code;
}

static ps_code add_companions(const char *path, found_files *files, ps_error *error) {
    ps_code code = PS_OK;
    ps_empad_metadata metadata;
    const char *dot = strrchr(path, '.');
    char *folder = ps_path_directory(path), *master = ps_linked_file_master(path);
    PS_GO_ALLOC(error, folder);
    if (master) PS_GO(add_path(files, strdup(master), error));
    if (has_ending(path, ".mib")) PS_GO(add_path(files, ps_text_format("%.*s.hdr", (int)(dot - path), path), error));
    if (has_ending(path, ".raw")) PS_GO(add_xml_of(path, folder, files, error));
    if (has_ending(path, ".xml") && read_xml(path, &metadata))
        PS_GO(add_path(files, ps_text_format("%s/%s", folder, metadata.raw_file), error));
done:
    free(master);
    free(folder);
    return code;
}

/* ---- the whole ---- */

/* What the reader itself says that it reads; nothing of what it does not open. */
static ps_code add_read(const char *source, const ps_reader_options *options, found_files *files, ps_error *error) {
    ps_reader *reader = NULL;
    ps_name_list read = {0};
    ps_error reason = {0};
    ps_code code = ps_reader_open(source, options, &reader, &reason);
    if (code == PS_OK) code = ps_reader_list_files(reader, &read, &reason);
    ps_reader_close(reader);
    if (code == PS_E_MEMORY) PS_FAIL(error, code, "%s", reason.text);
    code = code == PS_E_MEMORY ? code : PS_OK;
    for (int64_t i = 0; i < read.n && code == PS_OK; i++) code = add_path(files, strdup(read.names[i]), error);
    ps_name_list_free(&read);
    return code;
}

ps_code ps_recording_files_list(const char *source, const ps_reader_options *options, ps_name_list *names, ps_error *error) {
    struct stat status;
    ps_code code = PS_OK;
    ps_source parts = {0};
    found_files files = {.names = names};
    int64_t next = names->n;
    PS_GO(ps_source_split(source, &parts, error));
    const char *path = parts.path;
    if (!is_regular(path, &status)) goto done;
    PS_GO(remember(&files, &status));
    PS_GO(add_read(source, options, &files, error));
    PS_GO(add_companions(path, &files, error));
    PS_GO(search_hdf5(path, &files, error));
    for (; next < names->n; next++) PS_GO(search_hdf5(names->names[next], &files, error)); /* grows while it is gone through */
done:
    free(files.seen);
    ps_source_free(&parts);
    return code;
}

ps_code ps_recording_files_guess(const char *path, ps_name_list *names, ps_error *error) {
    static const char ending[] = "_master.h5";
    found_files files = {.names = names};
    search s = {.path = path, .files = &files, .error = error};
    if (!has_ending(path, ending)) return PS_OK;
    int length = (int)(strlen(path) - strlen(ending));
    char *pattern = ps_text_format("%.*s_data_*.h5", length, path);
    ps_code code = pattern ? add_pattern(&s, pattern) : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (code == PS_OK) code = add_path(&files, ps_text_format("%.*s.h5", length, path), error);
    free(pattern);
    free(files.seen);
    return code;
}
