// Rmarun starts the ranks of a job as processes on this machine.
//
//	rmarun -n N [-label] [-keep-going] [-grace D] [-env K=V]... PROGRAM|PACKAGE [ARGS...]
//
// A Go package (a directory, ./path, or import path) is built first. Any other name is a program, by path or in PATH.
// Flags after it are its own. Rmarun serves PMI-1 to the ranks: each finds PMI_FD, PMI_RANK and PMI_SIZE in its
// environment, which world.Init reads.
//
// Ranks that are Go programs share the cores. Each gets GOMAXPROCS with its share, at least 1, unless rmarun's
// environment or -env sets it. Processes that a rank starts inherit it.
//
// Rank 0 has rmarun's standard input. The output of the ranks is passed on unchanged and at once. With -label it is
// passed on line by line, each after the number of its rank in brackets and a space. A line of more than 64 KiB is
// passed on as several lines. Each of them but the first has a plus sign in place of that space: "[0]+". The plus
// sign does not say which of the rank's two streams continues: to distinguish them, send standard error to another
// file.
//
// Without -label, and if standard error is a terminal, RMA_TERMINAL in a rank's environment has the number of the
// pipe that is its standard error. The examples and bench then show their progress. If standard output is the same
// terminal, one pipe is both streams of a rank, so that its output keeps its order.
//
// # Signals
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT are sent to the process groups of the ranks. Processes that have not ended
// after the grace (-grace, 3 s) are killed. A second SIGINT kills at once. SIGTSTP and SIGCONT stop and continue the
// ranks, and rmarun stops with them. SIGUSR1 and SIGUSR2 go to the ranks' own processes only. A signal that arrives
// while the package is built ends the build.
//
// SIGHUP and SIGINT that were ignored when rmarun started, for example by nohup, stay ignored, also for the ranks. On
// Linux so does SIGTSTP. SIGTERM, SIGQUIT, SIGUSR1 and SIGUSR2 are never ignored. Go's runtime catches them before a
// program can find out that they were ignored, for example by trap "" TERM. A script ignores SIGQUIT for its background
// processes.
//
// When a rank fails, the others have 200 ms to report the reason and to end. Then they get SIGTERM, and after the
// grace they are killed. They get SIGTERM at once when a rank aborts the job.
//
// The summary names the ranks that failed by themselves, and how. It counts the ranks that failed because another had
// failed: the World of such a rank, or its Init, has reported the other rank to rmarun. A World that Shrink returns
// begins without blame. For each rank that it names, the summary repeats the last lines if they may be out of sight or
// could not be written.
//
// Output of the ranks is passed on however long its reader takes, unless a signal has ended the job and the grace is
// over. Processes that the ranks leave behind end with the job. One second after a rank has ended, its output is
// closed to processes that it left behind. On Linux both hold for processes that have left the rank's group, too.
//
// When rmarun itself is killed by SIGKILL, a rank that has a World gets SIGTERM (see world.Init). On Linux everything
// in the groups of the ranks is killed. Other processes that have left the group of their rank, for example by
// setsid, continue: the kernel has a signal for the death of a parent, but none for that of other ancestors. To leave
// no process, end rmarun by another signal. Or run it where the system ends all processes, such as in a container.
//
// # Terminal
//
// A job runs in the background of a terminal as in the foreground. When a rank reads the terminal, or sets its modes,
// rmarun puts that rank into the foreground. Input that no rank reads is left for the shell. If rmarun is in the
// background itself, the whole job stops, as any other does, until the shell brings it to the foreground. Typed
// interrupt, quit and stop characters reach all ranks. If a rank needs the terminal and no shell can bring the job to
// the foreground, the job ends with exit status 1.
//
// If the terminal stops background jobs that write to it (stty tostop), a rank that reads it stops the job whenever
// rmarun prints. Set stty -tostop for such a job.
//
// # Exit status
//
// The exit status is 0 if all ranks succeeded. Otherwise it is
//
//   - the exit status of the first rank that failed by itself, or 128 + the number of the signal that ended that rank
//   - 128 + the number of the signal, if a signal ended the job before any rank had failed; the statuses of the ranks
//     do not matter then
//   - the status that a rank gave when it aborted the job, or 1 if that was 0
//   - 1 if the job could not be started, or if the output of the ranks could not be written; rmarun reports that once
//   - 2 for wrong usage
//
// # States and invariants
//
// Process groups: that of rmarun, which its shell made; one that each rank leads; and, before there are ranks, one of
// the go command.
//
// Waiting: one goroutine (reap) waits for all children. They are ranks, signal listeners and, on Linux, adopted
// orphans, about which nothing is recorded. No other goroutine waits for a child once ranks have been started. So as
// process 1, too, rmarun leaves no zombie.
//
// A rank runs, is done, and is over. It is done when its process has ended. It is over when its output has ended, too,
// or is no longer waited for. The output ends at the latest with the bytes that are in the pipe one second after the
// process. The group of a rank is signalled until the rank is over, and is then killed. The group may be empty while
// rmarun waits for the output. The system could then give its number to another group, as it does after thousands of
// processes. Nothing here prevents that.
//
// A job lasts until all ranks are over. It ends in four steps, each at most once:
//
//   - report: from the first failure on, the ranks may report the reason
//   - terminate: a signal is sent, and the grace begins
//   - kill: SIGKILL is sent when the grace is over
//   - the wait for the rest, which includes the orphans
//
// During the grace a rank is not over before its group is empty.
//
// The shell decides which group has the terminal's foreground. Rmarun gives it to the group of a rank only if three
// conditions hold: rmarun is in the foreground itself, the kernel has stopped that rank for lack of the terminal
// (SIGTTIN, SIGTTOU), and no other rank has it. Rmarun never reads the terminal, so it consumes no input. It takes the
// foreground back when the rank is over, and when another rank needs the terminal. It does so, too, before it signals
// the groups of the ranks, and before it stops or ends. A rank that continues to read is stopped again, and gets the
// foreground again. If the shell has given the foreground to another group meanwhile, rmarun leaves it.
//
// Typed signals go to the foreground group only. So the group of the rank that reads has a signal listener. It ends
// by the first typed signal, and its exit status says which. Rmarun sends this signal to its own group, as the
// terminal would have, and then to the ranks except the reader's group. It kills the signal listener before it sends
// a signal to that group itself. A signal that a terminal cannot send, such as SIGTERM, was not typed: rmarun only
// takes the terminal back. SIGINT that a rank sends to its own group is taken for typed.
package main
