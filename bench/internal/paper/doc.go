// Package paper reproduces figures of the papers that this library follows: its own code, with a mechanism on and off, in
// virtual time on the paper's hardware.
//
// A Figure says what is measured and what the paper says of it. Reproduce measures it, and judges the paper's claims.
//
//	for _, f := range paper.Figures() {
//		plot, err := f.Reproduce(ctx, &paper.Options{Seed: 1, Timeout: time.Minute})
//		if err != nil {
//			return err
//		}
//		fmt.Println(f.Name(), plot.Verdicts)
//	}
//
// The command paper reproduces the figures of the papers that this library follows: the library's own code with a
// mechanism on and off, in virtual time on the paper's hardware. The profiles of verbs/sim describe that hardware,
// with sources. Nothing is fitted to a figure. A line of output is
//
//	part figure case theirs ours unit within|off
//
// where part is the paper's letter: A is "Scheduling of MPI-2 one-sided operations over InfiniBand", B "Efficient
// RDMA-based small-message communication for frequently used buffers", C "A high performance superpipeline protocol
// for InfiniBand", E "High performance RDMA protocols in HPC".
//
// An improvement by some percent is within if it is the paper's, give or take a fifth of that. It is also within if
// it differs more for a reason that is stated below the lines. A statement of the paper about an order or an equality
// must hold. A run in which a line is off ends with status 1. With -svg each figure is drawn as in the paper, with
// -curves its values are printed.
//
// Part A measures:
//
//   - most_gain and most_saved: the improvement at the size where it is largest
//   - least_gain and least_saved: where it is smallest
//   - gain_at_bus: the largest where the base line is within a tenth of its best
//   - large_over_small: the ratio of the improvement at the largest size to that at the smallest
//   - saved_at_largest: the improvement at the largest size
//   - peak: the highest throughput
//
// Ping-pongs and throughput are those of the cases pscw_put_lat, pscw_get_lat, pscw_both_lat and pattern16_bw, with
// buffers that are registered beforehand.
//
// In part B all operations are RDMA whatever their length, from buffers that the program does not register. Off, they
// are copied each time. On, the library registers buffers that are used frequently. uses_SIZE is the number of uses
// from which that pays, saved_at_SIZE what it saves.
//
// Part C measures bandwidth in both directions, by notified puts. It shows how much of the bandwidth of buffers which
// the program registers is lost by, or left to, each way in which an unregistered buffer gets to the card. Sizes are
// 5 % apart, as in the paper. Part E does the same for buffers that are used once or several times, and for the
// patterns of the effective bandwidth benchmark at its largest size. uses_to_reach_pipeline is the number of uses
// from which the registration cache is as good as the pipeline, or one more than were measured if it never is.
//
// Part trace belongs to no paper. It uses sequences of buffers (package internal/traces), each as a put and its
// flush, by one way to the card each time and by the library's choice. time_WAY is the time of all of it, which is
// compared with nothing (-). auto_of_best is the ratio of the library's time to that of the best way.
package paper

import _ "github.com/onesided/rma/internal/platform"
