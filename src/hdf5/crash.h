/* Last words: a crash inside the HDF5 library says which file it was working on before it takes its usual course. */
#ifndef PS_HDF5_CRASH_H
#define PS_HDF5_CRASH_H

/* Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT: one line on standard error where ps_hdf5_noted has something to say, then what was
 * set before (the default, or a sanitizer). Before MPI_Init, whose own handlers stay away then. */
void ps_crash_install(void);
/* What to make of a crash: "the file is damaged", or that as one of two where the address space is limited (ulimit -v, as batch systems
 * do), which crashes the library as well. Fit for signal handlers after ps_crash_install. */
const char *ps_crash_verdict(void);
/* "SIGSEGV"; "a signal" for numbers that are unusual here. Fit for signal handlers. */
const char *ps_signal_name(int number);

#endif
