package traced_test

import (
	"log"
	"os"
	"time"

	"github.com/onesided/rma/internal/timeline"
	"github.com/onesided/rma/internal/traced"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// A rank writes twice to the memory of another rank, reads from it, and waits for completions. The cards are simulated,
// so the times are the same in each run.
func Example() {
	profile, err := sim.ByName("ndr-2024")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sim.New(profile, 1)
	if err != nil {
		log.Fatal(err)
	}
	device, trace := traced.New(s.Open(), traced.Options{})
	target := s.Open()
	const size = 64 << 10
	there, err := target.RegisterMemory(make([]byte, size), verbs.RemoteWrite|verbs.RemoteRead)
	if err != nil {
		log.Fatal(err)
	}
	here, err := device.RegisterMemory(make([]byte, size), verbs.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	queue, err := device.CreateCompletionQueue(8)
	if err != nil {
		log.Fatal(err)
	}
	pair, err := device.Connect(target.Address(), nil, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
	if err != nil {
		log.Fatal(err)
	}
	traced.Name(pair, "1")
	serve(s, target)

	request := func(opcode verbs.Opcode, flags verbs.Flags) verbs.SendRequest {
		return verbs.SendRequest{
			Opcode: opcode, Flags: flags, Segments: []verbs.Segment{{Memory: here.Memory(), LKey: here.LKey()}},
			RemoteAddress: there.Remote().Address, RKey: there.Remote().RKey,
		}
	}
	s.Go("rank 0", func() {
		begun := device.Now()
		_, err := pair.PostSend([]verbs.SendRequest{
			request(verbs.OpRDMAWrite, 0), request(verbs.OpRDMARead, verbs.Signalled), request(verbs.OpRDMAWrite, verbs.Signalled),
		})
		if err != nil {
			log.Fatal(err)
		}
		var done [3]verbs.Completion
		for n := 0; n < 2; n += queue.Poll(done[:]) {
			device.Channel().Sleep(device.Channel().Prepare(), time.Millisecond)
			device.Channel().Finish()
		}
		trace.Span("step", begun, device.Now())
	})
	if err := s.Run(); err != nil {
		log.Fatal(err)
	}
	w := timeline.NewWriter(os.Stdout)
	trace.Write(w, 0, "rank 0", trace.Began())
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"displayTimeUnit":"ns","traceEvents":[
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"process_name","args":{"name":"rank 0"}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"process_sort_index","args":{"sort_index":0}},
	// {"ph":"M","pid":0,"tid":2097152,"ts":0,"name":"thread_name","args":{"name":"out"}},
	// {"ph":"M","pid":0,"tid":2097152,"ts":0,"name":"thread_sort_index","args":{"sort_index":2097152}},
	// {"ph":"X","pid":0,"tid":2097152,"ts":61.500,"dur":204.779,"name":"write to 1","args":{"bytes":65536,"queue pair":1,"request":0}},
	// {"ph":"M","pid":0,"tid":3145728,"ts":0,"name":"thread_name","args":{"name":"in"}},
	// {"ph":"M","pid":0,"tid":3145728,"ts":0,"name":"thread_sort_index","args":{"sort_index":3145728}},
	// {"ph":"X","pid":0,"tid":3145728,"ts":61.500,"dur":204.779,"name":"read from 1","args":{"bytes":65536,"queue pair":1,"request":0}},
	// {"ph":"X","pid":0,"tid":2097152,"ts":61.500,"dur":204.779,"name":"write to 1","args":{"bytes":65536,"queue pair":1,"request":0}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"thread_name","args":{"name":"program"}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"thread_sort_index","args":{"sort_index":0}},
	// {"ph":"X","pid":0,"tid":0,"ts":61.500,"dur":204.779,"name":"step"},
	// {"ph":"M","pid":0,"tid":1048576,"ts":0,"name":"thread_name","args":{"name":"processor"}},
	// {"ph":"M","pid":0,"tid":1048576,"ts":0,"name":"thread_sort_index","args":{"sort_index":1048576}},
	// {"ph":"X","pid":0,"tid":1048576,"ts":61.500,"dur":0.150,"name":"post write","args":{"requests":3,"queue pair":1}},
	// {"ph":"X","pid":0,"tid":1048576,"ts":61.650,"dur":204.579,"name":"sleep","args":{"times":2}},
	// {"ph":"X","pid":0,"tid":1048576,"ts":266.229,"dur":0.050,"name":"poll","args":{"completions":2}}
	// ]}
}

// serve has a target accept a connection.
func serve(s *sim.Simulator, target *sim.Device) {
	queue, err := target.CreateCompletionQueue(8)
	if err != nil {
		log.Fatal(err)
	}
	s.Go("rank 1", func() {
		var requests [1]verbs.ConnectionRequest
		for target.PollConnections(requests[:]) == 0 {
			target.Channel().Sleep(target.Channel().Prepare(), time.Millisecond)
			target.Channel().Finish()
		}
		if _, err := requests[0].Accept(verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue}); err != nil {
			log.Fatal(err)
		}
	})
}
