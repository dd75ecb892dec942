package proof_test

import (
	"fmt"
	"log"
	"net"
	"time"

	"github.com/onesided/rma/internal/proof"
)

// Two ends of a connection prove to each other that they belong to the job.
func Example() {
	key := proof.NewKey()
	near, far := net.Pipe()
	defer near.Close()
	accepted := make(chan error)
	go func() {
		defer far.Close()
		err := far.SetDeadline(time.Now().Add(time.Minute))
		if err == nil {
			err = proof.Accept(far, key, "example")
		}
		accepted <- err
	}()
	if err := near.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		log.Fatal(err)
	}
	fmt.Println("initiator:", proof.Dial(near, key, "example"))
	fmt.Println("acceptor:", <-accepted)
	// Output:
	// initiator: <nil>
	// acceptor: <nil>
}
