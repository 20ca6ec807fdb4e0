/* The commands of the program; each returns its exit status. arguments: what follows the command's name. */
#ifndef PS_CLI_CLI_H
#define PS_CLI_CLI_H

int ps_command_run(int n_arguments, char **arguments);
int ps_command_check(int n_arguments, char **arguments);
int ps_command_info(int n_arguments, char **arguments);
int ps_command_preview(int n_arguments, char **arguments);
int ps_command_pack(int n_arguments, char **arguments);
int ps_command_bench(int n_arguments, char **arguments);
int ps_command_version(void);

#endif
