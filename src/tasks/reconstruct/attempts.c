#include "tasks/reconstruct/attempts.h"

#include <stdlib.h>

#include "cluster/counters.h"

struct ps_attempts {
    ps_output *output;
    int64_t n_frames;
    ps_counters *counters; /* [n_frames] what this run adds to before, then whether someone tries suspects */
    const int32_t *before; /* [n_frames] what the output said */
    bool *in_hand;         /* [n_frames] of this rank */
    bool entered;
};

ps_code ps_attempts_create(const ps_cluster *cluster, ps_output *output, int64_t n_frames, ps_attempts **created, ps_error *error) {
    ps_code code = PS_OK;
    ps_attempts *attempts = calloc(1, sizeof *attempts);
    *created = NULL;
    if (attempts) {
        *attempts = (ps_attempts){.output = output, .n_frames = n_frames, .before = ps_output_attempts(output)};
        attempts->in_hand = calloc((size_t)n_frames, sizeof *attempts->in_hand);
    }
    if (!attempts || !attempts->in_hand) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the attempts of frames");
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(ps_counters_create(cluster, n_frames + 1, &attempts->counters, error));
    *created = attempts;
    attempts = NULL;
done:
    ps_attempts_destroy(attempts);
    return code;
}

void ps_attempts_destroy(ps_attempts *attempts) {
    if (!attempts) return;
    ps_counters_destroy(attempts->counters);
    free(attempts->in_hand);
    free(attempts);
}

static ps_code change_counter(ps_attempts *attempts, ps_counter_operation operation, int64_t at, int64_t value, int64_t *before,
                              ps_error *error) {
    const ps_counter_change wanted = {.operation = operation, .at = at, .value = value};
    return ps_counters_change(attempts->counters, &wanted, before, error);
}

ps_code ps_attempts_count(ps_attempts *attempts, int64_t frame, int64_t *n, ps_error *error) {
    int64_t now = 0;
    PS_TRY(change_counter(attempts, PS_COUNTER_ADD, frame, 0, &now, error));
    *n = now + attempts->before[frame] - attempts->in_hand[frame];
    return PS_OK;
}

/* Changes a frame's count by one and writes it. */
static ps_code change(ps_attempts *attempts, int64_t frame, int64_t by, ps_error *error) {
    int64_t before = 0;
    PS_TRY(change_counter(attempts, PS_COUNTER_ADD, frame, by, &before, error));
    return ps_output_write_attempts(attempts->output, frame, (int32_t)(before + by + attempts->before[frame]), error);
}

ps_code ps_attempts_begin(ps_attempts *attempts, int64_t frame, ps_error *error) {
    if (attempts->in_hand[frame]) return PS_OK;
    attempts->in_hand[frame] = true;
    return change(attempts, frame, 1, error);
}

ps_code ps_attempts_end(ps_attempts *attempts, int64_t frame, ps_error *error) {
    int64_t before = 0;
    attempts->in_hand[frame] = false;
    return change_counter(attempts, PS_COUNTER_REPLACE, frame, -attempts->before[frame], &before, error);
}

ps_code ps_attempts_give_up(ps_attempts *attempts, bool blameless, ps_error *error) {
    ps_code code = PS_OK;
    for (int64_t frame = 0; frame < attempts->n_frames; frame++) {
        if (attempts->in_hand[frame] && blameless && code == PS_OK) code = change(attempts, frame, -1, error);
        attempts->in_hand[frame] = false;
    }
    ps_code left = ps_attempts_leave(attempts, error);
    return code == PS_OK ? left : code;
}

ps_code ps_attempts_count_once(ps_attempts *attempts, ps_error *error) {
    for (int64_t frame = 0; frame < attempts->n_frames; frame++) {
        int64_t n = 0;
        PS_TRY(change_counter(attempts, PS_COUNTER_ADD, frame, 0, &n, error));
        if (n > 1) PS_TRY(change(attempts, frame, 1 - n, error));
    }
    return PS_OK;
}

ps_code ps_attempts_enter(ps_attempts *attempts, bool *entered, ps_error *error) {
    int64_t before = 0;
    *entered = true;
    if (attempts->entered) return PS_OK;
    PS_TRY(change_counter(attempts, PS_COUNTER_REPLACE, attempts->n_frames, 1, &before, error));
    *entered = attempts->entered = before == 0;
    return PS_OK;
}

ps_code ps_attempts_leave(ps_attempts *attempts, ps_error *error) {
    int64_t before = 0;
    if (!attempts->entered) return PS_OK;
    attempts->entered = false;
    return change_counter(attempts, PS_COUNTER_REPLACE, attempts->n_frames, 0, &before, error);
}
