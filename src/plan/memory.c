#include "plan/memory.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "plan/held_g.h"
#include "plan/images_at_once.h"

static const size_t ring_bytes_most = (size_t)1 << 30;
static const size_t batch_of_chunks_bytes = (size_t)64 << 20; /* of chunks as the library fetches them */
static const double GiB = 1024.0 * 1024.0 * 1024.0;

ps_loader_shape ps_run_loader_shape(const ps_job *job, const ps_run_plan *run) {
    return (ps_loader_shape){.options = ps_job_reader_options(job),
                             .n_positions = run->scan_rows * run->scan_columns,
                             .detector_rows = run->detector_rows,
                             .detector_columns = run->detector_columns,
                             .dtype = run->dtype};
}

int64_t ps_run_largest_group(const ps_run_plan *run) {
    int64_t largest = 0;
    for (int64_t i = 1; i < run->n_groups; i++)
        if (run->groups[i].plan.desc.n_active > run->groups[largest].plan.desc.n_active) largest = i;
    return largest;
}

static size_t budget_of(const ps_job *job) {
    return (size_t)(job->memory_budget_GiB * GiB);
}

/* Pixels of all groups; frequencies and aliases of one group, and of one frame with more pixels left out. */
static size_t plan_bytes(const ps_run_plan *run) {
    const ps_plan *largest = &run->groups[ps_run_largest_group(run)].plan;
    size_t detector = (size_t)(run->detector_rows * run->detector_columns), all = 0;
    size_t per_alias = 2 * sizeof(int32_t) + 4 * sizeof(double), per_pixel = sizeof(int32_t) + 2 * sizeof(double) + 1;
    for (int64_t g = 0; g < run->n_groups; g++)
        all += detector * (1 + sizeof(double)) + (size_t)run->groups[g].plan.desc.n_active * per_pixel;
    size_t aliases = (size_t)largest->full_plane_aliases; /* of the half that is solved, at most */
    return all + 2 * (aliases * per_alias + (size_t)largest->desc.n_frequencies * sizeof(ps_frequency));
}

/* A frame's compressed and plain bytes on each thread that reads, and chunks that come through the library. */
static size_t decode_bytes(const ps_run_plan *run) {
    size_t frame = (size_t)(run->detector_rows * run->detector_columns) * ps_dtype_bytes(run->dtype);
    return (size_t)omp_get_max_threads() * 2 * frame + batch_of_chunks_bytes;
}

/* Means, marks and masks of the frames of a batch, and of one that is looked at. */
static size_t batch_bytes(const ps_run_plan *run) {
    size_t detector = (size_t)(run->detector_rows * run->detector_columns);
    return (PS_MOST_FRAMES_PER_BATCH + 1) * detector * (sizeof(double) + sizeof(int64_t) + 1);
}

static size_t image_bytes(const ps_run_plan *run) {
    return (size_t)(run->image_rows * run->image_columns) * sizeof(float);
}

static ps_packed_share share_packed(const ps_job *job, const ps_run_plan *run, const ps_backend_ops *ops, const ps_memory_share *share,
                                    int n_cpus) {
    int64_t n_pixels = run->detector_rows * run->detector_columns;
    size_t pattern = (size_t)n_pixels * ps_dtype_bytes(run->dtype);
    bool is_limited = share && share->bytes != UINT64_MAX;
    if (!job->unpacks_on_device || !ps_backend_unpacks(ops, PS_PACKED_BSLZ4, run->dtype, n_pixels)) return (ps_packed_share){0};
    int n_threads = job->n_threads > 0 ? (int)job->n_threads : omp_get_max_threads();
    return ps_packed_share_find(n_threads, n_cpus, pattern, is_limited ? (size_t)share->bytes : 0);
}

/* Pinned buffers of a device for counts on their way up. */
static size_t pinned_bytes(const ps_packed_share *packed) {
    const size_t upload_most = (size_t)64 << 20;
    return (size_t)packed->n_pieces * packed->piece_bytes + 2 * upload_most;
}

