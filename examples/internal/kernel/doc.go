// Package kernel is the common part of the kernel commands. It parses flags, joins the job or starts ranks as
// goroutines, prints results, and sets the exit status, which reports whether the verification has passed.
//
//	func main() {
//		updates := 1000
//		kernel.Main(&kernel.Kernel{
//			Name: "gups", About: "updates random words of a table that ranks share", Flags: func(f *kernel.Flags) {
//				f.Number(&updates, "updates", 1, 1<<40, "make `n` updates")
//			},
//			Run: func(ctx context.Context, r *kernel.Rank) error {
//				...
//				r.Result("rate", 12.5, "Mop/s")
//				return nil
//			},
//		})
//	}
//
// Rank 0 prints the results, one a line: name, value, unit. On a terminal it shows the progress of long work.
package kernel
