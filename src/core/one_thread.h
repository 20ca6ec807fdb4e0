/* The linear algebra library without threads of its own. */
#ifndef PS_CORE_ONE_THREAD_H
#define PS_CORE_ONE_THREAD_H

/* OpenBLAS starts a thread for each core when it is loaded, before main. This program shares the cores out itself and wants none of them;
 * worse, each claims 128 MB of address space, tries for ever where there is less (ulimit -v, a batch system's limit), and every fork waits
 * for it to end. A process that finds itself with threads here is therefore replaced by the same program with OPENBLAS_NUM_THREADS=1.
 * arguments: of main. First thing in main; returns where nothing has to be done, or nothing can be. */
void ps_one_thread_begin(char **arguments);

#endif
