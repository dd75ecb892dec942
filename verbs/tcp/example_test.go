package tcp_test

import (
	"fmt"
	"log"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
)

// One device writes into memory of another. Between hosts both are opened with
// Options.Key, and the address and region travel by the launcher.
func Example() {
	target, err := tcp.Open(tcp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()
	origin, err := tcp.Open(tcp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer origin.Close()
	config := func(device verbs.Device) verbs.QueuePairConfig {
		queue, err := device.CreateCompletionQueue(16)
		if err != nil {
			log.Fatal(err)
		}
		return verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue}
	}

	memory := make([]byte, 64)
	region, err := target.RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	ours, theirs := config(origin), config(target)
	pair, err := origin.Connect(target.Address(), []byte("an origin"), ours)
	if err != nil {
		log.Fatal(err)
	}
	// The segment is memory that nobody registered.
	_, err = pair.PostSend([]verbs.SendRequest{{
		ID: 1, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled,
		Segments:      []verbs.Segment{{Memory: []byte("over TCP"), LKey: origin.Attributes().ReservedLKey}},
		RemoteAddress: region.Remote().Address, RKey: region.Remote().RKey,
	}})
	if err != nil {
		log.Fatal(err)
	}

	// Here one goroutine polls both devices; ranks each poll their own.
	var requests [1]verbs.ConnectionRequest
	var done [1]verbs.Completion
	for ours.SendQueue.Poll(done[:]) == 0 {
		if target.PollConnections(requests[:]) == 1 {
			if _, err := requests[0].Accept(theirs); err != nil {
				log.Fatal(err)
			}
		}
		theirs.SendQueue.Poll(nil)
	}
	fmt.Println(done[0].Status.String(), string(memory[:8]))
	// Output: success over TCP
}
