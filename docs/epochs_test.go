package docs_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewritePictures = flag.Bool("rewrite-pictures", false, "draw the pictures of the guides again")

// The picture of the epochs is the one that this file draws.
func TestEpochs(t *testing.T) {
	const file = "guide/epochs.svg"
	drawn := drawEpochs()
	if *rewritePictures {
		require.NoError(t, os.WriteFile(file, []byte(drawn), 0o644))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), drawn, "if this is meant: go test ./docs -run TestEpochs -rewrite-pictures")
}

// A shade is what a part of a rank's time is.
type shade int

const (
	callShade     shade = iota
	accessShade         // an epoch in which the rank may access others
	exposureShade       // one in which others may access the rank
	bothShade           // one of a fence
)

// A span is a part of a rank's time, from 0 to 100.
type span struct {
	shade    shade
	from, to float64
	text     string
}

// An arrow leads from a time of one rank to one of another. It is dashed if it is no operation, but what a call waits for.
type arrow struct {
	origin, target  int
	leaves, arrives float64
	synchronizes    bool
}

// A panel shows one kind of synchronization of three ranks.
type panel struct {
	title  string
	ranks  [3][]span
	remark [3]string
	arrows []arrow
}

var epochPanels = []panel{{
	title: "Fence: every rank may access every other between two fences",
	ranks: [3][]span{
		{{bothShade, 22, 62, "epoch"}, {bothShade, 79, 100, "epoch"}, {callShade, 3, 22, "Fence"}, {callShade, 25, 31, "Put"}, {callShade, 62, 79, "Fence"}},
		{{bothShade, 22, 54, "epoch"}, {bothShade, 79, 100, "epoch"}, {callShade, 14, 22, "Fence"}, {callShade, 54, 79, "Fence"}},
		{{bothShade, 22, 70, "epoch"}, {bothShade, 79, 100, "epoch"}, {callShade, 9, 22, "Fence"}, {callShade, 27, 33, "Put"}, {callShade, 70, 79, "Fence"}},
	},
	arrows: []arrow{{0, 1, 31, 40, false}, {2, 1, 33, 45, false}},
}, {
	title: "Start, Complete, Post, Wait: the ranks of a group, and no others",
	ranks: [3][]span{
		{{accessShade, 24, 62, "access epoch"}, {callShade, 14, 24, "Start"}, {callShade, 26, 32, "Put"}, {callShade, 51, 62, "Complete"}},
		{{exposureShade, 11, 72, "exposure epoch"}, {callShade, 4, 11, "Post"}, {callShade, 57, 72, "Wait"}},
		{},
	},
	remark: [3]string{2: "not in the group: waits for no other rank"},
	arrows: []arrow{{1, 0, 11, 22, true}, {0, 1, 32, 42, false}, {0, 1, 62, 71, true}},
}, {
	title: "Lock, Unlock: ranks 0 and 2 lock rank 1, both exclusively",
	ranks: [3][]span{
		{{accessShade, 12, 46, "access epoch"}, {callShade, 4, 12, "Lock"}, {callShade, 14, 20, "Put"}, {callShade, 37, 46, "Unlock"}},
		{},
		{{accessShade, 52, 88, "access epoch"}, {callShade, 16, 52, "Lock, waits for the Unlock of rank 0"}, {callShade, 54, 60, "Put"}, {callShade, 79, 88, "Unlock"}},
	},
	remark: [3]string{1: "calls nothing"},
	arrows: []arrow{{0, 1, 20, 28, false}, {2, 1, 60, 68, false}},
}}

// The measures of the picture, in the units of SVG.
const (
	timeStart, timeUnit = 62.0, 6.5
	laneHeight          = 56.0
	boxHeight           = 20.0
	panelHeight         = 3*laneHeight + 42
)

func drawEpochs() string {
	var s strings.Builder
	height := panelHeight*float64(len(epochPanels)) + 52
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 730 %g" font-family="sans-serif" font-size="11">
<title>Epochs of windows</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0 8,4 0,8z" fill="#333"/></marker></defs>
<rect width="100%%" height="100%%" rx="6" fill="white"/>
`, height)
	top := 8.0
	for i := range epochPanels {
		epochPanels[i].draw(&s, top)
		top += panelHeight
	}
	// The key shows what each color is.
	at := timeStart
	for _, one := range []struct {
		shade shade
		text  string
	}{{callShade, "a call"}, {accessShade, "may access others"}, {exposureShade, "may be accessed"}, {bothShade, "both"}} {
		fmt.Fprintf(&s, `<rect x="%g" y="%g" width="16" height="12" %s/><text x="%g" y="%g">%s</text>`+"\n", at, top, looks[one.shade], at+21, top+10, one.text)
		at += 135
	}
	fmt.Fprintf(&s, `<text x="%g" y="%g">An arrow is an operation, or, if it is dashed, what one call waits for of another.</text>`+"\n", timeStart, top+29)
	return s.String() + "</svg>\n"
}

var looks = [...]string{
	callShade: `fill="white" stroke="#333"`, accessShade: `fill="#cfe2f6"`, exposureShade: `fill="#fbdcb4"`, bothShade: `fill="#cfe8cf"`,
}

// draw draws a panel whose title is at top.
func (p *panel) draw(s *strings.Builder, top float64) {
	middle := func(rank int) float64 { return top + 24 + laneHeight*(float64(rank)+0.5) }
	x := func(time float64) float64 { return timeStart + timeUnit*time }
	fmt.Fprintf(s, `<text x="8" y="%g" font-weight="bold" font-size="13">%s</text>`+"\n", top+14, p.title)
	for rank, spans := range p.ranks {
		y := middle(rank)
		fmt.Fprintf(s, `<text x="8" y="%g">rank %d</text><line x1="%g" y1="%g" x2="%g" y2="%g" stroke="#999"/>`+"\n", y+4, rank, x(0), y, x(100), y)
		if remark := p.remark[rank]; remark != "" {
			fmt.Fprintf(s, `<text x="%g" y="%g" fill="#555">%s</text>`+"\n", x(2), y-5, remark)
		}
		for _, one := range spans {
			left, width := x(one.from), timeUnit*(one.to-one.from)
			if one.shade == callShade {
				fmt.Fprintf(s, `<rect x="%g" y="%g" width="%g" height="%g" rx="3" %s/><text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n",
					left, y-boxHeight/2, width, boxHeight, looks[callShade], left+width/2, y+4, one.text)
				continue
			}
			// The text of an epoch is below the calls, at its end, where no arrow begins.
			fmt.Fprintf(s, `<rect x="%g" y="%g" width="%g" height="%g" %s/><text x="%g" y="%g" fill="#444" text-anchor="end">%s</text>`+"\n",
				left, y-laneHeight/2+4, width, laneHeight-8, looks[one.shade], left+width-4, y+laneHeight/2-8, one.text)
		}
	}
	for _, a := range p.arrows {
		from, to := middle(a.origin), middle(a.target)
		down := 1.0
		if from > to {
			down = -1
		}
		dash := ""
		if a.synchronizes {
			dash = ` stroke-dasharray="4 3"`
		}
		fmt.Fprintf(s, `<line x1="%g" y1="%g" x2="%g" y2="%g" stroke="#333"%s marker-end="url(#tip)"/>`+"\n",
			x(a.leaves), from+down*boxHeight/2, x(a.arrives), to-down*boxHeight/2, dash)
	}
}
