/* Reasons to stop early: SIGTERM, SIGINT, SIGUSR1, or a time limit. Handlers only set a flag; work looks at it between steps. */
#ifndef PS_CLUSTER_STOP_H
#define PS_CLUSTER_STOP_H

#include <stdbool.h>

/* Installs the handlers; max_hours <= 0: no limit. The clock starts here. A second SIGINT ends the process at once. */
void ps_stop_install(double max_hours);
/* True once a signal came or the time is over. Safe in any thread. */
bool ps_stop_wanted(void);
/* "SIGUSR1", "time limit of 2 h", or NULL. */
const char *ps_stop_reason(void);

#endif
