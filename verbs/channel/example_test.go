package channel_test

import (
	"fmt"
	"log"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/verbs/shm"
)

// Two ranks, here in one goroutine. The first messages are eager messages. When the receiver has had
// enough of them from its peer it polls a ring.
func Example() {
	fabric := shm.NewFabric()
	open := func() (verbs.Device, *channel.Poller) {
		device, err := fabric.Open()
		if err != nil {
			log.Fatal(err)
		}
		poller, err := channel.NewPoller(device, channel.Options{})
		if err != nil {
			log.Fatal(err)
		}
		return device, poller
	}
	device, receiver := open()
	_, sender := open()
	end, err := sender.Connect(device.Address(), nil)
	if err != nil {
		log.Fatal(err)
	}
	var requests [1]verbs.ConnectionRequest
	for device.PollConnections(requests[:]) == 0 {
		sender.Poll(nil)
	}
	if _, err := receiver.Accept(requests[0]); err != nil {
		log.Fatal(err)
	}

	var into [8]channel.Arrival
	for i := range 100 {
		if err := end.Send(fmt.Appendf(nil, "message %d", i)); err != nil {
			log.Fatal(err)
		}
		for n := 0; n == 0; {
			n = receiver.Poll(into[:])
			for _, a := range into[:n] {
				if i%33 == 0 {
					fmt.Printf("%s, %d rings are polled\n", a.Payload, receiver.Polled())
				}
				a.End.Release(&a)
			}
		}
		// A poll takes the stamps of the receiver.
		sender.Poll(nil)
	}
	// Output:
	// message 0, 0 rings are polled
	// message 33, 0 rings are polled
	// message 66, 1 rings are polled
	// message 99, 1 rings are polled
}