static ps_code refuse(const ps_job *job, const ps_run_plan *run, const ps_run_memory *memory, const ps_memory_share *share,
                      const char *needs, ps_error *error) {
    char upsampling[64] = "";
    bool shares = share && share->n_sharing > 1 && !memory->set_by_job;
    const char *more = memory->set_by_job       ? "a larger budget"
                       : getenv("SLURM_JOB_ID") ? "more memory from Slurm (--mem)"
                                                : "a machine with more memory";
    if (run->upsampling > 1) snprintf(upsampling, sizeof upsampling, ", or a smaller upsampling than %lld", (long long)run->upsampling);
    return PS_FAIL(error, PS_E_JOB, "this job does not fit into memory: each rank needs %s, and %s. What helps: %s%s%s%s", needs,
                   memory->limit, shares ? "fewer ranks on a node, " : "", more, upsampling, ps_held_g_help(job));
}

/* ---- the host's part ---------------------------------------------------------------------------------------------------------- */

static void describe_share(const ps_memory_share *share, ps_run_memory *memory) {
    char bytes[PS_BYTES_TEXT], all[PS_BYTES_TEXT];
    snprintf(memory->limit, sizeof memory->limit, "%s are there for it on this machine (%s; %s left for %d rank%s, a sixteenth kept back)",
             ps_text_bytes((double)share->bytes, bytes), share->text, ps_text_bytes((double)share->free_bytes, all), share->n_sharing,
             share->n_sharing == 1 ? "" : "s");
}

static void describe_job(const ps_job *job, ps_run_memory *memory) {
    memory->set_by_job = true;
    memory->backend_budget = budget_of(job);
    char bytes[PS_BYTES_TEXT];
    snprintf(memory->limit, sizeof memory->limit, "the memory budget is %s (/compute/memory_budget_GiB)",
             ps_text_bytes((double)memory->backend_budget, bytes));
}

/* A ring of at most an eighth of what is there, so that frames have room; the least that the loader can do with otherwise. */
static size_t choose_ring(const ps_loader_shape *shape, const ps_memory_share *share) {
    size_t most = ring_bytes_most;
    if (share && share->bytes / 8 < most) most = (size_t)(share->bytes / 8);
    return ps_loader_bytes(shape, most);
}

ps_code ps_run_memory_begin(const ps_job *job, const ps_run_plan *run, const ps_backend_ops *ops, const ps_memory_share *share, int n_cpus,
                            ps_run_memory *memory, ps_error *error) {
    const ps_loader_shape shape = ps_run_loader_shape(job, run);
    *memory = (ps_run_memory){.on_device = strcmp(ops->name, "cuda") == 0};
    memory->packed = share_packed(job, run, ops, share, n_cpus);
    memory->ring_bytes = choose_ring(&shape, share);
    int64_t held = memory->on_device ? PS_MOST_FRAMES_PER_BATCH + 1 : 2; /* one is written while others are computed */
    memory->n_images = ps_images_at_once(ps_method_set_images(&job->methods), held, image_bytes(run), share);
    memory->beside_bytes = plan_bytes(run) + decode_bytes(run) + batch_bytes(run) + (size_t)memory->n_images * image_bytes(run) +
                           (memory->on_device ? pinned_bytes(&memory->packed) : 0);
    size_t taken = memory->ring_bytes + memory->beside_bytes;
    memory->host_bytes = taken;
    if (job->memory_budget_GiB > 0) describe_job(job, memory);
    if (!share || share->bytes == UINT64_MAX) return PS_OK;
    if (taken >= share->bytes) {
        char needs[128], bytes[PS_BYTES_TEXT];
        memory->set_by_job = false;
        describe_share(share, memory);
        snprintf(needs, sizeof needs, "%s of the host for reading, plans and results alone", ps_text_bytes((double)taken, bytes));
        return refuse(job, run, memory, share, needs, error);
    }
    size_t left = (size_t)share->bytes - taken;
    if (memory->on_device || (memory->set_by_job && memory->backend_budget <= left)) return PS_OK;
    memory->set_by_job = false;
    memory->backend_budget = left;
    describe_share(share, memory);
    return PS_OK;
}

