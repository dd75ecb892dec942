// Package jobtest runs the body of a test on every rank of a job, over goroutines
// and over processes that it starts from the same test binary:
//
//	var sums = jobtest.Register("sums", func(ctx context.Context, w *world.World) error {
//		...
//	})
//
//	func TestMain(m *testing.M) { jobtest.Main(m) }
//
//	func TestSums(t *testing.T) { jobtest.Run(t, 4, sums) }
//
// A body reports by its error, because in another process there is no test to fail.
// A Body that calls Signal lets the test go on at that point; Job.Kill ends a
// rank's process there. One that calls Hold waits there for the test.
//
// A rank that is a process and whose body has returned nil holds, when its World is
// closed, no more goroutines, descriptors and shared memory than before, or it fails.
package jobtest
