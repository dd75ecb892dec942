package pmi_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"

	"github.com/onesided/rma/internal/bootstrap/pmi"
)

// Two ranks exchange their addresses.
func Example() {
	const size = 2
	server := pmi.NewServer(size, pmi.Events{})
	defer server.Close()
	var ranks sync.WaitGroup
	for rank := range size {
		near, far := net.Pipe()
		server.Serve(far, rank)
		ranks.Go(func() {
			client, err := pmi.New(near, rank, size)
			if err != nil {
				log.Fatal(err)
			}
			if err := client.Put(fmt.Sprint("address-", rank), fmt.Sprint("port-", 7000+rank)); err != nil {
				log.Fatal(err)
			}
			if err := client.Barrier(context.Background()); err != nil {
				log.Fatal(err)
			}
			address, err := client.Get(fmt.Sprint("address-", 1-rank))
			if err != nil {
				log.Fatal(err)
			}
			if rank == 0 {
				fmt.Println("rank 1 is at", address)
			}
			if err := client.Barrier(context.Background()); err != nil {
				log.Fatal(err)
			}
			if err := client.Finalize(); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	// Output: rank 1 is at port-7001
}
