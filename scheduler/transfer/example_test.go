package transfer_test

import (
	"fmt"
	"log"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/sim"
)

// What a put of 1 MB takes on the machine of paper C, and the pieces of a superpipeline.
func Example() {
	profile, err := sim.ByName("graphene-ddr")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sim.New(profile, 1)
	if err != nil {
		log.Fatal(err)
	}
	costs := s.Open().Costs()
	const bytes, stage = 1 << 20, 256 << 10
	model := transfer.NewModel(&costs, stage)

	fmt.Println("protocol             us  of the link")
	for p := transfer.Copy; p <= transfer.Cache; p++ {
		took := model.Time(p, true, bytes)
		fmt.Printf("%-16s  %5.1f        %3.0f %%\n", p, took/1000, 100*bytes*1e9/costs.Bandwidth/took)
	}

	best := model.Chooser(transfer.All, true).Best(bytes)
	fmt.Print(best, ":")
	pieces := model.Cut(best, true, bytes)
	address := uint64(0xc000100000)
	for piece, ok := pieces.Next(address); ok; piece, ok = pieces.Next(address) {
		fmt.Print(" ", piece.Bytes)
		address += uint64(piece.Bytes)
	}
	fmt.Println()
	// Output:
	// protocol             us  of the link
	// copy              577.0         93 %
	// copy-pipeline     549.7         98 %
	// superpipeline     540.7         99 %
	// register          717.4         75 %
	// pipeline          582.6         92 %
	// caching-pipeline  540.7         99 %
	// cache             657.9         82 %
	// superpipeline: 896 3200 11392 40832 146624 211392 211456 211392 211392
}
