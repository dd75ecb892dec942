package completion_test

import (
	"fmt"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

// A device pushes completions, and its Poll takes them. There is no room for the third completion. The device must fail
// queue pair 7, and Poll returns the failure.
func Example() {
	queue, err := completion.New(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	completion.Attach(queue, queue)
	for id := range uint64(4) {
		if !queue.Push(&verbs.Completion{ID: id, QueuePair: 7, Opcode: verbs.OpRDMAWrite}) {
			fmt.Println("no room for", id)
		}
	}
	into := make([]verbs.Completion, 8)
	for _, c := range into[:queue.Take(into)] {
		fmt.Println(c.ID, c.Status)
	}
	completion.Detach(queue, queue, 7)
	_, err = queue.Close()
	fmt.Println(err)
	// Output:
	// no room for 2
	// no room for 3
	// 0 verbs: success
	// 1 verbs: success
	// 2 verbs: flushed
	// <nil>
}
