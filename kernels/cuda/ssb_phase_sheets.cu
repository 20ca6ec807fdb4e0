/* The SSB estimator `phase` by transforms of its own (scan_fft.cuh), for fine grids whose sides suit them: plans, memory and launches of
 * the kernels of ssb_sheet_kernels.cuh, sheet by sheet. */
#include "kernels/cuda/ssb_sheet_kernels.cuh"

enum { LINES_TOGETHER = 64 /* sheets of a launch of line_kernel */ };

/* --- plans and memory --- */

/* What every sheet shares. */
typedef struct {
    ps_fft_plan along_rows, along_columns; /* of a fine row, of a fine column */
    int half, reached;
    bool has_row, has_column; /* side bands reach the Nyquist row, column */
} sheet_plan;

/* Whether a side band reaches the frequency `index` steps out. */
static bool is_reached(const ps_cuda_system *system, int64_t index, int axis) {
    const ps_system_desc *desc = &system->desc;
    double n = axis == 0 ? (double)desc->scan_rows : (double)desc->scan_columns;
    double q = (double)index / (n * desc->scan_step_A[axis]) * desc->probe.wavelength_A / desc->probe.semiangle_rad;
    return q * q < 4.0 * (double)system->geometry.reach2;
}

static bool make_plan(const ps_cuda_system *system, sheet_plan *plan) {
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc);
    if (!ps_cuda_fft_plan(rows, PS_FFT_SECOND_EVEN, &plan->along_columns) || !ps_cuda_fft_plan(columns, PS_FFT_ANY, &plan->along_rows))
        return false;
    plan->half = (int)(columns / 2 + 1);
    plan->reached = 1;
    while (plan->reached < plan->half && is_reached(system, plan->reached, 1)) plan->reached++;
    plan->has_row = is_reached(system, rows / 2, 0);
    plan->has_column = columns % 2 == 0 && plan->reached == plan->half;
    return true;
}

/* Of one stream. */
typedef struct {
    float2 *cells, *row_odd;
    float *column_even, *row_even;
} sheet_buffers;

typedef struct {
    sheet_buffers lane[2];
    float2 *roots_rows, *roots_columns;
} buffers;

static buffers take_buffers(const ps_cuda_system *system, const sheet_plan *plan, ps_cuda_arena *arena) {
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc);
    buffers b;
    for (int i = 0; i < 2; i++) {
        b.lane[i].cells = ps_cuda_take<float2>(arena, rows * plan->half * LANES);
        b.lane[i].row_odd = ps_cuda_take<float2>(arena, plan->has_row ? (int64_t)LINES_TOGETHER * plan->half * LANES : 0);
        b.lane[i].row_even = ps_cuda_take<float>(arena, plan->has_row ? LINES_TOGETHER * columns * LANES : 0);
        b.lane[i].column_even = ps_cuda_take<float>(arena, plan->has_column ? rows * LANES : 0);
    }
    b.roots_rows = ps_cuda_take<float2>(arena, columns);
    b.roots_columns = ps_cuda_take<float2>(arena, rows);
    return b;
}

int64_t ps_ssb_phase_sheets_scratch(const ps_cuda_system *system) {
    sheet_plan plan;
    ps_cuda_arena arena = {NULL, 0};
    if (!make_plan(system, &plan)) return 0;
    take_buffers(system, &plan, &arena);
    return (int64_t)arena.used;
}

/* --- launches --- */

static int shared_bytes(const ps_fft_plan *plan) {
    return plan->first * PS_FFT_PITCH * (int)sizeof(float2) + LANES * (int)sizeof(ps_gamma_line);
}

static ps_code launch_lines(const ps_ssb_phase *phase, const sheet_plan *plan, const sheet_arguments *args, int64_t most,
                            cudaStream_t stream, ps_error *error) {
    sheet_arguments lines = *args;
    int64_t n = most < LINES_TOGETHER ? most : (int64_t)LINES_TOGETHER;
    lines.plan = plan->along_rows;
    int bytes = shared_bytes(&lines.plan);
    auto kernel = args->grid.g.exact ? line_kernel<false> : line_kernel<true>;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)));
    for (lines.first_lane = 0; lines.first_lane < LANES; lines.first_lane += lines.plan.lanes)
        PS_CUDA_LAUNCH(error, kernel, (unsigned)n, (unsigned)lines.plan.threads, (size_t)bytes, stream, phase->along_row, lines);
    return PS_OK;
}

