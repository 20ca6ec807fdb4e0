/* The stages whose seconds every frame records, in the order of the file's columns. */
#ifndef PS_CORE_STAGE_H
#define PS_CORE_STAGE_H

#define PS_STAGES(X)                                                                \
    X(PS_STAGE_READ, "read")       /* reading and decompression */                  \
    X(PS_STAGE_PUT, "put")         /* handing counts to the backend */              \
    X(PS_STAGE_PREPARE, "prepare") /* only on the frame that prepared its optics */ \
    X(PS_STAGE_REDUCE, "reduce")   /* FFT, right sides, SSB sums */                 \
    X(PS_STAGE_SOLVE, "solve")     /* solutions and images of phase and complex */  \
    X(PS_STAGE_SSB, "ssb")                                                          \
    X(PS_STAGE_WRITE, "write")

typedef enum {
#define X(stage, name) stage,
    PS_STAGES(X)
#undef X
        PS_N_STAGES
} ps_stage;

const char *ps_stage_name(ps_stage stage);

#endif
