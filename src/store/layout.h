/* What stands where in the output file: one list each for results and frame columns, used by creating, writing, verifying and reading.
 * docs/file-format.md describes the same for users. */
#ifndef PS_STORE_LAYOUT_H
#define PS_STORE_LAYOUT_H

#include <stdint.h>

#include "core/version.h"
#include "store/output.h"

enum {
    PS_FORMAT_VERSION = 1,       /* of the file's layout */
    PS_PROCESS_SLOTS = 16,       /* runs that a file has room for: /entry/process_1 ... */
    PS_BYTES_PER_PROCESS = 65536 /* about what each takes */
};

/* Results, in the order in which their bytes enter a frame's CRC-32. Each has the frame as its first axis. name below /entry, element */
#define PS_RESULTS(X)                                               \
    X(PS_RESULT_PHASE, "phase/phase", float)                        \
    X(PS_RESULT_PHASE_RESIDUAL, "phase/residual", double)           \
    X(PS_RESULT_PHASE_EFFECTIVE_DOF, "phase/influence", double)     \
    X(PS_RESULT_PHASE_GCV, "phase/gcv", double)                     \
    X(PS_RESULT_PHASE_CHOSEN, "phase/chosen_strength", double)      \
    X(PS_RESULT_COMPLEX, "complex/phase", float)                    \
    X(PS_RESULT_COMPLEX_AMPLITUDE, "complex/log_amplitude", float)  \
    X(PS_RESULT_COMPLEX_RESIDUAL, "complex/residual", double)       \
    X(PS_RESULT_COMPLEX_EFFECTIVE_DOF, "complex/influence", double) \
    X(PS_RESULT_COMPLEX_GCV, "complex/gcv", double)                 \
    X(PS_RESULT_COMPLEX_CHOSEN, "complex/chosen_strength", double)  \
    X(PS_RESULT_SSB, "ssb/phase", float)                            \
    X(PS_RESULT_SSB_LOSS, "ssb/loss", double)                       \
    X(PS_RESULT_DOSE, "frames/dose", double)                        \
    X(PS_RESULT_DATA_NORM, "frames/power", double)

typedef enum {
#define X(id, name, type) id,
    PS_RESULTS(X)
#undef X
        PS_N_RESULTS
} ps_result;

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

/* Scalars of /entry/optics_N that write_prepared fills; weights [n_active] beside them. */
enum { PS_WIDTH_BACKEND = 64, PS_WIDTH_PRECISION = 64 };

/* Scalars of /entry/process_N besides the notes. A slot whose state is "unused" holds nothing and is hidden; state is written last. */
enum { PS_WIDTH_STATE = 16, PS_WIDTH_TIME = 32, PS_WIDTH_NOTE = 256, PS_WIDTH_MORE = 32768 };

/* ISO 8601, UTC, seconds. */
void ps_output_time_now(char text[PS_WIDTH_TIME]);

#endif
