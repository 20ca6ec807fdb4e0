#include "cluster/watchdog.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "core/log.h"

static pthread_t thread;
static bool running, stopping;
static double patience_seconds;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static _Atomic(const char *) current_stage;
static atomic_long current_frame;
static _Atomic double beat_s;

void ps_watchdog_beat(const char *stage, long frame) {
    atomic_store(&current_stage, stage);
    atomic_store(&current_frame, frame);
    atomic_store(&beat_s, ps_seconds());
}

static void *watch(void *unused) {
    double warned_s = 0;
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!stopping) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += 1;
        pthread_cond_timedwait(&wake, &mutex, &until);
        double quiet_s = ps_seconds() - atomic_load(&beat_s);
        if (quiet_s < patience_seconds) warned_s = 0;
        if (stopping || quiet_s < warned_s + patience_seconds) continue;
        warned_s = quiet_s;
        ps_log(PS_LOG_WARNING, "no progress for %.0f s in stage %s of frame %ld", quiet_s, atomic_load(&current_stage),
               atomic_load(&current_frame));
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

void ps_watchdog_start(double patience_s) {
    if (patience_s <= 0 || running) return;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&wake, &attributes);
    pthread_condattr_destroy(&attributes);
    patience_seconds = patience_s;
    stopping = false;
    ps_watchdog_beat("start", -1);
    running = pthread_create(&thread, NULL, watch, NULL) == 0;
    if (running) return;
    pthread_cond_destroy(&wake);
    ps_log(PS_LOG_WARNING, "cannot start the thread that warns of a lack of progress: nothing will be said of it");
}

void ps_watchdog_stop(void) {
    if (!running) return;
    pthread_mutex_lock(&mutex);
    stopping = true;
    pthread_cond_signal(&wake);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&wake);
    running = false;
}
