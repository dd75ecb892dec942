// Package kernel is what the commands of the field's kernels have in common: flags, joining the job or
// starting ranks as goroutines, results, and an exit status that tells whether the verification has passed.
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
// Rank 0 prints the results, a line each: name, value, unit; on a terminal it shows how far long work is.
package kernel
