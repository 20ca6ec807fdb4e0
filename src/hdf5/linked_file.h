/* Where a file that another one links to is. */
#ifndef PS_HDF5_LINKED_FILE_H
#define PS_HDF5_LINKED_FILE_H

/* linked, as written in the file at path: as it is when absolute; beside path (beside what path is a symbolic link to, before beside
 * the link); for an absolute path that no longer exists, by its name beside path. malloc'd; NULL: not found. */
char *ps_linked_file_find(const char *path, const char *linked);

/* named, as written in the file at path for external storage, where HDF5 looks for it whether it is there or not: as it stands when
 * absolute; below HDF5_EXTFILE_PREFIX, in which ${ORIGIN} is the folder of path; else in the working directory. malloc'd; NULL: no memory.
 */
char *ps_external_file_place(const char *path, const char *named);

/* The Dectris master beside a file that belongs to one: NAME_master.h5 for NAME.h5 and NAME_data_000001.h5; malloc'd, NULL: it is not
 * there. */
char *ps_linked_file_master(const char *path);

#endif
