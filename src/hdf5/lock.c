#include "hdf5/lock.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int depth; /* of the lock; this and the next three belong to who holds it */
static pthread_t holder;
static ps_hdf5_work own_work;
static ps_hdf5_work *work = &own_work;

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
    if (depth++ == 0) holder = pthread_self();
}

static bool broken;

void ps_hdf5_mark_broken(void) {
    broken = true;
}
bool ps_hdf5_is_broken(void) {
    return broken;
}

void ps_hdf5_unlock(void) {
    if (--depth == 0) work->path[0] = '\0';
    pthread_mutex_unlock(&mutex);
}

void ps_hdf5_note(const char *path, int64_t first_frame, int64_t n_frames) {
    snprintf(work->path, sizeof work->path, "%s", path);
    work->first_frame = first_frame;
    work->n_frames = n_frames;
}

const ps_hdf5_work *ps_hdf5_noted(void) {
    return depth > 0 && pthread_equal(holder, pthread_self()) ? work : NULL;
}

void ps_hdf5_note_into(ps_hdf5_work *shared) {
    work = shared;
}
