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
// Rank 0 has rmarun's standard input. Lines that ranks write come out whole, with
// -label each behind its rank's number.
//
// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are forwarded to all ranks; a
// second SIGINT ends them, and so does SIGTERM, SIGHUP or SIGQUIT after a moment (-grace).
// When a rank fails the others get SIGTERM, have that moment, and are ended. The summary names the ranks that failed and how, and shows the
// last lines that each wrote if others have written much after them, or if they could not
// be written. No rank outlives rmarun, on Linux also when it is killed; what is in the
// process group of a rank ends with it. A signal that comes while the package is built ends that.
//
// The exit status is that of the rank that failed first, 128 + the signal's number
// if a signal ended it; if a rank aborted the job, the status that it gave, or 1 if that
// was 0; 1 if the job could not be started, or if what the ranks print could not be
// written (a full disk, which is said once); 2 for wrong usage.
package main
