package transfer_test

import (
	"testing"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// costsOf is what the card of a profile costs.
func costsOf(t testing.TB, name string) verbs.Costs {
	t.Helper()
	return simtest.New(t, name, 1).Open().Costs()
}

func modelOf(t testing.TB, name string, stage int) *transfer.Model {
	c := costsOf(t, name)
	return transfer.NewModel(&c, stage)
}

// everyProfile runs a test with the costs of each.
func everyProfile(t *testing.T, test func(t *testing.T, costs verbs.Costs)) {
	for _, name := range sim.Profiles() {
		t.Run(name, func(t *testing.T) { test(t, costsOf(t, name)) })
	}
}

// lengths are in steps of 5 %, as paper C has them.
func lengths(most int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for n := 1; n <= most; n += max(n/20, 1) {
			if !yield(n) {
				return
			}
		}
	}
}

// all protocols.
var all = []transfer.Protocol{
	transfer.Copy, transfer.CopyPipeline, transfer.Superpipeline, transfer.Register,
	transfer.Pipeline, transfer.CachingPipeline, transfer.Cache,
}

// cut is the pieces of an operation whose buffer is at an address.
func cut(m *transfer.Model, p transfer.Protocol, write bool, bytes int, address uint64) []transfer.Piece {
	var all []transfer.Piece
	pieces := m.Cut(p, write, bytes)
	for piece, ok := pieces.Next(address); ok; piece, ok = pieces.Next(address) {
		all = append(all, piece)
		address += uint64(piece.Bytes)
	}
	return all
}
