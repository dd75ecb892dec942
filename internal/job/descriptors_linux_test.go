package job_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/shortage"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// descriptorsVariable is how many more descriptors a rank may open before it joins.
const descriptorsVariable = "WORLD_TEST_DESCRIPTORS"

// fewFiles limits the descriptors of a rank to what descriptorsVariable says, if that is set.
func fewFiles() error {
	text := os.Getenv(descriptorsVariable)
	if text == "" {
		return nil
	}
	left, err := strconv.Atoi(text)
	if err == nil {
		_, err = shortage.Descriptors(left)
	}
	return err
}

// fewDescriptors has ranks meet, and each reach each other, with few descriptors.
var fewDescriptors = jobtest.RegisterWith("few descriptors", func() ([]world.Option, error) { return nil, fewFiles() }, scripted(func(s *script) {
	all := make([]int, s.World.Size())
	s.OK(world.AllGather(s.Ctx, s.World, []int{s.me}, all))
	s.OK(s.World.Barrier(s.Ctx))
}))

// However few descriptors a rank has, the job ends. If it does not end well, a rank that has too few says so. All ranks have the same number, or all
// but one have.
func TestFewDescriptors(t *testing.T) {
	turn := 0
	for _, n := range []int{2, 4} {
		// It is enough for the shared memory of n ranks, and for connections to them.
		most := 40 + 3*n
		for _, device := range []string{"shm", "tcp"} {
			for _, alike := range []bool{true, false} {
				turn += 5
				for _, left := range testsize.Turns(turn, most+1, 3) {
					t.Run(fmt.Sprintf("%d ranks/%s/%d/alike %t", n, device, left, alike), func(t *testing.T) {
						busy.Acquire(t)
						job := jobtest.StartWith(t, n, fewDescriptors, func(rank int) []string {
							environment := []string{"RMA_DEVICE=" + device}
							if alike || rank != 0 {
								environment = append(environment, descriptorsVariable+"="+strconv.Itoa(left))
							}
							return environment
						})
						var failed []string
						short := false
						for rank, err := range job.Wait() {
							if err != nil {
								failed = append(failed, fmt.Sprintf("rank %d: %v", rank, err))
								// The second is of what the test itself opens before the rank joins.
								short = short || strings.Contains(err.Error(), "RLIMIT_NOFILE (ulimit -n)") || strings.Contains(err.Error(), "jobtest: pipe2: too many open files")
							}
						}
						if len(failed) > 0 && (!short || left == most) {
							t.Errorf("with %d descriptors: %s", left, strings.Join(failed, "; "))
						}
					})
				}
			}
		}
	}
}
