#include "cluster/mpi_lock.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void ps_mpi_lock(void) {
    pthread_mutex_lock(&mutex);
}

void ps_mpi_unlock(void) {
    pthread_mutex_unlock(&mutex);
}