static ps_code launch_sheet(const ps_ssb_phase *phase, const sheet_plan *plan, sheet_arguments *args, cudaStream_t stream,
                            ps_error *error) {
    auto columns = args->grid.g.exact ? column_kernel<false> : column_kernel<true>;
    int bytes[2] = {shared_bytes(&plan->along_columns), shared_bytes(&plan->along_rows)};
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)columns, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes[0])));
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute((const void *)image_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes[1])));
    args->plan = plan->along_columns;
    for (args->first_lane = 0; args->first_lane < LANES; args->first_lane += args->plan.lanes)
        PS_CUDA_LAUNCH(error, columns, (unsigned)plan->reached, (unsigned)args->plan.threads, (size_t)bytes[0], stream, phase->along_column,
                       *args);
    args->plan = plan->along_rows;
    for (args->first_lane = 0; args->first_lane < LANES; args->first_lane += args->plan.lanes)
        PS_CUDA_LAUNCH(error, image_kernel, (unsigned)(args->grid.rows / 2), (unsigned)args->plan.threads, (size_t)bytes[1], stream, *args);
    return PS_OK;
}

static sheet_arguments arguments_of(const ps_ssb_phase *phase, const sheet_plan *plan, const sheet_buffers *b, int lane, ps_ssb_grid grid) {
    sheet_arguments args = {};
    args.grid = grid;
    args.half = plan->half;
    args.reached = plan->reached;
    args.pair_step = plan->along_columns.first;
    args.cells = b->cells;
    args.column_even = plan->has_column ? b->column_even : NULL;
    args.row_odd = plan->has_row ? b->row_odd : NULL;
    args.row_even = plan->has_row ? b->row_even : NULL;
    args.mean = (float)phase->mean;
    args.sums = phase->sums + lane * grid.rows * grid.columns;
    return args;
}

/* The half tile `lane` of a tile; turn: its lines' place. */
static ps_code add_sheet(const ps_ssb_phase *phase, const sheet_plan *plan, sheet_arguments args, int64_t turn, int64_t left, int lane,
                         ps_error *error) {
    const ps_cuda_system *system = phase->frame->system;
    cudaStream_t stream = lane ? system->backend->side : system->backend->compute;
    if (plan->has_row && turn == 0) PS_TRY(launch_lines(phase, plan, &args, left, stream, error));
    if (ps_cuda_sheet_is_empty(&system->layout, args.first_slot)) return PS_OK;
    if (plan->has_row) {
        args.row_odd += turn * plan->half * LANES;
        args.row_even += turn * args.grid.columns * LANES;
    }
    return launch_sheet(phase, plan, &args, stream, error);
}

ps_code ps_ssb_phase_add_sheets(const ps_ssb_phase *phase, int64_t first_tile, int64_t n_tiles, const ps_cuda_g *g, ps_error *error) {
    const ps_cuda_system *system = phase->frame->system;
    ps_cuda_arena arena = {phase->transform, 0};
    sheet_plan plan;
    if (!make_plan(system, &plan)) return PS_FAIL(error, PS_E_INTERNAL, "no plan for the fine grid");
    buffers b = take_buffers(system, &plan, &arena);
    plan.along_rows.roots = b.roots_rows;
    plan.along_columns.roots = b.roots_columns;
    PS_TRY(ps_cuda_fft_send_roots(&plan.along_rows, b.roots_rows, error));
    PS_TRY(ps_cuda_fft_send_roots(&plan.along_columns, b.roots_columns, error));
    ps_ssb_grid grid = ps_ssb_phase_grid(phase, first_tile, g);
    for (int64_t tile = 0; tile < n_tiles; tile++)
        for (int lane = 0; lane < 2; lane++) {
            sheet_arguments args = arguments_of(phase, &plan, &b.lane[lane], lane, grid);
            args.first_slot = (first_tile + tile) * PS_CUDA_LANES + lane * LANES;
            PS_TRY(add_sheet(phase, &plan, args, tile % LINES_TOGETHER, n_tiles - tile, lane, error));
        }
    return PS_OK;
}