/* ---- the backend's part ------------------------------------------------------------------------------------------------------- */

static ps_code refuse_backend(const ps_job *job, const ps_run_plan *run, const ps_memory_plan *one, const ps_memory_share *share,
                              const ps_run_memory *memory, ps_error *error) {
    char needs[256], all[PS_BYTES_TEXT], system[PS_BYTES_TEXT], frame[PS_BYTES_TEXT], work[PS_BYTES_TEXT], host[PS_BYTES_TEXT];
    size_t kept = one->system_bytes + one->frame_bytes;
    bool with_host = !memory->on_device && !memory->set_by_job;
    snprintf(needs, sizeof needs, "at least %s%s (system %s, one frame %s, work %s%s%s)",
             ps_text_bytes((double)(memory->least_bytes + (with_host ? memory->host_bytes : 0)), all),
             memory->on_device ? " of the device" : "", ps_text_bytes((double)one->system_bytes, system),
             ps_text_bytes((double)one->frame_bytes, frame), ps_text_bytes((double)(memory->least_bytes - kept), work),
             with_host ? ", reading, plans and results " : "", with_host ? ps_text_bytes((double)memory->host_bytes, host) : "");
    return refuse(job, run, memory, share, needs, error);
}

/* A device reduces frames in milliseconds, alone or together: a batch whose images have no place beside those of a frame that is being
 * written would make it wait for the file. On the host, what frames share in a batch is worth more than that. */
static int64_t most_at_once(const ps_job *job, const ps_run_memory *memory) {
    int64_t n = memory->n_images / ps_method_set_images(&job->methods) - 1;
    if (!memory->on_device || n > PS_MOST_FRAMES_PER_BATCH) return PS_MOST_FRAMES_PER_BATCH;
    return n > 1 ? n : 1;
}

static ps_code plan_backend(const ps_job *job, const ps_run_plan *run, const ps_backend_question *q, const ps_memory_share *share,
                            ps_run_memory *memory, ps_error *error) {
    ps_error reason = {0};
    PS_TRY(ps_held_g_least(job, q, &memory->least_bytes, error));
    ps_code code = ps_held_g_ask(job, q, memory->backend_budget, most_at_once(job, memory), &memory->backend, &reason);
    if (code == PS_E_MEMORY) {
        ps_memory_plan one;
        PS_TRY(ps_backend_question_ask(q, 0, 1, &one, error));
        return refuse_backend(job, run, &one, share, memory, error);
    }
    if (code != PS_OK) return PS_FAIL(error, code, "%s", reason.text);
    memory->n_unwritten = memory->on_device ? memory->backend.frames_per_batch + 1 : 2;
    if (!memory->on_device) memory->host_bytes += memory->backend.peak_bytes;
    memory->two_systems = !memory->backend_budget || memory->backend.peak_bytes + memory->backend.system_bytes <= memory->backend_budget;
    if (memory->set_by_job) memory->two_systems = false; /* the budget is for one, whatever it leaves */
    return PS_OK;
}

ps_code ps_run_memory_finish(const ps_job *job, ps_run_plan *run, const ps_backend_ops *ops, const ps_memory_share *share,
                             size_t device_bytes, ps_run_memory *memory, ps_error *error) {
    int64_t at = ps_run_largest_group(run);
    bool was_open = run->groups[at].plan.desc.frequencies != NULL;
    if (memory->on_device && device_bytes && (!memory->set_by_job || device_bytes < memory->backend_budget)) {
        memory->backend_budget = device_bytes;
        memory->set_by_job = false;
        char bytes[PS_BYTES_TEXT];
        snprintf(memory->limit, sizeof memory->limit,
                 "%s are free for this rank on its device, a reserve and other ranks' parts not counted",
                 ps_text_bytes((double)device_bytes, bytes));
    }
    PS_TRY(ps_run_group_open(job, run, at, error));
    const ps_backend_question question = {ops, &run->groups[at].plan.desc, ps_method_set_bits(&job->methods), run->dtype};
    ps_code code = plan_backend(job, run, &question, share, memory, error);
    if (!was_open) ps_run_group_close(run, at);
    return code;
}
