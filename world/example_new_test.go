package world_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"sync"

	"github.com/onesided/rma/world"
)

// members are ranks that exchange in memory, as in the key-value space of etcd, Consul or
// memberlist. Round i is the i-th time that each calls.
type members struct {
	size int
	mu   sync.Mutex
	came map[int][]string
	// all is closed when all have come to a round.
	all map[int]chan struct{}
}

func newMembers(size int) *members {
	return &members{size: size, came: make(map[int][]string), all: make(map[int]chan struct{})}
}

// exchange is that of one rank.
func (m *members) exchange(rank int) world.Exchange {
	round := 0
	return func(ctx context.Context, mine string) ([]string, error) {
		round++
		texts, all := m.come(rank, round, mine)
		select {
		case <-all:
			return texts, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (m *members) come(rank, round int, text string) ([]string, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.came[round] == nil {
		m.came[round], m.all[round] = make([]string, m.size), make(chan struct{})
	}
	m.came[round][rank] = text
	if !slices.Contains(m.came[round], "") {
		close(m.all[round])
	}
	return m.came[round], m.all[round]
}

// Ranks that have found each other by means of their own join by an exchange between
// them. These are goroutines; processes on many hosts do the same.
func ExampleNew() {
	const size = 3
	ctx, m := context.Background(), newMembers(size)
	var ranks sync.WaitGroup
	for rank := range size {
		ranks.Go(func() {
			w, err := world.New(ctx, rank, size, m.exchange(rank))
			if err != nil {
				log.Fatal(err)
			}
			sum := make([]int, 1)
			if err := world.AllReduce(ctx, w, []int{rank}, sum, func(a, b int) int { return a + b }); err != nil {
				log.Fatal(err)
			}
			if rank == 0 {
				fmt.Println("the sum over", size, "ranks is", sum[0])
			}
			if err := w.Close(); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	// Output: the sum over 3 ranks is 3
}
