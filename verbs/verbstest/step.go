package verbstest

import (
	"encoding/gob"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// A step is one action of a side of a case. Steps and answers are plain data that can be sent to another process.
type step interface {
	do(s *station) answer
}

// An answer is the result of a step. Which fields are set depends on the step.
type answer struct {
	Handle      int
	Number      uint32
	Region      verbs.RemoteRegion
	Address     string
	Bytes       []byte
	Completions []verbs.Completion
	Count       int
	State       verbs.State
	// Err is the device's error. Some steps of a case expect one.
	Err *fault
	// Failure says why the step could not be executed.
	Failure string
}

func failure(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

type (
	// addressStep returns the device's address. It has a field because gob sends no structure without one.
	addressStep struct{ Unused bool }
	// allocateStep allocates Size bytes, of the device or of the Go heap, and registers them.
	allocateStep struct {
		Size   int
		Heap   bool
		Access verbs.Access
	}
	// registerStep makes another region over a part of an area.
	registerStep struct {
		Of     segment
		Access verbs.Access
	}
	deregisterStep struct{ Area int }
	// freeStep frees the memory of an area.
	freeStep struct{ Area int }
	loadStep struct{ Of segment }
	// sumStep returns a checksum of memory.
	sumStep struct{ Of segment }
	// fillStep fills memory with noise of a seed.
	fillStep struct {
		To   segment
		Seed uint64
	}
	// storeStep copies Data to the beginning of To.
	storeStep struct {
		To   segment
		Data []byte
	}
	// addStep adds Delta to a word, Times times, with the CPU's atomics.
	addStep struct {
		Area, Offset int
		Delta        uint64
		Times        int
	}
	connectStep struct {
		Address string
		Hello   []byte
		Sizes   sizes
	}
	acceptStep struct {
		Hello []byte
		Sizes sizes
	}
	rejectStep struct {
		Hello  []byte
		Reason string
	}
	postStep struct {
		Pair  int
		Works []work
	}
	receiveStep struct {
		Pair  int
		Slots []slot
	}
	// collectStep waits for Count completions of a pair's sends or receives.
	collectStep struct {
		Pair     int
		Receives bool
		Count    int
	}
	// pollStep takes the current completions.
	pollStep struct {
		Pair     int
		Receives bool
	}
	// stateStep returns a pair's state and error, after waiting for Await if Wait is set.
	stateStep struct {
		Pair  int
		Wait  bool
		Await verbs.State
	}
	closePairStep   struct{ Pair int }
	severStep       struct{ Pair int }
	closeDeviceStep struct{ Unused bool }
	// echoStep waits, Rounds times, for the first word of an area to become the round's number. It answers in the
	// second word and rings Address.
	echoStep struct {
		Area    int
		Address string
		Rounds  int
	}
)

func init() {
	for _, s := range []step{
		addressStep{}, allocateStep{}, registerStep{}, deregisterStep{}, freeStep{}, loadStep{},
		sumStep{}, fillStep{}, storeStep{}, addStep{}, connectStep{}, acceptStep{}, rejectStep{}, postStep{}, receiveStep{},
		collectStep{}, pollStep{}, stateStep{}, closePairStep{}, severStep{}, closeDeviceStep{}, echoStep{},
	} {
		gob.Register(s)
	}
}

func (addressStep) do(s *station) answer { return answer{Address: s.device.Address()} }

func (p allocateStep) do(s *station) answer {
	var memory []byte
	if p.Heap {
		memory = make([]byte, p.Size)
	} else {
		var err error
		if memory, err = s.device.AllocateMemory(p.Size); err != nil {
			return answer{Failure: failure(err)}
		}
	}
	handle, region, err := s.register(memory, p.Access)
	return answer{Handle: handle, Region: region, Err: faultOf(err)}
}

func (p registerStep) do(s *station) answer {
	memory := s.area(p.Of.Area).memory[p.Of.From:p.Of.To:p.Of.To]
	handle, region, err := s.register(memory, p.Access)
	return answer{Handle: handle, Region: region, Err: faultOf(err)}
}

func (p deregisterStep) do(s *station) answer {
	return answer{Err: faultOf(s.area(p.Area).region.Deregister())}
}

func (p freeStep) do(s *station) answer {
	return answer{Err: faultOf(s.device.FreeMemory(s.area(p.Area).memory))}
}

func (p loadStep) do(s *station) answer {
	return answer{Bytes: append([]byte(nil), s.area(p.Of.Area).memory[p.Of.From:p.Of.To]...)}
}

func (p sumStep) do(s *station) answer {
	return answer{Number: sum(s.area(p.Of.Area).memory[p.Of.From:p.Of.To])}
}

func (p fillStep) do(s *station) answer {
	makeNoise(s.area(p.To.Area).memory[p.To.From:p.To.To], p.Seed)
	return answer{}
}

func (p storeStep) do(s *station) answer {
	copy(s.area(p.To.Area).memory[p.To.From:p.To.To], p.Data)
	return answer{}
}

func (p addStep) do(s *station) answer {
	w := word(s.area(p.Area).memory, p.Offset)
	for range p.Times {
		atomic.AddUint64(w, p.Delta)
	}
	return answer{}
}

func (p connectStep) do(s *station) answer {
	handle, err := s.connect(p.Address, p.Hello, p.Sizes)
	if err != nil {
		return answer{Err: faultOf(err)}
	}
	return answer{Handle: handle, Number: s.pair(handle).queuePair.Number()}
}

func (p acceptStep) do(s *station) answer {
	handle, err := s.accept(p.Hello, p.Sizes)
	if err != nil {
		return answer{Failure: failure(err)}
	}
	queuePair := s.pair(handle).queuePair
	if state := queuePair.State(); state != verbs.StateReady {
		return answer{Failure: fmt.Sprintf("the state is %d after Accept, not StateReady: %v", state, queuePair.Err())}
	}
	return answer{Handle: handle, Number: queuePair.Number()}
}

func (p rejectStep) do(s *station) answer {
	request, err := s.request(p.Hello)
	if err != nil {
		return answer{Failure: failure(err)}
	}
	request.Reject(p.Reason)
	return answer{}
}

func (p postStep) do(s *station) answer {
	n, err := s.post(s.pair(p.Pair), p.Works)
	return answer{Count: n, Err: faultOf(err)}
}

func (p receiveStep) do(s *station) answer {
	n, err := s.postReceive(s.pair(p.Pair), p.Slots)
	return answer{Count: n, Err: faultOf(err)}
}

func (s *station) queue(pair int, receives bool) verbs.CompletionQueue {
	held := s.pair(pair)
	if receives {
		return held.receives
	}
	return held.sends
}

func (p collectStep) do(s *station) answer {
	got, err := s.collect(s.queue(p.Pair, p.Receives), p.Count)
	return answer{Completions: got, Failure: failure(err)}
}

func (p pollStep) do(s *station) answer {
	return answer{Completions: drain(s.queue(p.Pair, p.Receives))}
}

func (p stateStep) do(s *station) answer {
	held := s.pair(p.Pair)
	if p.Wait {
		if err := s.awaitState(held, p.Await); err != nil {
			return answer{Failure: failure(err)}
		}
	}
	state := held.queuePair.State()
	return answer{State: state, Err: faultOf(held.queuePair.Err())}
}

func (p closePairStep) do(s *station) answer {
	return answer{Err: faultOf(s.pair(p.Pair).queuePair.Close())}
}

func (p severStep) do(s *station) answer {
	severer, ok := s.pair(p.Pair).queuePair.(verbs.Severer)
	if !ok {
		return answer{Failure: "the queue pair is no Severer"}
	}
	severer.Sever()
	return answer{}
}

func (closeDeviceStep) do(s *station) answer { return answer{Err: faultOf(s.close())} }

func (p echoStep) do(s *station) answer {
	mapper, ok := s.device.(verbs.Mapper)
	if !ok {
		return answer{Failure: "the device is no Mapper"}
	}
	neighbor, err := mapper.Neighbor(p.Address)
	if err != nil {
		return answer{Failure: failure(err)}
	}
	memory := s.area(p.Area).memory
	call, reply := word(memory, 0), word(memory, 8)
	for round := range uint64(p.Rounds) {
		err := s.await(fmt.Sprintf("call %d", round+1), func() bool {
			return atomic.LoadUint64(call) == round+1
		})
		if err != nil {
			return answer{Failure: failure(err)}
		}
		atomic.StoreUint64(reply, round+1)
		neighbor.Wake()
	}
	return answer{}
}
