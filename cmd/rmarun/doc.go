// Rmarun starts the ranks of a job as processes on this machine.
//
//	rmarun -n N [-label] [-keep-going] [-grace D] [-env K=V]... PROGRAM|PACKAGE [ARGS...]
//
// A Go package (a directory, ./path, or import path) is built first; anything else
// is a program, by path or in PATH. Flags after it are its own. It serves PMI-1 to
// the ranks: each finds PMI_FD, PMI_RANK and PMI_SIZE in its environment, which
// world.Init reads. Ranks that are Go programs have the cores once: each has its part of them,
// 1 at least, as GOMAXPROCS, unless rmarun's environment or -env says how many. What ranks start inherits that.
//
// Rank 0 has rmarun's standard input. What ranks write is passed on as it is and at once; with -label, line by line, each
// after the number of its rank in brackets and a space. There a line of more than 64 KiB is passed on as several lines, of
// which each but the first has a plus sign in place of that space: "[0]+". The plus sign does not say which of the rank's two
// streams goes on: to tell them apart, send standard error to another file.
// Without -label, and if standard error is a terminal, RMA_TERMINAL in a rank's environment has the number of the pipe that
// is its standard error. The examples and bench then show their progress. Where standard output is the same terminal
// one pipe is both streams of a rank, so that what the rank writes keeps its order.
//
// # Signals
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT go to everything that the ranks run, in their process groups. What has not ended
// after the grace (-grace, 3 s) is killed; a second SIGINT kills at once. SIGTSTP and SIGCONT stop and continue the ranks, and
// rmarun stops with them. SIGUSR1 and SIGUSR2 go to the processes of the ranks alone. A signal that comes while the
// package is built ends that.
//
// SIGHUP and SIGINT that were ignored when rmarun started, as by nohup, stay ignored, also for the ranks; on Linux so does
// SIGTSTP. SIGTERM, SIGQUIT, SIGUSR1 and SIGUSR2 are never ignored: Go's runtime catches them before a program can find out
// that they were, after trap "" TERM say, or, SIGQUIT, in the background of a script.
//
// When a rank fails the others have 200 ms to say why and to end, get SIGTERM, have the grace to end, and are killed. They
// get SIGTERM at once when a rank aborts the job.
//
// The summary names the ranks that failed by themselves, and how. It counts those that failed because another had failed: the
// World of each, or its Init, tells rmarun of that other. A World that Shrink gives begins anew. Of each rank that is named,
// the summary shows the last lines if others have written much after them, or if they could not be written.
//
// What ranks print is passed on however long its reader takes, unless a signal has ended the job and the grace is over.
// What ranks leave behind ends with the job, and a second after a rank has ended its output is closed to what it left
// behind. On Linux that holds also for what has left its group.
//
// When rmarun itself is killed by SIGKILL, a rank that has a World gets SIGTERM (see world.Init), and on Linux everything in the
// groups of the ranks is killed. What else has left the group of its rank, as by setsid, lives on: the kernel has a signal
// for the death of a parent, but none for what its children have started. To leave nothing, end rmarun by another signal,
// or run it where the system ends all of it, such as in a container.
//
// # Terminal
//
// A job runs in the background of a terminal as in the foreground. A rank that reads the terminal, or sets its modes, has
// it: rmarun puts the rank into the foreground, and what no rank reads is left for the shell. If rmarun is in the
// background itself the whole job stops, as any other does, until the shell brings it to the foreground. What is typed
// to interrupt, quit or stop reaches all ranks. A rank for which nobody could bring the job to the foreground ends it, with
// exit status 1.
//
// Where the terminal stops background jobs that write to it (stty tostop) a rank that reads it stops the job whenever
// rmarun has something to print: set stty -tostop for such a job.
//
// The exit status is 0 if all has gone well. Otherwise it is
//
//   - the exit status of the first rank that failed by itself, or 128 + the number of the signal that ended that rank
//   - 128 + the number of the signal, if rmarun got a signal that ends the job before any rank had failed, whatever the
//     statuses of the ranks are then
//   - the status that a rank gave when it aborted the job, or 1 if that was 0
//   - 1 if the job could not be started, or if the output of the ranks could not be written, because a disk is full for
//     example, which rmarun says once
//   - 2 for wrong usage
//
// # States and invariants
//
// Process groups: that of rmarun, which its shell made, one that each rank leads, and, before there are ranks, one of the
// go command.
//
// Waiting: one goroutine (reap) waits for all children. They are ranks, signal listeners and, on Linux, adopted
// orphans, of which nothing is remembered. Nobody else waits for a child once ranks have been started. As process 1
// rmarun leaves no zombie for the same reason.
//
// A rank runs, is done (its process has ended) and is over (its output has ended, too, which is its last byte in the pipe
// a second after the process, or is waited for no more). Its group is signalled until the rank is over, and is killed then.
// Where the group is empty while the output is waited for, the system could give its number to another group, as it does
// after thousands of processes: nothing here prevents that. A job goes on until all ranks are over; it
// ends in four steps, each at most once: tell (from the first failure on the ranks may say why), ask (a signal, and the grace
// begins), kill (SIGKILL, when the grace is over), and the wait for the rest, which includes the orphans. While the grace lasts, a rank is not over before its group is empty.
//
// The terminal's foreground is the shell's to give. Rmarun gives it to the group of a rank only while it is in the
// foreground itself, only when the kernel has stopped that rank for want of it (SIGTTIN, SIGTTOU), and to one rank at a
// time. It never reads the terminal, so that it takes nothing from it that nobody asked for. Rmarun takes it back when the rank is
// over, when another rank wants the terminal, before it signals the groups of the ranks, and before it stops or ends; a
// rank that reads on is stopped again, and gets it again. A foreground that the shell has given to others meanwhile stays
// theirs.
//
// What is typed goes to the foreground alone. So the group of the rank that reads has a signal listener, which ends by
// the first signal that is typed and tells by its exit status which that was. Rmarun sends this signal to its own group,
// as the terminal would have, and then to the ranks but for the reader's group. It kills the signal listener before it
// sends a signal to that group itself. What a terminal could not have sent, such as SIGTERM, was not typed: rmarun takes
// the terminal back, and that is all; SIGINT that a rank sends to its own group is taken for typed.
package main
