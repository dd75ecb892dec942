package sim_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// Two ranks: one writes to the other's memory, and the time is that of the machine.
func Example() {
	profile, err := sim.ByName("pcie-2005")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sim.New(profile, 1)
	if err != nil {
		log.Fatal(err)
	}
	origin, target := s.Open(), s.Open()
	window, err := target.AllocateMemory(1 << 20)
	if err != nil {
		log.Fatal(err)
	}
	region, err := target.RegisterMemory(window, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}

	s.Go("origin", func() {
		queue, _ := origin.CreateCompletionQueue(16)
		pair, err := origin.Connect(target.Address(), nil, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
		if err != nil {
			log.Fatal(err)
		}
		for pair.State() == verbs.StateConnecting {
			origin.Channel().Sleep(origin.Channel().Prepare(), -1)
		}
		buffer, _ := origin.AllocateMemory(1 << 20)
		copy(buffer, "by a card")
		mine, _ := origin.RegisterMemory(buffer, 0)
		begun := origin.Now()
		_, err = pair.PostSend([]verbs.SendRequest{{
			Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled,
			Segments:      []verbs.Segment{{Memory: buffer, LKey: mine.LKey()}},
			RemoteAddress: region.Remote().Address, RKey: region.Remote().RKey,
		}})
		if err != nil {
			log.Fatal(err)
		}
		var done [1]verbs.Completion
		for queue.Poll(done[:]) == 0 {
			origin.Channel().Sleep(origin.Channel().Prepare(), -1)
		}
		fmt.Println(done[0].Status.String(), "after", origin.Now()-begun)
	})
	s.Go("target", func() {
		queue, _ := target.CreateCompletionQueue(16)
		var request [1]verbs.ConnectionRequest
		for target.PollConnections(request[:]) == 0 {
			target.Channel().Sleep(target.Channel().Prepare(), -1)
		}
		if _, err := request[0].Accept(verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue}); err != nil {
			log.Fatal(err)
		}
	})
	if err := s.Run(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(window[:9]))
	// Output:
	// success after 1.092794ms
	// by a card
}

// A rank is killed while another writes to it.
func ExampleSimulator_Inject() {
	profile, err := sim.ByName("ndr-2024")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sim.New(profile, 1)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := sim.ParseFaults("at 5ms kill rank 1")
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Inject(plan...); err != nil {
		log.Fatal(err)
	}
	survivor, victim := s.Open(), s.Open()
	survivor.Go("survivor", func() {
		lost := false
		_, err := survivor.Watch(victim.Address(), func(cause error) {
			fmt.Println(errors.Is(cause, verbs.ErrPeerGone), "at", survivor.Now())
			lost = true
			survivor.Channel().Wake()
		})
		if err != nil {
			log.Fatal(err)
		}
		for !lost {
			survivor.Channel().Sleep(survivor.Channel().Prepare(), -1)
		}
	})
	victim.Go("victim", func() {
		defer func() { fmt.Println("the victim ends at", victim.Now()) }()
		victim.Channel().Sleep(victim.Channel().Prepare(), -1)
		victim.Channel().Sleep(victim.Channel().Prepare(), -1)
	})
	if err := s.Run(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the victim ends at 5ms
	// true at 6ms
}
