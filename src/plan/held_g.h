/* How g of a frame is held, as a job's compute.g_storage wants it and memory allows (docs/physics.md section 8). Rank-local. */
#ifndef PS_PLAN_HELD_G_H
#define PS_PLAN_HELD_G_H

#include "job/job.h"
#include "plan/backend_question.h"

enum { PS_HELD_G_TEXT = 256 };

/* Whether the job is to be refused where g of a frame cannot be held whole. */
bool ps_held_g_is_required(const ps_job *job);
/* ps_backend_question_ask; where g is required, for the largest batch whose g there is room for. PS_E_MEMORY when there is none for one
 * frame. question: of a system that was planned with ps_job_plan_g. */
ps_code ps_held_g_ask(const ps_job *job, const ps_backend_question *question, size_t budget, int64_t most, ps_memory_plan *plan,
                      ps_error *error);
/* The smallest budget for which that is no error, to a part in a thousand. */
ps_code ps_held_g_least(const ps_job *job, const ps_backend_question *question, size_t *least, ps_error *error);
/* For the end of a refusal's "What helps: ..."; "" where g is not required. */
const char *ps_held_g_help(const ps_job *job);
/* "g of a frame is held whole and exact, 12 MiB (g_storage auto)". */
void ps_held_g_describe(const ps_job *job, const ps_memory_plan *plan, char text[PS_HELD_G_TEXT]);

#endif
