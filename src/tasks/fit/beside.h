/* Whether optics that a job gives look wrong: what a little rotation and defocus beside them would explain. */
#ifndef PS_TASKS_FIT_BESIDE_H
#define PS_TASKS_FIT_BESIDE_H

#include "tasks/fit/at_hand.h"
#include "tasks/fit/load.h"

enum { PS_BESIDE_TEXT = 320 };

/* Rank-local. Reads the group's first usable recording. text: what a
 * user should be told ("C10 looks 50 A off ..."); "": nothing looks wrong, or the data do not tell. Data that cannot be read or held
 * against optics are no error here: whoever needs them says so. PS_E_INTERRUPTED when a stop is wanted. */
ps_code ps_fit_look_at_optics(const ps_fit_source *source, int64_t group, char text[PS_BESIDE_TEXT], ps_error *error);

/* The same with a frame that is in hand anyway, reduced, of a system of that plan and those methods; at most some thousand of its pixels,
 * which bounds the time. A lost device and a stop are errors, nothing else is. */
typedef struct {
    ps_backend *backend;
    ps_frame *frame;
    const ps_plan *plan;
    ps_methods methods;
    double dose;
} ps_fit_hand;
ps_code ps_fit_look_at_hand(const ps_fit_hand *hand, const ps_optics *optics, char text[PS_BESIDE_TEXT], ps_error *error);

#endif
