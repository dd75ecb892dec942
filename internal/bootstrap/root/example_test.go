package root_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/internal/proof"
)

// Two ranks find each other. Processes would have their settings from
// FromEnvironment.
func Example() {
	key := proof.NewKey()
	address := freeAddress()
	ctx := context.Background()
	var ranks sync.WaitGroup
	for rank := range 2 {
		ranks.Go(func() {
			member, err := root.Join(ctx, &root.Settings{Root: address, Rank: rank, Size: 2, Key: key}, time.Minute)
			if err != nil {
				log.Fatal(err)
			}
			if err := member.Put(fmt.Sprint("address-", rank), fmt.Sprint("port-", 7000+rank)); err != nil {
				log.Fatal(err)
			}
			if err := member.Barrier(ctx); err != nil {
				log.Fatal(err)
			}
			if rank == 0 {
				value, err := member.Get("address-1")
				fmt.Println(value, err)
			}
			if err := member.Finalize(); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	// Output: port-7001 <nil>
}

func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
