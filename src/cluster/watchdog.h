/* Says which rank and stage make no progress: a thread that looks at the last heartbeat and warns when it grows old. */
#ifndef PS_CLUSTER_WATCHDOG_H
#define PS_CLUSTER_WATCHDOG_H

/* patience_s: seconds without a heartbeat before a warning, repeated at each further multiple; <= 0: no watchdog. */
void ps_watchdog_start(double patience_s);
void ps_watchdog_stop(void);
/* stage: a literal ("read", "reduce", ...); frame: -1 when none. Cheap; safe in any thread. */
void ps_watchdog_beat(const char *stage, long frame);

#endif
