#include "core/lock.h"

#include <pthread.h>

static pthread_mutex_t mutex;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_recursive(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void ps_hdf5_lock(void) {
    pthread_once(&once, make_recursive);
    pthread_mutex_lock(&mutex);
}

static bool broken;

void ps_hdf5_mark_broken(void) { broken = true; }
bool ps_hdf5_is_broken(void) { return broken; }

void ps_hdf5_unlock(void) { pthread_mutex_unlock(&mutex); }
