package verbstest_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/verbstest"
)

// The far side of cases in a child process, which would take its steps from
// os.Stdin and answer to os.Stdout. It ends when there are no more steps.
func ExampleServePeer() {
	fabric := shm.NewFabric()
	open := func() (verbs.Device, error) { return fabric.Open() }
	fmt.Println(verbstest.ServePeer(strings.NewReader(""), io.Discard, open))
	// Output: <nil>
}
