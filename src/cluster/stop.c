#include "cluster/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "core/log.h"

static atomic_int signal_seen; /* lock-free: written by handlers, read by any thread */
static double end_s;           /* 0: no limit */
static char limit_text[48];

static void on_signal(int number) {
    if (number == SIGINT && atomic_load(&signal_seen) == SIGINT) _exit(130);
    atomic_store(&signal_seen, number);
}

void ps_stop_install(double max_hours) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    end_s = max_hours > 0 ? ps_seconds() + 3600 * max_hours : 0;
    snprintf(limit_text, sizeof limit_text, "time limit of %g h", max_hours);
}

bool ps_stop_wanted(void) {
    return atomic_load(&signal_seen) != 0 || (end_s > 0 && ps_seconds() >= end_s);
}

const char *ps_stop_reason(void) {
    switch (atomic_load(&signal_seen)) {
    case SIGTERM: return "SIGTERM";
    case SIGINT: return "SIGINT";
    case SIGUSR1: return "SIGUSR1";
    default: return end_s > 0 && ps_seconds() >= end_s ? limit_text : NULL;
    }
}
