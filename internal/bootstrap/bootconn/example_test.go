package bootconn_test

import (
	"context"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/proof"
)

func Example() {
	ctx, settings, key := context.Background(), bootconn.Settings{Silence: 5 * time.Second}, proof.NewKey()
	listener, err := settings.ListenConfig().Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer listener.Close()
	heard := make(chan error)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			err = proof.Accept(settings.Accept(conn), key, "example")
		}
		heard <- err
	}()
	conn, err := settings.Dialer(time.Second).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(proof.Dial(settings.Call(conn, "127.0.0.1"), key, "example"), <-heard)
	// Output: <nil> <nil>
}
