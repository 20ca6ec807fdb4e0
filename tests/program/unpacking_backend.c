/* The program, on a CPU backend that takes packed patterns, as one with a device of its own does: through the kernels' host twin.
 *
 * This definition of ps_backend_choose takes the place of the program's. PS_REFUSE: every so-manieth pattern is refused. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "plan/backend_choice.h"

/* Of the one frame that is being put. */
static ps_unpack_rules rules;
static uint8_t *looks, *all_refused;
static ps_unpack_tally *tallies;

static bool takes(ps_packing packing, ps_dtype dtype, int64_t n_pixels) {
    (void)packing, (void)dtype, (void)n_pixels;
    return true;
}

static ps_code begin(ps_frame *frame, const ps_unpack_rules *given, ps_error *error) {
    (void)error;
    size_t pixels = (size_t)frame->system->n_pixels;
    rules = *given;
    looks = memcpy(malloc(pixels), given->looks, pixels);
    rules.looks = looks;
    all_refused = calloc((size_t)frame->system->n_positions, 1);
    tallies = calloc((size_t)frame->system->n_positions, sizeof *tallies);
    return PS_OK;
}

static ps_code room(ps_frame *frame, uint8_t **given, size_t *bytes, ps_error *error) {
    (void)frame, (void)error;
    *given = NULL;
    *bytes = 0;
    return PS_OK;
}

static ps_code put(ps_frame *frame, const ps_packed *packed, ps_error *error) {
    void *elements = malloc((size_t)frame->system->n_pixels * ps_dtype_bytes(frame->dtype));
    ps_code code = PS_OK;
    const char *refuse = getenv("PS_REFUSE");
    for (int64_t i = 0; i < packed->n_positions && code == PS_OK; i++) {
        const ps_packed_pattern *p = &packed->patterns[i];
        int64_t position = packed->first_position + i;
        bool good = ps_unpack_pattern(packed->packing, frame->dtype, frame->system->n_pixels, &rules, packed->bytes + p->offset, p->bytes,
                                      elements, &tallies[position]);
        all_refused[position] = !good || (refuse && position % atoi(refuse) == 0);
        if (!all_refused[position]) code = frame->ops->frame_upload(frame, position, 1, elements, error);
    }
    free(elements);
    return code;
}

static ps_code end(ps_frame *frame, uint8_t *refused, ps_unpack_tally *tally, ps_error *error) {
    (void)error;
    size_t n = (size_t)frame->system->n_positions;
    if (refused) memcpy(refused, all_refused, n);
    if (tally) memcpy(tally, tallies, n * sizeof *tally);
    free(looks);
    free(all_refused);
    free(tallies);
    return PS_OK;
}

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    static const ps_unpack_ops unpacking = {takes, begin, room, put, end};
    static ps_backend_ops table;
    (void)job, (void)node_rank, (void)n_node_ranks, (void)error;
    table = ps_backend_cpu_fast;
    table.unpack = &unpacking;
    *ops = &table;
    *options = (ps_backend_options){0};
    return PS_OK;
}

int main(int n_arguments, char **arguments) {
    return ps_command_run(n_arguments - 2, arguments + 2);
}
