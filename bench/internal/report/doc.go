// Package report measures what the other packages of bench do, and writes it as a page with plots, and in the format of
// Go's benchmarks.
//
// The steps of a run are planned before the first one. A step that fails is listed in the page, and the next one runs.
//
// The command report measures cases in rounds on several devices, and with -peers beside MPI. The results go into the
// directory of -o:
//
//   - report.html, a page that needs no other file and no script
//   - its plots as .svg
//   - results.txt, where each round of a cell is a line of Go's benchmark format, so that benchstat compares two
//     reports
//
// Each case is measured by all before the next, and every other round goes backward. Without named cases the schemes
// over TCP and the workloads of scale are measured, too. With -peers but no -set so are the kernels over shm and tcp;
// -prk works here as well. A run that is ended early, or fails, writes the results so far, and says so in the page.
// The page begins with the medians, the failures, and how busy other processes kept the machine. Progress on standard
// error estimates the remaining time from the cells so far, at the present speed of the machine.
package report

import _ "github.com/onesided/rma/internal/platform"
