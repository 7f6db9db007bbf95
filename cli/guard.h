// SPDX-License-Identifier: Apache-2.0
// What protects a program around its command: interruption, closed standard streams, input files
// that shrink while they are mapped.
#ifndef DSC_CLI_GUARD_H
#define DSC_CLI_GUARD_H

// Installs everything below; called once at the start of a program.
//
// A descriptor of 0 to 2 that is closed is opened on /dev/null the wrong way round, so that no file
// of the program gets its number and its use still fails.
//
// SIGINT, SIGTERM and SIGHUP (unless ignored) request a stop: cli_signal() is nonzero from then on,
// and blocking calls return EINTR again and again until the command ends, which dsc_fail_errno
// turns into DSC_EINTERRUPT. A command that has not ended within its patience is ended by _exit, as
// by a kill: finished rows and requests are on disk at any moment. So is one after a second signal
// that comes two seconds later.
//
// SIGBUS in a mapped file means that the file shrank: one line and exit code 4.
void cli_guard(void);

// The signal that requested a stop, or 0.
int cli_signal(void);

// A command whose steps take long and whose finished steps are kept may take `seconds` to end.
void cli_set_patience(int seconds);

#endif
