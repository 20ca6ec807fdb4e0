/* What stands where in the output file: one list each for results and frame columns, used by creating, writing, verifying and reading.
 * docs/file-format.md describes the same for users. */
#ifndef PS_STORE_LAYOUT_H
#define PS_STORE_LAYOUT_H

#include <hdf5.h>
#include <stdint.h>

#include "core/version.h"
#include "method/method.h"

enum {
    PS_FORMAT_VERSION = 2,       /* of the file's layout; docs/file-format.md says what each changed */
    PS_PROCESS_SLOTS = 16,       /* runs that a file has room for: /entry/process_1 ... */
    PS_BYTES_PER_PROCESS = 65536 /* about what each takes */
};

typedef enum { PS_FRAME_PENDING = 0, PS_FRAME_DONE = 1, PS_FRAME_FAILED = 2 } ps_frame_state; /* values of frames/state */

/* A dataset of results; its first axis is the frame. */
typedef struct {
    char name[64];   /* below /entry */
    char former[64]; /* in files of format 1; "": the same */
    size_t element_bytes;
} ps_result_place;

enum { PS_MOST_RESULTS = PS_MOST_METHODS * PS_MOST_METHOD_RESULTS + 2 };
/* All results that a file may hold, in the order in which their bytes enter a frame's CRC-32: those of the methods, in the table's order,
 * then dose and data norm. places: [PS_MOST_RESULTS]. Returns how many there are. */
int ps_layout_results(ps_result_place *places);
/* The place of one result of a method. */
ps_result_place ps_layout_result(const ps_method *method, const ps_result_desc *result);
/* Where in that list. */
int ps_layout_index(const ps_method *method, int result);
/* The name that a file has it under; NULL: the file does not have it. */
const char *ps_layout_name(hid_t entry, const ps_result_place *place);
/* PS_E_HDF5 where a later version than this program's laid the file out. */
ps_code ps_layout_check_version(hid_t entry, const char *path, ps_error *error);

/* What looking at a recording found; outputs of earlier versions lack them. The disc in pixels; radius 0: none was measured. */
#define PS_COLUMNS_SEEN(NUMBER)                                                    \
    NUMBER(PS_COLUMN_EMPTY, "n_empty", int64_t, H5T_STD_I64LE)                     \
    NUMBER(PS_COLUMN_MARKED_PATTERNS, "n_marked_patterns", int64_t, H5T_STD_I64LE) \
    NUMBER(PS_COLUMN_HOT, "n_hot", int64_t, H5T_STD_I64LE)                         \
    NUMBER(PS_COLUMN_DEAD, "n_dead", int64_t, H5T_STD_I64LE)                       \
    NUMBER(PS_COLUMN_DISC_ROW, "disc_row", double, H5T_IEEE_F64LE)                 \
    NUMBER(PS_COLUMN_DISC_COLUMN, "disc_column", double, H5T_IEEE_F64LE)           \
    NUMBER(PS_COLUMN_DISC_RADIUS, "disc_radius", double, H5T_IEEE_F64LE)

/* Columns of /entry/frames that a run writes (those of the inputs are written at creation). name, C type or width of a text */
#define PS_COLUMNS(NUMBER, TEXT)                                          \
    NUMBER(PS_COLUMN_STATE, "state", uint8_t, H5T_STD_U8LE)               \
    NUMBER(PS_COLUMN_CRC, "crc32", uint32_t, H5T_STD_U32LE)               \
    NUMBER(PS_COLUMN_PROCESS, "process", int32_t, H5T_STD_I32LE)          \
    NUMBER(PS_COLUMN_RANK, "rank", int32_t, H5T_STD_I32LE)                \
    NUMBER(PS_COLUMN_EXCLUDED, "n_excluded", int64_t, H5T_STD_I64LE)      \
    NUMBER(PS_COLUMN_SATURATED, "n_saturated", int64_t, H5T_STD_I64LE)    \
    NUMBER(PS_COLUMN_NEGATIVE, "n_negative", int64_t, H5T_STD_I64LE)      \
    NUMBER(PS_COLUMN_NONFINITE, "n_nonfinite", int64_t, H5T_STD_I64LE)    \
    NUMBER(PS_COLUMN_MISSING, "n_missing", int64_t, H5T_STD_I64LE)        \
    NUMBER(PS_COLUMN_MEMORY, "peak_memory_bytes", int64_t, H5T_STD_I64LE) \
    NUMBER(PS_COLUMN_ATTEMPTS, "attempts", int32_t, H5T_STD_I32LE)        \
    PS_COLUMNS_SEEN(NUMBER)                                               \
    TEXT(PS_COLUMN_ERROR, "error", 512)                                   \
    TEXT(PS_COLUMN_NOTE, "note", 256)                                     \
    TEXT(PS_COLUMN_HOST, "host", 64)                                      \
    TEXT(PS_COLUMN_DEVICE, "device", 128)                                 \
    TEXT(PS_COLUMN_TIME, "written_at", 32)

typedef enum {
#define NUMBER(id, name, type, file_type) id,
#define TEXT(id, name, width) id,
    PS_COLUMNS(NUMBER, TEXT)
#undef NUMBER
#undef TEXT
        PS_N_COLUMNS
} ps_column;
const char *ps_column_name(ps_column column); /* below /entry */

/* Scalars of /entry/optics_N that write_prepared fills; weights [n_active] beside them. */
enum { PS_WIDTH_BACKEND = 64, PS_WIDTH_PRECISION = 64 };

/* Scalars of /entry/process_N besides the notes. A slot whose state is "unused" holds nothing and is hidden; state is written last. */
enum { PS_WIDTH_STATE = 16, PS_WIDTH_TIME = 32, PS_WIDTH_NOTE = 256, PS_WIDTH_MORE = 32768 };

/* ISO 8601, UTC, seconds. */
void ps_output_time_now(char text[PS_WIDTH_TIME]);

#endif
